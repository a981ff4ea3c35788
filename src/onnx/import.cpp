#include "onnx/import.h"

#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "onnx/build.h"
#include "onnx/file.h"
#include "onnx/wire.h"

namespace rutter::frontend {
namespace {

Hash128 hashOf(std::string_view bytes, const TensorStore& tensors) {
  Hash128 h = hashBytes(bytes);
  if (tensors.externals().empty()) return h;
  ByteWriter w;
  auto put = [&](Hash128 x) { w.put(x.lo), w.put(x.hi); };
  put(h);
  for (const auto& e : tensors.externals()) {
    w.put(e.location);
    w.put<uint64_t>(e.file->bytes().size());
    put(hashBytes(e.file->bytes()));
  }
  return hashBytes(w.bytes());
}

Model import(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& directory) {
  const ModelView view = parseModel(bytes);
  TensorStore tensors(std::move(owner), directory);
  Model m;
  try {
    m.graph = buildGraph(view, tensors);
  } catch (const protozero::exception& e) {  // types and typed elements are decoded late
    throw UserError("a damaged ONNX model: types or tensors in it cannot be decoded ({})", e.what());
  }
  m.hash = hashOf(bytes, tensors);
  m.irVersion = view.irVersion;
  auto it = view.opsets.find("");
  m.opset = it == view.opsets.end() ? 0 : it->second;
  m.producer = std::string(view.producer);
  if (!m.producer.empty() && !view.producerVersion.empty()) m.producer += " " + std::string(view.producerVersion);
  m.nodes = int64_t(view.graph->nodes.size());
  return m;
}

}  // namespace

std::string nodeName(std::string_view name, std::string_view op, int64_t index) {
  return name.empty() ? fmt::format("{}_{}", op, index) : std::string(name);
}

Model importFile(const std::string& path) {
  auto file = MappedFile::open(path);
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  try {
    return import(file->bytes(), file, directory);
  } catch (const UnsupportedOperators& e) {
    throw UnsupportedOperators(shown(path) + ": " + e.what(), e.nodes);
  } catch (const UserError& e) {
    throw UserError("{}: {}", shown(path), e.what());
  }
}

Model importBytes(std::span<const std::byte> bytes, const ImportOptions& options, std::shared_ptr<const void> owner) {
  std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!owner) {
    auto copy = std::make_shared<const std::string>(view);
    view = *copy;
    owner = copy;
  }
  const std::string prefix = options.name.empty() ? "" : shown(options.name) + ": ";
  try {
    return import(view, std::move(owner), options.directory);
  } catch (const UnsupportedOperators& e) {
    throw UnsupportedOperators(prefix + e.what(), e.nodes);
  } catch (const UserError& e) {
    throw UserError("{}{}", prefix, e.what());
  }
}

}  // namespace rutter::frontend
