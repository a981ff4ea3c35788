#include "onnx/build.h"

#include <unordered_map>
#include <unordered_set>

#include "onnx/import.h"
#include "onnx/schema.h"
#include "onnx/types.h"
#include "onnx/upgrade.h"
#include "ops/op.h"

namespace rutter::frontend {
namespace {

constexpr int64_t kMostNodes = 250'000;  // functions that call functions can grow without bound
constexpr size_t kMostAxes = 8;          // of an input or output: what Dims of the API can hold

/// Values by the names that a graph or a function body gives them.
struct Scope {
  std::unordered_map<std::string_view, ir::Value*> values;  // null: an optional input that the call leaves out
  const Scope* outer = nullptr;

  std::optional<ir::Value*> find(std::string_view name) const {
    for (const Scope* s = this; s; s = s->outer)
      if (auto it = s->values.find(name); it != s->values.end()) return it->second;
    return std::nullopt;
  }
};

/// What a body is built under: its opsets, and inside a function the attributes of the call.
struct Frame {
  const Opsets* opsets;
  std::string prefix;  // of node names, "call/"
  const std::map<std::string, ir::Attr>* attributes = nullptr;
  int depth = 0;
};

class Builder {
 public:
  Builder(const ModelView& m, TensorStore& t) : model_(m), tensors_(t), graph_(std::make_unique<ir::Graph>()) {}

  std::unique_ptr<ir::Graph> run() {
    graph_->name = std::string(model_.graph->name);
    Scope scope;
    buildGraph(*model_.graph, graph_->top(), scope, {&model_.opsets, ""}, true);
    graph_->constraints.clear();  // those of the first inference: specialise collects them for its profile
    // Hashed once here: every decision works on a copy of the graph, and copies share what is known.
    for (const auto& n : graph_->top().nodes)
      for (const ir::Value* v : n->inputs)
        if (v && v->constant && v->type.dtype != ir::DType::kString) v->constant->contentHash();
    return std::move(graph_);
  }

 private:
  void define(Scope& scope, std::string_view name, ir::Value* v, const char* what) {
    if (!scope.values.emplace(name, v).second) throw UserError("{} '{}' is defined twice", what, shown(name));
  }

  void buildGraph(const GraphView& g, ir::Region& r, Scope& scope, const Frame& frame, bool top) {
    if (!g.sparse.empty())
      throw UserError("initializer '{}' is sparse: sparse tensors are not supported, store it densely",
                      shown(g.sparse[0]));
    std::unordered_set<std::string_view> initialised;
    for (const TensorView& t : g.initialisers) initialised.insert(t.name);
    // Inputs and outputs of the model come first: they keep their names whatever else is called so.
    for (const ValueInfoView& in : g.inputs) {
      if (in.name.empty()) throw UserError("an input has no name");
      if (initialised.count(in.name)) continue;  // a default value; it is the value here
      const std::string what = fmt::format("input '{}'", shown(in.name));
      ir::Type type;
      if (!in.type.empty() || top) type = decodeType(in.type, in.name, symbols_, what);
      if (top && type.rank() > kMostAxes)
        throw UserError("{} has rank {}, which is not supported: at most {} axes are", what, type.rank(), kMostAxes);
      ir::Value* v = graph_->makeValue(std::string(in.name), type);
      define(scope, in.name, v, "input");
      r.inputs.push_back(v);
      for (const ir::Dim& d : type.dims)
        if (auto s = d.asSymbol()) graph_->symbols.try_emplace(*s);
    }
    std::unordered_map<std::string_view, ir::Value*> preset;
    if (top) {
      std::unordered_set<std::string_view> given;
      for (const NodeView& n : g.nodes) given.insert(n.outputs.begin(), n.outputs.end());
      for (const ValueInfoView& out : g.outputs)
        if (given.count(out.name) && !scope.values.count(out.name) && !preset.count(out.name))
          preset.emplace(out.name, graph_->makeValue(std::string(out.name)));
    }
    for (const TensorView& t : g.initialisers) {
      const std::string what = fmt::format("initializer '{}'", shown(t.name));
      if (t.name.empty()) throw UserError("an initializer has no name");
      define(scope, t.name, graph_->makeConstant(frame.prefix + std::string(t.name), tensors_.decode(t, what)),
             "initializer");
    }
    buildBody(g.nodes, r, scope, frame, preset);
    std::unordered_set<std::string_view> outputs;
    for (const ValueInfoView& out : g.outputs) {
      auto v = scope.find(out.name);
      if (!v || !*v) throw UserError("output '{}' is not defined: no node gives it", shown(out.name));
      if (!outputs.insert(out.name).second) throw UserError("output '{}' is listed twice", shown(out.name));
      if (top) checkOutputType(out, **v);
      r.outputs.push_back(*v);
    }
    if (top && r.outputs.empty()) throw UserError("the model has no outputs");
  }

