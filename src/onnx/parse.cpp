// The wire format (onnx.proto): fields by number, unknown ones skipped as protobuf asks.
#include <algorithm>

#include "onnx/file.h"
#include "onnx/model.h"
#include "onnx/schema.h"
#include "onnx/wire.h"

namespace rutter::frontend {
namespace {

std::shared_ptr<const GraphView> parseGraph(std::string_view bytes, int depth);

void parseOpset(std::string_view bytes, Opsets& out) {
  pbf_reader r = reader(bytes);
  std::string_view domain;
  int64_t version = 0;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        domain = readView(r);
        break;
      case 2:
        version = readInt(r);
        break;
      default:
        r.skip();
    }
  }
  if (domain == "ai.onnx") domain = "";
  auto [it, fresh] = out.try_emplace(std::string(domain), version);
  it->second = std::max(it->second, version);
}

std::pair<std::string_view, std::string_view> parseEntry(std::string_view bytes) {
  pbf_reader r = reader(bytes);
  std::pair<std::string_view, std::string_view> e;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        e.first = readView(r);
        break;
      case 2:
        e.second = readView(r);
        break;
      default:
        r.skip();
    }
  }
  return e;
}

TensorView parseTensor(std::string_view bytes) {
  TensorView t;
  t.message = bytes;
  pbf_reader r = reader(bytes);
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        readInts(r, t.dims);
        break;
      case 2:
        t.dataType = static_cast<int32_t>(readInt(r));
        break;
      case 3:
        t.segmented = true, r.skip();
        break;
      case 8:
        t.name = readView(r);
        break;
      case 9:
        t.raw = readView(r), t.hasRaw = true;
        break;
      case 13:
        t.externalData.push_back(parseEntry(readView(r)));
        break;
      case 14:
        t.external = readInt(r) == 1;
        break;
      default:
        r.skip();
    }
  }
  return t;
}

AttributeView parseAttribute(std::string_view bytes, int depth) {
  AttributeView a;
  AttrType guess = AttrType::kUndefined;  // files of the first IR versions leave `type` out
  pbf_reader r = reader(bytes);
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        a.name = readView(r);
        break;
      case 2:
        a.f = readFloat(r), guess = AttrType::kFloat;
        break;
      case 3:
        a.i = readInt(r), guess = AttrType::kInt;
        break;
      case 4:
        a.s = readView(r), guess = AttrType::kString;
        break;
      case 5:
        a.t = std::make_shared<TensorView>(parseTensor(readView(r))), guess = AttrType::kTensor;
        break;
      case 6:
        a.g = parseGraph(readView(r), depth + 1), guess = AttrType::kGraph;
        break;
      case 7:
        readFixed(r, a.floats), guess = AttrType::kFloats;
        break;
      case 8:
        readInts(r, a.ints), guess = AttrType::kInts;
        break;
      case 9:
        a.strings.push_back(readView(r)), guess = AttrType::kStrings;
        break;
      case 20:
        a.type = static_cast<int>(readInt(r));
        break;
      case 21:
        a.refName = readView(r);
        break;
      default:
        r.skip();
    }
  }
  if (a.type == 0) a.type = static_cast<int>(guess);
  return a;
}

NodeView parseNode(std::string_view bytes, int depth) {
  NodeView n;
  pbf_reader r = reader(bytes);
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        n.inputs.push_back(readView(r));
        break;
      case 2:
        n.outputs.push_back(readView(r));
        break;
      case 3:
        n.name = readView(r);
        break;
      case 4:
        n.op = readView(r);
        break;
      case 5:
        n.attributes.push_back(parseAttribute(readView(r), depth));
        break;
      case 7:
        n.domain = readView(r);
        break;
      case 8:
        n.overload = readView(r);
        break;
      default:
        r.skip();
    }
  }
  if (n.domain == "ai.onnx") n.domain = "";
  return n;
}

ValueInfoView parseValueInfo(std::string_view bytes) {
  ValueInfoView v;
  pbf_reader r = reader(bytes);
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        v.name = readView(r);
        break;
      case 2:
        v.type = readView(r);
        break;
      default:
        r.skip();
    }
  }
  return v;
}

