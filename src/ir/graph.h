#pragma once
// The IR: regions of nodes over typed values in SSA form. A node may own regions (bodies of If, Loop, Scan), which
// capture values of the regions around them.
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor.h"
#include "ir/type.h"

namespace rutter::ir {

struct Node;
struct Region;

/// An attribute of a node, as in ONNX. Graph attributes become regions of the node.
using Attr = std::variant<int64_t, float, std::string, Tensor, std::vector<int64_t>, std::vector<float>,
                          std::vector<std::string>>;

struct Value {
  std::string name;  ///< unique within the graph
  Type type;
  Node* producer = nullptr;        ///< null for inputs of a region and for constants
  int outputIndex = 0;             ///< which output of the producer
  std::optional<Tensor> constant;  ///< known contents (weights, folded results)
  std::optional<Dims> symbolic;    ///< contents of an integer tensor of rank 0 or 1 as expressions, if known
  std::vector<Node*> users;        ///< one entry a use; kept by Node/Region edits below
  bool isConstant() const { return constant.has_value(); }
};

struct Node {
  std::string op;                    ///< operator name: "Conv"
  std::string domain;                ///< "" is ai.onnx; "rutter" holds Rutter's own
  std::string name;                  ///< unique; unnamed ONNX nodes are OpType_<index>
  std::vector<std::string> origins;  ///< names of the ONNX nodes that this one stands for
  std::map<std::string, Attr> attrs;
  std::vector<Value*> inputs;   ///< null: an optional input left out
  std::vector<Value*> outputs;  ///< null: an optional output not wanted
  std::vector<std::unique_ptr<Region>> regions;
  Region* parent = nullptr;

  bool has(const std::string& a) const { return attrs.count(a) > 0; }
  int64_t getInt(const std::string& a, int64_t fallback) const;
  float getFloat(const std::string& a, float fallback) const;
  std::string getString(const std::string& a, const std::string& fallback) const;
  std::vector<int64_t> getInts(const std::string& a, std::vector<int64_t> fallback = {}) const;
  std::vector<float> getFloats(const std::string& a) const;
  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* output(size_t i = 0) const { return i < outputs.size() ? outputs[i] : nullptr; }
};

/// A list of nodes in topological order, with inputs and outputs.
struct Region {
  std::list<std::unique_ptr<Node>> nodes;
  std::vector<Value*> inputs, outputs;
  Node* owner = nullptr;  ///< null for the top region
};

/// A condition on the run-time shapes that the compiled program relies on.
struct Constraint {
  enum class Kind : uint8_t { kEqual, kDivisible, kAtLeast };
  Kind kind;
  Dim a, b;           ///< a == b, a % b == 0, a >= b
  std::string where;  ///< names the node: "Concat.0: parts must agree on axis 2"
};

/// A whole network. Values live in the graph and are referred to by pointer; erase() keeps uses right.
class Graph {
 public:
  Graph() : top_(std::make_unique<Region>()) {}
  Region& top() { return *top_; }
  const Region& top() const { return *top_; }

  Value* makeValue(const std::string& name, Type type = {});  ///< the name is made unique if taken
  Value* makeConstant(const std::string& name, Tensor t);     ///< typed and known
  /// Appends a node (or inserts it before `before`); registers uses and producers.
  Node* makeNode(Region& r, const std::string& op, std::vector<Value*> inputs, std::vector<Value*> outputs,
                 const Node* before = nullptr);
  void setInput(Node* n, size_t i, Value* v);  ///< rewires one use
  void replaceUses(Value* from, Value* to);    ///< every use, region outputs included
  void eraseNode(Node* n);                     ///< its outputs must have no users
  bool isOutput(const Value* v) const;         ///< of the top region
  int removeDead();                            ///< nodes without used outputs; returns how many
  void removeDeadValues();                     ///< frees constants and values that nothing refers to
  std::string uniqueName(const std::string& base);
  /// Gives a value a name that no value made later gets. UserError if another value has it.
  void rename(Value* v, const std::string& name);
  /// Throws InternalError on a broken invariant (order, uses, types unset).
  void verify() const;
  std::string print() const;  ///< one line a node, for people
  /// A deep copy (constants share their bytes), so that one parsed model serves many builds.
  std::unique_ptr<Graph> clone() const;

  SymbolTable symbols;                  ///< bounds from the profile
  std::vector<Constraint> constraints;  ///< collected by shape inference
  std::string name;
  const std::list<std::unique_ptr<Value>>& values() const { return values_; }

 private:
  std::list<std::unique_ptr<Value>> values_;
  std::map<std::string, int> names_;
  std::unique_ptr<Region> top_;
};

}  // namespace rutter::ir
