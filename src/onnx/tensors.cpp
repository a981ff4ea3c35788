#include "onnx/tensors.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <filesystem>

#include "onnx/wire.h"

namespace rutter::frontend {
namespace {

namespace fs = std::filesystem;

// Small tensors are copied when their bytes are not aligned, so that scalars and shapes can be read in place; large
// ones stay views, whatever their alignment.
constexpr size_t kCopyBelow = 64 << 10;

ir::Tensor view(ir::DType type, std::vector<int64_t> shape, std::string_view bytes, std::shared_ptr<const void> owner) {
  size_t align = std::max<size_t>(1, size_t(ir::bitsOf(type)) / 8);
  if (bytes.size() >= kCopyBelow || reinterpret_cast<uintptr_t>(bytes.data()) % align == 0)
    return ir::Tensor(type, std::move(shape), bytes.data(), std::move(owner));
  ir::Tensor t(type, std::move(shape));
  if (!bytes.empty()) std::memcpy(t.mutableData(), bytes.data(), bytes.size());
  return t;
}

// Typed fields of TensorProto, by number.
enum Field : uint32_t {
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kDoubleData = 10,
  kUint64Data = 11
};

Field fieldOf(ir::DType t) {
  switch (t) {
    case ir::DType::kF32:
      return kFloatData;
    case ir::DType::kF64:
      return kDoubleData;
    case ir::DType::kI64:
      return kInt64Data;
    case ir::DType::kU32:
    case ir::DType::kU64:
      return kUint64Data;
    case ir::DType::kString:
      return kStringData;
    default:
      return kInt32Data;
  }
}

/// Integers of int32_data, int64_data and uint64_data narrowed to units of `unit` bytes (sub-byte types come packed,
/// two elements an entry).
void storeInts(const std::vector<int64_t>& v, size_t unit, void* out) {
  for (size_t i = 0; i < v.size(); i++) std::memcpy(static_cast<char*>(out) + i * unit, &v[i], unit);
}

int64_t number(std::string_view text, const char* key, const std::string& what) {
  int64_t v = 0;
  auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (err != std::errc() || end != text.data() + text.size() || v < 0)
    throw UserError("{}: external data has {} '{}', a number of bytes is wanted", what, key, shown(text));
  return v;
}

}  // namespace

ir::Tensor TensorStore::decode(const TensorView& t, const std::string& what) {
  auto type = ir::dtypeFromOnnx(t.dataType);
  if (!type) throw UserError("{}: element type {} is not supported", what, t.dataType);
  if (t.segmented) throw UserError("{}: tensors in segments are not supported", what);
  int64_t count = 0;
  try {
    count = ir::elementCount(t.dims);
  } catch (const UserError& e) {
    throw UserError("{}: {}", what, e.what());
  }
  if (count > (int64_t{1} << 55)) throw UserError("{}: shape [{}] is too large", what, fmt::join(t.dims, ","));
  const int64_t bytes = ir::bytesOf(*type, count);
  auto mismatch = [&](size_t have, const char* unit) {
    throw UserError("{}: shape [{}] of {} needs {} {}, the model holds {}", what, fmt::join(t.dims, ","),
                    ir::dtypeName(*type),
                    *type == ir::DType::kString || std::string_view(unit) == "elements" ? count : bytes, unit, have);
  };
  if (t.external) return decodeExternal(t, *type, t.dims, what);
  if (t.hasRaw) {
    if (*type == ir::DType::kString) throw UserError("{}: strings cannot be raw bytes", what);
    if (int64_t(t.raw.size()) != bytes) mismatch(t.raw.size(), "bytes");
    return view(*type, t.dims, t.raw, owner_);
  }
  const Field field = fieldOf(*type);
  pbf_reader r = reader(t.message);
  if (field == kFloatData || field == kDoubleData) {
    // Usually one packed run, which can stay where it is.
    std::string_view only;
    int parts = 0;
    std::vector<float> floats;
    std::vector<double> doubles;
    while (r.next()) {
      if (r.tag() != field) {
        r.skip();
      } else if (++parts == 1 && r.wire_type() == pbf_wire_type::length_delimited) {
        only = readView(r);
      } else {
        pbf_reader first = reader(t.message);  // several parts: gather them from the start
        while (first.next()) {
          if (first.tag() != field)
            first.skip();
          else if (field == kFloatData)
            readFixed(first, floats);
          else
            readFixed(first, doubles);
        }
        only = field == kFloatData
                   ? std::string_view(reinterpret_cast<const char*>(floats.data()), floats.size() * 4)
                   : std::string_view(reinterpret_cast<const char*>(doubles.data()), doubles.size() * 8);
        if (int64_t(only.size()) != bytes) mismatch(only.size(), "bytes");
        ir::Tensor out(*type, t.dims);
        if (bytes) std::memcpy(out.mutableData(), only.data(), only.size());
        return out;
      }
    }
    if (int64_t(only.size()) != bytes) mismatch(only.size(), "bytes");
    return view(*type, t.dims, only, owner_);
  }
  if (field == kStringData) {
    std::vector<std::string> strings;
    while (r.next()) {
      if (r.tag() == field)
        strings.emplace_back(readView(r));
      else
        r.skip();
    }
    if (int64_t(strings.size()) != count) mismatch(strings.size(), "elements");
    return ir::Tensor::ofStrings(t.dims, std::move(strings));
  }
  std::vector<int64_t> ints;
  while (r.next()) {
    if (r.tag() == field)
      readInts(r, ints);
    else
      r.skip();
  }
  const int bits = ir::bitsOf(*type);
  const size_t unit = bits < 8 ? 1 : size_t(bits) / 8;
  if (int64_t(ints.size() * unit) != bytes) mismatch(ints.size(), "elements");
  ir::Tensor out(*type, t.dims);
  storeInts(ints, unit, out.mutableData());
  return out;
}

ir::Tensor TensorStore::decodeExternal(const TensorView& t, ir::DType type, const std::vector<int64_t>& shape,
                                       const std::string& what) {
  if (type == ir::DType::kString) throw UserError("{}: strings cannot be external data", what);
  std::string location;
  int64_t offset = 0;
  const int64_t bytes = ir::bytesOf(type, ir::elementCount(shape));
  for (const auto& [key, value] : t.externalData) {
    if (key == "location") location = value;
    if (key == "offset") offset = number(value, "offset", what);
    if (key == "length") {
      int64_t length = number(value, "length", what);
      if (length != bytes)
        throw UserError("{}: shape [{}] of {} needs {} bytes, its external data has length {}", what,
                        fmt::join(shape, ","), ir::dtypeName(type), bytes, length);
    }
  }
  if (location.empty()) throw UserError("{}: external data without a location", what);
  try {
    const External& e = open(location);
    const int64_t size = int64_t(e.file->bytes().size());
    if (offset > size || bytes > size - offset)
      throw UserError("external data {} is too short: {} bytes at offset {} are wanted, the file has {}",
                      shown(location), bytes, offset, size);
    return view(type, shape, e.file->bytes().substr(size_t(offset), size_t(bytes)), e.file);
  } catch (const UserError& e) {
    throw UserError("{}: {}", what, e.what());
  }
}

const TensorStore::External& TensorStore::open(const std::string& location) {
  for (const External& e : externals_)
    if (e.location == location) return e;
  if (location.find('\0') != location.npos)
    throw UserError("external data location {} holds a zero byte", shown(location));
  const fs::path relative(location);
  if (relative.is_absolute())
    throw UserError("external data {} is an absolute path: only files in the model's folder are read", shown(location));
  if (directory_.empty())
    throw UserError("external data {} is wanted, but the model was given as bytes without a folder", shown(location));
  for (const auto& part : relative)
    if (part == "..") throw UserError("external data {} points outside the model's folder", shown(location));
  std::error_code err;
  const fs::path folder = fs::canonical(directory_, err);
  if (err) throw UserError("cannot open the folder {}: {}", shown(directory_), err.message());
  const fs::path full = fs::path(directory_) / relative, real = fs::canonical(full, err);
  if (err) throw UserError("cannot open external data {}: {}", shown(full.string()), err.message());
  // Links may lead elsewhere in the folder but not out of it: a model must not make us read other people's files.
  auto [end, rest] = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end());
  if (end != folder.end())
    throw UserError("external data {} is a link to {}, outside the model's folder: copy the file there",
                    shown(location), shown(real.string()));
  externals_.push_back({location, MappedFile::open(real.string())});
  return externals_.back();
}

}  // namespace rutter::frontend