/// SparseTensorProto: only its name is wanted (values is its first field), for the refusal.
std::string_view sparseName(std::string_view bytes) {
  pbf_reader r = reader(bytes);
  while (r.next()) {
    if (r.tag() == 1) return parseTensor(readView(r)).name;
    r.skip();
  }
  return {};
}

std::shared_ptr<const GraphView> parseGraph(std::string_view bytes, int depth) {
  if (depth > kMaxNesting) throw UserError("graphs are nested more than {} deep", kMaxNesting);
  auto g = std::make_shared<GraphView>();
  pbf_reader r = reader(bytes);
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        g->nodes.push_back(parseNode(readView(r), depth));
        break;
      case 2:
        g->name = readView(r);
        break;
      case 5:
        g->initialisers.push_back(parseTensor(readView(r)));
        break;
      case 11:
        g->inputs.push_back(parseValueInfo(readView(r)));
        break;
      case 12:
        g->outputs.push_back(parseValueInfo(readView(r)));
        break;
      case 15:
        g->sparse.push_back(sparseName(readView(r)));
        break;
      default:
        r.skip();
    }
  }
  return g;
}

FunctionView parseFunction(std::string_view bytes) {
  FunctionView f;
  pbf_reader r = reader(bytes);
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        f.name = readView(r);
        break;
      case 4:
        f.inputs.push_back(readView(r));
        break;
      case 5:
        f.outputs.push_back(readView(r));
        break;
      case 7:
        f.nodes.push_back(parseNode(readView(r), 0));
        break;
      case 9:
        parseOpset(readView(r), f.opsets);
        break;
      case 10:
        f.domain = readView(r);
        break;
      case 11:
        f.defaults.push_back(parseAttribute(readView(r), 0));
        break;
      case 13:
        f.overload = readView(r);
        break;
      default:
        r.skip();
    }
  }
  if (f.domain == "ai.onnx") f.domain = "";
  return f;
}

ModelView parse(std::string_view bytes) {
  ModelView m;
  pbf_reader r = reader(bytes);
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        m.irVersion = readInt(r);
        break;
      case 2:
        m.producer = readView(r);
        break;
      case 3:
        m.producerVersion = readView(r);
        break;
      case 7:
        m.graph = parseGraph(readView(r), 0);
        break;
      case 8:
        parseOpset(readView(r), m.opsets);
        break;
      case 25:
        m.functions.push_back(parseFunction(readView(r)));
        break;
      default:
        r.skip();
    }
  }
  return m;
}

}  // namespace

ModelView parseModel(std::string_view bytes) {
  if (bytes.empty()) throw UserError("the model is empty (0 bytes)");
  if (bytes.starts_with("version https://git-lfs"))
    throw UserError("this is a Git LFS pointer, not the model itself: run `git lfs pull` in its repository");
  if (bytes.size() > INT32_MAX)
    throw UserError("the model has {} bytes; protobuf ends at 2 GiB: save its weights as external data", bytes.size());
  ModelView m;
  try {
    m = parse(bytes);
  } catch (const protozero::end_of_buffer_exception&) {
    throw UserError("not an ONNX model, or one cut short: a field runs past the end of its {} bytes", bytes.size());
  } catch (const protozero::exception& e) {
    throw UserError("not an ONNX model, or a damaged one: its bytes are no protocol buffer ({})", e.what());
  }
  if (!m.graph) throw UserError("not an ONNX model: it holds no graph");
  if (m.irVersion < 3 || m.irVersion > newestIrVersion())
    throw UserError("IR version {} is not supported: 3 to {} are", m.irVersion, newestIrVersion());
  return m;
}

TensorView parseTensorProto(std::string_view bytes) {
  try {
    return parseTensor(bytes);
  } catch (const std::exception& e) {
    throw UserError("not a TensorProto, or a damaged one ({} bytes)", bytes.size());
  }
}

}  // namespace rutter::frontend
