#pragma once
// An ONNX model as views into its bytes: what the wire format says, checked for form but not for meaning.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rutter::frontend {

/// TensorProto. Typed elements stay in `message` and are decoded when wanted.
struct TensorView {
  std::string_view message, name, raw;
  std::vector<int64_t> dims;
  int32_t dataType = 0;
  bool hasRaw = false, external = false, segmented = false;
  std::vector<std::pair<std::string_view, std::string_view>> externalData;
};

struct GraphView;
enum class AttrType {
  kUndefined,
  kFloat,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kTensors,
  kGraphs,
  kSparse,
  kSparses,
  kTypeProto,
  kTypeProtos
};

struct AttributeView {
  std::string_view name, refName, s;
  int type = 0;  ///< as in the file: AttrType, or a number beyond it
  int64_t i = 0;
  float f = 0;
  std::shared_ptr<const TensorView> t;
  std::shared_ptr<const GraphView> g;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
};

struct NodeView {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeView> attributes;
};

struct ValueInfoView {
  std::string_view name, type;  ///< type: a TypeProto message, empty if absent
};

struct GraphView {
  std::string_view name;
  std::vector<NodeView> nodes;
  std::vector<TensorView> initialisers;
  std::vector<ValueInfoView> inputs, outputs;
  std::vector<std::string_view> sparse;  ///< names of sparse initialisers
};

using Opsets = std::map<std::string, int64_t, std::less<>>;  ///< domain ("" for ai.onnx) -> version

struct FunctionView {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeView> defaults;  ///< attributes with a default value
  std::vector<NodeView> nodes;
  Opsets opsets;
};

struct ModelView {
  int64_t irVersion = 0;
  std::string_view producer, producerVersion;
  Opsets opsets;
  std::shared_ptr<const GraphView> graph;
  std::vector<FunctionView> functions;
};

/// UserError if the bytes are no ONNX model: torn, of another format, an unknown IR version, nested too deep.
ModelView parseModel(std::string_view bytes);

/// A TensorProto on its own, as ONNX's test data has them. UserError if the bytes are none.
TensorView parseTensorProto(std::string_view bytes);

/// Depth to which graphs and types may nest.
constexpr int kMaxNesting = 64;

}  // namespace rutter::frontend
