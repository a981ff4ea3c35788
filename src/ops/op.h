#pragma once
// An operator: its shape rule and its oracle, in one file next to each other (src/ops/<name>.cpp), listed in ops.def.
// The oracle is plain C++ that accumulates in double; it is the truth for accuracy, folds constants, and serves
// reference nodes of an engine.
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace rutter::ops {

/// What a shape rule sees. Errors thrown from it are prefixed with the node by `inferNode`.
class InferContext {
 public:
  InferContext(ir::Graph& g, ir::Node& n) : graph(g), node(n) {}
  ir::Graph& graph;
  ir::Node& node;

  bool has(size_t i) const { return node.input(i) != nullptr; }
  size_t inputs() const { return node.inputs.size(); }
  /// Type of a required input; a missing one is a UserError that names its position.
  const ir::Type& in(size_t i) const;
  /// Contents of input i if they are known at build time.
  const ir::Tensor* constant(size_t i) const;
  /// Contents of an integer input of rank 0 or 1 as expressions (also of constants), if known.
  std::optional<ir::Dims> symbolic(size_t i) const;
  /// Contents that the rule cannot do without: UserError "input 1 (shape) must be known when the engine is built".
  ir::Dims needSymbolic(size_t i, const char* what) const;
  std::vector<int64_t> needInts(size_t i, const char* what) const;  ///< and integers, not expressions
  void out(size_t i, ir::DType t, ir::Dims dims);
  void setSymbolic(size_t i, ir::Dims values);
  /// Requires a == b at run time; provably different is a UserError, provably equal adds nothing.
  void requireEqual(const ir::Dim& a, const ir::Dim& b, const std::string& what);
  void requireDivisible(const ir::Dim& a, const ir::Dim& b, const std::string& what);
  void requireAtLeast(const ir::Dim& a, const ir::Dim& b, const std::string& what);  ///< a >= b, likewise
  /// Multidirectional broadcast (ONNX "Broadcasting"). Two different expressions are required equal.
  ir::Dims broadcast(const ir::Dims& a, const ir::Dims& b);
  /// Axis in [-rank, rank) to [0, rank); else UserError.
  int64_t axis(int64_t a, size_t rank) const;

 private:
  void addConstraint(ir::Constraint::Kind kind, const ir::Dim& a, const ir::Dim& b, const std::string& what);
};

/// What an oracle sees: concrete tensors. Outputs are made by `out`.
class EvalContext {
 public:
  EvalContext(const ir::Node& n, std::vector<const ir::Tensor*> in)
      : node(n), inputs(std::move(in)), outputs(n.outputs.size()) {}
  const ir::Node& node;
  std::vector<const ir::Tensor*> inputs;  ///< null: left out
  std::vector<ir::Tensor> outputs;

  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const ir::Tensor& in(size_t i) const;
  ir::Tensor& out(size_t i, ir::DType t, std::vector<int64_t> shape);
  int64_t axis(int64_t a, int64_t rank) const;
};

struct OpDef {
  const char* name;
  const char* domain;  ///< "" is ai.onnx; "rutter": made by passes, never read from files
  int since;           ///< version whose semantics the rule and oracle follow (front end upgrades older nodes to it)
  void (*infer)(InferContext&);
  void (*eval)(EvalContext&);
};

const OpDef* findOp(std::string_view domain, std::string_view name);  ///< null if unknown
std::span<const OpDef* const> allOps();                               ///< in the order of ops.def

/// Shape rule of one node; errors name the node, its op and its inputs' types.
void inferNode(ir::Graph& g, ir::Node& n);
/// Oracle of one node on concrete inputs; errors name the node. Regions of the node are not evaluated here.
std::vector<ir::Tensor> evalNode(const ir::Node& n, const std::vector<const ir::Tensor*>& inputs);
/// Oracle of a whole graph: inputs in graph order -> outputs in graph order. Frees intermediates after their last use.
std::vector<ir::Tensor> evalGraph(const ir::Graph& g, const std::vector<ir::Tensor>& inputs);

}  // namespace rutter::ops