  /// A declared output is a promise to whoever reads it: wrong, it would have numbers read as another type.
  static void checkOutputType(const ValueInfoView& out, const ir::Value& v) {
    if (!v.type.known) return;  // its dtype is not inferred yet
    if (v.type.rank() > kMostAxes)
      throw UserError("output '{}' has rank {}, which is not supported: at most {} axes are", shown(out.name),
                      v.type.rank(), kMostAxes);
    ir::Type declared;
    try {
      SymbolNames unused;
      if (out.type.empty()) return;
      declared = decodeType(out.type, out.name, unused, "");
    } catch (const UserError&) {
      return;  // no type, or one without an element type: nothing is promised
    }
    if (declared.kind == ir::TypeKind::kTensor && v.type.kind == ir::TypeKind::kTensor &&
        declared.dtype != v.type.dtype)
      throw UserError("output '{}' is declared {} but is {}", shown(out.name), ir::dtypeName(declared.dtype),
                      ir::dtypeName(v.type.dtype));
  }

  /// `preset`: values that outputs of these nodes are to be (outputs of the model, or of the call of a function).
  void buildBody(const std::vector<NodeView>& nodes, ir::Region& r, Scope& scope, const Frame& frame,
                 const std::unordered_map<std::string_view, ir::Value*>& preset) {
    if (frame.depth > kMaxNesting) throw UserError("functions and subgraphs are nested more than {} deep", kMaxNesting);
    total_ += int64_t(nodes.size());
    if (total_ > kMostNodes)
      throw UserError("the model has more than {} nodes once its functions are inlined", kMostNodes);
    for (size_t i = 0; i < nodes.size(); i++)
      for (auto name : nodes[i].outputs) {
        if (name.empty()) continue;
        auto it = preset.find(name);
        ir::Value* v = it != preset.end() ? it->second : graph_->makeValue(frame.prefix + std::string(name));
        if (!scope.values.emplace(name, v).second)
          throw UserError("node {} ({}): value '{}' is defined twice",
                          shown(nodeName(nodes[i].name, nodes[i].op, int64_t(i))), shown(nodes[i].op), shown(name));
      }
    for (size_t i : topologicalOrder(nodes)) buildNode(nodes[i], int64_t(i), r, scope, frame);
  }

  void buildNode(const NodeView& n, int64_t index, ir::Region& r, Scope& scope, const Frame& frame) {
    const std::string name = uniqueNodeName(frame.prefix + nodeName(n.name, n.op, index));
    const std::string what = fmt::format("node {} ({})", shown(name), shown(n.op));
    std::vector<ir::Value*> inputs, outputs;
    for (auto in : n.inputs) {
      if (in.empty()) {
        inputs.push_back(nullptr);
        continue;
      }
      auto v = scope.find(in);
      if (!v) throw UserError("{}: input '{}' is not defined: no input, initializer or node gives it", what, shown(in));
      inputs.push_back(*v);
    }
    for (auto out : n.outputs) outputs.push_back(out.empty() ? nullptr : scope.values.at(out));

    if (const FunctionView* f = findFunction(model_, n)) {
      inlineFunction(*f, n, name, inputs, outputs, r, frame, what);
      return;
    }
    if (n.domain.empty() && n.op == "Constant") {
      if (outputs.size() != 1 || !outputs[0]) throw UserError("{}: one output is wanted", what);
      ir::Tensor t = constantOf(n, frame, what);
      outputs[0]->type = ir::Type::tensor(t.dtype(), ir::toDims(t.shape()));
      outputs[0]->constant = std::move(t);
      return;
    }
    const int64_t opset = opsetOf(n, frame, what);
    while (!outputs.empty() && !outputs.back()) outputs.pop_back();
    ir::Node* node = graph_->makeNode(r, std::string(n.op), std::move(inputs), std::move(outputs));
    node->domain = std::string(n.domain);
    node->name = name;
    node->origins = {name};
    for (const AttributeView& a : n.attributes) {
      if (a.g) {
        addRegion(*node, a, scope, frame, name);
      } else if (auto v = attribute(a, frame, what)) {
        if (!node->attrs.emplace(std::string(a.name), std::move(*v)).second)
          throw UserError("{}: attribute '{}' is given twice", what, shown(a.name));
      }
    }
    // Nodes from here to the end are this one and the helpers of its upgrade.
    const auto before = r.nodes.size() - 1;
    upgradeNode(*graph_, r, *node, opset);
    auto it = r.nodes.end();
    for (size_t i = r.nodes.size(); i > before; i--) --it;
    for (; it != r.nodes.end(); ++it) {
      if (it->get() != node) (*it)->name = uniqueNodeName((*it)->name);
      // Later upgrades may depend on rank or dtype. What cannot be inferred yet (no shape given, sizes that need a
      // profile) stays unknown; the inference that counts reports it.
      try {
        ops::inferNode(*graph_, **it);
      } catch (const UserError&) {
      }
    }
  }

