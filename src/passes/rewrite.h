#pragma once
// What graph rewrites share: making typed nodes in place, replacing values, looking at constants and chains.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace rutter::passes {

/// Builds nodes before `at`. Each carries the origins of all nodes in `replaced`, in order, and is typed by its shape
/// rule at once.
class Builder {
 public:
  Builder(ir::Graph& g, ir::Node* at, std::initializer_list<const ir::Node*> replaced);
  Builder(ir::Graph& g, ir::Node* at, const std::vector<const ir::Node*>& replaced);
  using Attrs = std::map<std::string, ir::Attr>;

  /// One output, named after the first replaced node's output.
  ir::Value* node(const std::string& op, std::vector<ir::Value*> inputs, Attrs attrs = {},
                  const std::string& domain = "");
  std::vector<ir::Value*> nodes(const std::string& op, std::vector<ir::Value*> inputs, size_t outputs,
                                Attrs attrs = {});
  ir::Value* constant(ir::Tensor t);
  ir::Value* ints(const std::vector<int64_t>& v) { return constant(ir::Tensor::ofInts(v)); }
  /// An int64 rank-1 value with these contents: a constant, or a rutter.ShapeValue when they are expressions.
  ir::Value* shape(const ir::Dims& dims);
  /// `v` with these dims (row-major order kept): `v` itself if it has them already.
  ir::Value* reshape(ir::Value* v, const ir::Dims& dims);
  ir::Value* transpose(ir::Value* v, const std::vector<int64_t>& perm);

 private:
  ir::Graph& graph_;
  ir::Node* at_;
  std::vector<std::string> origins_;
  std::string base_;
};

/// True if `from` can be replaced by `to` everywhere: outputs of the graph keep their names, so an output can only be
/// replaced by a value that a node computes and that is no output itself.
bool canReplace(const ir::Graph& g, const ir::Value* from, const ir::Value* to);
/// Rewires every use of `from` to `to`; a graph output hands its name over. False (and nothing done) if !canReplace.
bool replaceValue(ir::Graph& g, ir::Value* from, ir::Value* to);
/// Adds origins of `from` to `to` that it does not have yet.
void addOrigins(ir::Node* to, const ir::Node* from);

/// The producer if it is the standard operator `op`, else null.
ir::Node* producer(const ir::Value* v, std::string_view op);
bool isOp(const ir::Node* n, std::string_view op);  ///< in the standard domain
/// True if the only use of `v` is one input of one node, and it is no output of the graph.
bool hasOneUse(const ir::Graph& g, const ir::Value* v);
/// The value that every element of a constant has; nothing if `v` is not constant, empty, not numeric, or varies.
std::optional<double> splat(const ir::Value* v);
/// True if `v` is a constant with every element within a few ulps (fp32) of `x`.
bool isSplat(const ir::Value* v, double x);
/// A splat constant that also cannot enlarge what it is combined with by broadcasting (rank at most that of `with`, all
/// extents 1).
bool isScalarFor(const ir::Value* v, const ir::Value* with);
/// Both operands in either order: f(a, b) or f(b, a).
template <typename F>
bool eitherOrder(const ir::Node* n, F&& f) {
  if (n->inputs.size() != 2 || !n->inputs[0] || !n->inputs[1]) return false;
  return f(n->inputs[0], n->inputs[1]) || f(n->inputs[1], n->inputs[0]);
}
/// Contents of an integer input: constants or symbolic expressions; nothing if unknown or left out.
std::optional<ir::Dims> knownDims(const ir::Value* v);
std::optional<std::vector<int64_t>> knownInts(const ir::Value* v);
/// True if dims are provably equal.
bool sameDims(const ir::Dims& a, const ir::Dims& b);
/// Nodes of all regions, in order, as pointers that stay valid while nodes are added.
std::vector<ir::Node*> allNodes(ir::Graph& g);
/// Pointwise operators of one input / of two broadcasting inputs (standard domain, and Rutter's own).
bool isUnaryPointwise(const ir::Node* n);
bool isBinaryPointwise(const ir::Node* n);
/// Any operator that computes each output element from the elements of its inputs at the same (broadcast) place.
bool isPointwise(const ir::Node* n);

}  // namespace rutter::passes