  /// attrs[name] becomes the index of the node's region.
  void addRegion(ir::Node& node, const AttributeView& a, Scope& scope, const Frame& frame, const std::string& name) {
    node.attrs[std::string(a.name)] = int64_t(node.regions.size());
    node.regions.push_back(std::make_unique<ir::Region>());
    node.regions.back()->owner = &node;
    Scope inner;
    inner.outer = &scope;
    Frame sub = frame;
    sub.prefix = name + "/";
    sub.depth++;
    buildGraph(*a.g, *node.regions.back(), inner, sub, false);
  }

  void inlineFunction(const FunctionView& f, const NodeView& n, const std::string& name,
                      const std::vector<ir::Value*>& inputs, const std::vector<ir::Value*>& outputs, ir::Region& r,
                      const Frame& frame, const std::string& what) {
    if (inputs.size() > f.inputs.size() || outputs.size() > f.outputs.size())
      throw UserError("{}: {} inputs and {} outputs, the function has {} and {}", what, inputs.size(), outputs.size(),
                      f.inputs.size(), f.outputs.size());
    Scope scope;
    for (size_t i = 0; i < f.inputs.size(); i++)
      define(scope, f.inputs[i], i < inputs.size() ? inputs[i] : nullptr, "function input");
    std::map<std::string, ir::Attr> attributes;
    for (const AttributeView& a : f.defaults)
      if (auto v = attribute(a, frame, what)) attributes.insert_or_assign(std::string(a.name), std::move(*v));
    for (const AttributeView& a : n.attributes)
      if (auto v = attribute(a, frame, what)) attributes.insert_or_assign(std::string(a.name), std::move(*v));
    Frame inner{&f.opsets, name + "/", &attributes, frame.depth + 1};
    std::unordered_map<std::string_view, ir::Value*> preset;
    std::unordered_set<std::string_view> given;
    for (const NodeView& b : f.nodes) given.insert(b.outputs.begin(), b.outputs.end());
    for (size_t i = 0; i < outputs.size(); i++)
      if (outputs[i] && given.count(f.outputs[i])) preset.emplace(f.outputs[i], outputs[i]);
    buildBody(f.nodes, r, scope, inner, preset);
    // An output that is an input, or one listed twice, is a copy.
    for (size_t i = 0; i < outputs.size(); i++) {
      if (!outputs[i]) continue;
      auto v = scope.find(f.outputs[i]);
      if (!v || !*v) throw UserError("{}: the function's output '{}' is not defined", what, shown(f.outputs[i]));
      if (*v == outputs[i]) continue;
      ir::Node* copy = graph_->makeNode(r, "Identity", {*v}, {outputs[i]});
      copy->name = uniqueNodeName(name + "/Identity");
      copy->origins = {copy->name};
      try {
        ops::inferNode(*graph_, *copy);
      } catch (const UserError&) {  // as in buildNode
      }
    }
  }

  std::optional<ir::Attr> attribute(const AttributeView& a, const Frame& frame, const std::string& what) {
    if (!a.refName.empty()) {
      if (!frame.attributes)
        throw UserError("{}: attribute '{}' refers to a function's attribute outside of a function", what,
                        shown(a.name));
      auto it = frame.attributes->find(std::string(a.refName));
      return it == frame.attributes->end() ? std::nullopt
                                           : std::optional(it->second);  // not given: the operator's default
    }
    switch (static_cast<AttrType>(a.type)) {
      case AttrType::kFloat:
        return a.f;
      case AttrType::kInt:
        return a.i;
      case AttrType::kString:
        return std::string(a.s);
      case AttrType::kFloats:
        return a.floats;
      case AttrType::kInts:
        return a.ints;
      case AttrType::kStrings:
        return std::vector<std::string>(a.strings.begin(), a.strings.end());
      case AttrType::kTensor:
        if (a.t) return tensors_.decode(*a.t, fmt::format("{}: attribute '{}'", what, shown(a.name)));
        break;
      default:
        break;
    }
    throw UserError("{}: attribute '{}' has type {}, which is not supported", what, shown(a.name), a.type);
  }

  ir::Tensor constantOf(const NodeView& n, const Frame& frame, const std::string& what) {
    if (n.attributes.size() != 1)
      throw UserError("{}: one attribute with the value is wanted, there are {}", what, n.attributes.size());
    const AttributeView& a = n.attributes[0];
    if (a.name == "sparse_value")
      throw UserError("{}: sparse tensors are not supported, store the value densely", what);
    auto v = attribute(a, frame, what);
    if (v && a.name == "value")
      if (auto* t = std::get_if<ir::Tensor>(&*v)) return *t;
    if (v && a.name == "value_int")
      if (auto* i = std::get_if<int64_t>(&*v)) return ir::Tensor::ofInts({*i}).reshaped({});
    if (v && a.name == "value_ints")
      if (auto* i = std::get_if<std::vector<int64_t>>(&*v)) return ir::Tensor::ofInts(*i);
    if (v && a.name == "value_float")
      if (auto* f = std::get_if<float>(&*v)) return ir::Tensor::ofFloats({}, {*f});
    if (v && a.name == "value_floats")
      if (auto* f = std::get_if<std::vector<float>>(&*v)) return ir::Tensor::ofFloats({int64_t(f->size())}, *f);
    if (v && a.name == "value_string")
      if (auto* s = std::get_if<std::string>(&*v)) return ir::Tensor::ofStrings({}, {*s});
    if (v && a.name == "value_strings")
      if (auto* s = std::get_if<std::vector<std::string>>(&*v)) return ir::Tensor::ofStrings({int64_t(s->size())}, *s);
    throw UserError("{}: attribute '{}' of type {} is no constant's value", what, shown(a.name), a.type);
  }

  int64_t opsetOf(const NodeView& n, const Frame& frame, const std::string& what) {
    auto it = frame.opsets->find(n.domain);
    if (it == frame.opsets->end())
      throw UserError("{}: the model imports no opset of domain '{}'", what,
                      n.domain.empty() ? "ai.onnx" : shown(n.domain));
    if (n.domain.empty() && (it->second < kOldestOpset || it->second > newestOpset()))
      throw UserError("{}: opset {} is not supported: {} to {} are; {}", what, it->second, kOldestOpset, newestOpset(),
                      it->second < kOldestOpset ? "export the model anew, or convert it with onnx.version_converter"
                                                : "export it for an older opset");
    return it->second;
  }

  std::string uniqueNodeName(const std::string& base) {
    auto [it, fresh] = nodeNames_.try_emplace(base, 0);
    if (fresh) return base;
    std::string s;
    do s = fmt::format("{}.{}", base, ++nodeNames_[base]);
    while (nodeNames_.count(s));
    nodeNames_.emplace(s, 0);
    return s;
  }

  const ModelView& model_;
  TensorStore& tensors_;
  std::unique_ptr<ir::Graph> graph_;
  SymbolNames symbols_;
  std::unordered_map<std::string, int> nodeNames_;
  int64_t total_ = 0;
};

}  // namespace

std::unique_ptr<ir::Graph> buildGraph(const ModelView& model, TensorStore& tensors) {
  checkOperators(model);
  return Builder(model, tensors).run();
}

}  // namespace rutter::frontend
