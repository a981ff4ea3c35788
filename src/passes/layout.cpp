#include "passes/layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "passes/rewrite.h"

namespace rutter::passes {
namespace {

using Order = std::vector<uint8_t>;

Order orderOf(const ir::Value* v) {
  if (!v->type.layout.order.empty()) return v->type.layout.order;
  Order o;
  for (size_t i = 0; i < v->type.rank(); i++) o.push_back(uint8_t(i));
  return o;
}
Order rowMajor(size_t rank) {
  Order o;
  for (size_t i = 0; i < rank; i++) o.push_back(uint8_t(i));
  return o;
}
// The axes that matter: those of extent 1 can be anywhere.
Order wide(const Order& o, const ir::Dims& dims) {
  Order r;
  for (uint8_t a : o)
    if (!dims[a].is(1)) r.push_back(a);
  return r;
}
bool sameMemory(const ir::Dims& dims, const Order& a, const Order& b) {
  return wide(a, dims) == wide(b, dims);
}
// The order of a tensor of dims `a` as that of the same elements under dims `b`, which differ by axes of extent 1 only.
std::optional<Order> mapOnes(const Order& order, const ir::Dims& a, const ir::Dims& b) {
  std::vector<uint8_t> from, to;
  for (size_t i = 0; i < a.size(); i++)
    if (!a[i].is(1)) from.push_back(uint8_t(i));
  for (size_t i = 0; i < b.size(); i++)
    if (!b[i].is(1)) to.push_back(uint8_t(i));
  if (from.size() != to.size()) return std::nullopt;
  for (size_t i = 0; i < from.size(); i++)
    if (!(a[from[i]] == b[to[i]])) return std::nullopt;
  Order r;
  for (uint8_t axis : wide(order, a)) r.push_back(to[size_t(std::find(from.begin(), from.end(), axis) - from.begin())]);
  for (size_t i = b.size(); i-- > 0;)
    if (b[i].is(1)) r.insert(r.begin(), uint8_t(i));
  return r;
}
void setOrder(ir::Value* v, const Order& o) {
  v->type.layout = {};
  if (o != rowMajor(v->type.rank())) v->type.layout.order = o;
}

bool isConv(const ir::Node* n) {
  return (isOp(n, "Conv") || isOp(n, "ConvTranspose")) && n->inputs[0]->type.rank() >= 3 &&
         n->inputs[0]->type.rank() <= 5;
}
// Views: their memory is their input's, whatever a knob says.
bool isPart(const ir::Node* n) {
  return isOp(n, "Slice") || isOp(n, "Split") || isOp(n, "Identity");
}
bool takesAnyOrder(const ir::Node* n) {
  static const std::set<std::string> ops = {"Concat",
                                            "Pad",
                                            "Resize",
                                            "MaxPool",
                                            "AveragePool",
                                            "GlobalAveragePool",
                                            "GlobalMaxPool",
                                            "Softmax",
                                            "LogSoftmax",
                                            "BatchNormalization",
                                            "InstanceNormalization",
                                            "Tile",
                                            "LpNormalization",
                                            "LRN"};
  if (isPointwise(n)) return true;
  if (!n->domain.empty()) return false;
  if (n->op.rfind("Reduce", 0) == 0 || n->op == "ArgMax" || n->op == "ArgMin") return n->getInt("keepdims", 1) == 1;
  return ops.count(n->op) > 0;
}

class Assigner {
 public:
  Assigner(ir::Graph& g, PassContext& ctx) : graph_(g), ctx_(ctx) {}

  void run() {
    for (ir::Value* v : graph_.top().inputs)
      if (auto it = ctx_.ioLayouts.find(v->name); it != ctx_.ioLayouts.end()) v->type.layout = it->second;
    std::vector<ir::Node*> nodes;
    for (auto& n : graph_.top().nodes) nodes.push_back(n.get());
    for (ir::Node* n : nodes) visit(n);
    outputs();
  }

 private:
  void visit(ir::Node* n) {
    if (isConv(n)) return conv(n);
    ir::Value* x = n->input(0);
    if (isOp(n, "Transpose")) return transpose(n);
    if (isOp(n, "Reshape")) return reshape(n);
    if (!isPart(n) && !takesAnyOrder(n)) return;
    const ir::Value* lead = isPart(n) ? x : leading(n);
    if (!lead || lead->type.layout.isRowMajor() || lead->type.rank() != n->outputs[0]->type.rank()) return;
    if (!isPart(n) && !ctx_.get(knob::layout_propagate, *n)) return;
    for (ir::Value* y : n->outputs)
      if (y && y->type.rank() == lead->type.rank()) setOrder(y, orderOf(lead));
  }

  // The operand whose order the result takes: one of the result's shape if there is one, in an order of its own.
  const ir::Value* leading(const ir::Node* n) const {
    const ir::Value* found = nullptr;
    const ir::Value* y = n->outputs[0];
    for (const ir::Value* v : n->inputs) {
      if (!v || v->constant || v->type.rank() != y->type.rank() || v->type.layout.isRowMajor()) continue;
      if (sameMemory(v->type.dims, orderOf(v), rowMajor(v->type.rank()))) continue;  // says nothing
      if (!found || (v->type.dims == y->type.dims && !(found->type.dims == y->type.dims))) found = v;
    }
    // A pooling down to one pixel has lost its spatial order: the label stays.
    if (!found && n->input(0) && !n->inputs[0]->type.layout.isRowMajor()) found = n->inputs[0];
    return found;
  }

  void conv(ir::Node* n) {
    size_t rank = n->inputs[0]->type.rank();
    bool last = ctx_.get(knob::layout_conv, *n) != "nchw";
    Order order = last ? ir::Layout::channelsLast(rank).order : rowMajor(rank);
    ensure(n, order);
    setOrder(n->outputs[0], order);
  }

  // Input 0 of a convolution in the wanted order.
  void ensure(ir::Node* n, const Order& order) {
    ir::Value* x = n->inputs[0];
    if (x->constant || orderOf(x) == order) return;
    if (sameMemory(x->type.dims, orderOf(x), order)) {
      if (x->producer && !isOp(x->producer, "Transpose")) setOrder(x, order);
      return;
    }
    bool toLast = order != rowMajor(order.size());
    if (toLast && x->type.layout.isRowMajor()) {
      auto channels = x->type.dims[1].constant();
      std::string how = ctx_.get(knob::layout_first_conv, *n);
      if (how == "direct" || (how == "auto" && channels && *channels <= 4)) return;
    }
    if (writable(x) && ctx_.get(knob::layout_absorb_cast, *x->producer)) {
      write(x, order);
      return;
    }
    graph_.setInput(n, 0, cast(x, order, n));
  }

  // A value that its producer can write in another order, perhaps through a Reshape that only adds axes of extent 1:
  // nobody but convolutions reads it.
  bool writable(const ir::Value* x) const {
    static const std::set<std::string> writers = {"Concat",           "Pad",     "Resize", "LayerNormalization",
                                                  "RMSNormalization", "Softmax", "Gather"};
    const ir::Node* p = x->producer;
    if (!p || graph_.isOutput(x)) return false;
    bool convs = std::all_of(x->users.begin(), x->users.end(), [&](const ir::Node* u) {
      return isConv(u) && u->inputs[0] == x && std::count(u->inputs.begin(), u->inputs.end(), x) == 1 &&
             ctx_.get(knob::layout_conv, *u) != "nchw";
    });
    if (!convs) return false;
    if (isPointwise(p) || (p->domain.empty() && writers.count(p->op))) return true;
    if (!isOp(p, "Reshape") || !mapOnes(rowMajor(x->type.rank()), x->type.dims, p->inputs[0]->type.dims)) return false;
    const ir::Value* v = p->inputs[0];
    return v->producer && v->users.size() == 1 && !graph_.isOutput(v) && v->type.layout.isRowMajor() &&
           (isPointwise(v->producer) || (v->producer->domain.empty() && writers.count(v->producer->op)));
  }
  void write(ir::Value* x, const Order& order) {
    setOrder(x, order);
    if (isOp(x->producer, "Reshape")) {
      ir::Value* v = x->producer->inputs[0];
      if (auto o = mapOnes(order, x->type.dims, v->type.dims)) setOrder(v, *o);
    }
  }

  ir::Value* cast(ir::Value* x, const Order& order, ir::Node* before) {
    ir::Value*& y = casts_[{x, order}];
    if (!y) {
      Builder b(graph_, before, {x->producer ? x->producer : before});
      y = b.node("LayoutCast", {x}, {}, "rutter");
      setOrder(y, order);
    }
    return y;
  }

  void transpose(ir::Node* n) {
    ir::Value *x = n->inputs[0], *y = n->outputs[0];
    auto perm = n->getInts("perm");
    size_t rank = x->type.rank();
    if (perm.empty())
      for (size_t i = rank; i-- > 0;) perm.push_back(int64_t(i));
    Order order;
    for (uint8_t a : orderOf(x))
      order.push_back(uint8_t(std::find(perm.begin(), perm.end(), int64_t(a)) - perm.begin()));
    Order last = ir::Layout::channelsLast(rank).order;
    if (last.empty() || !sameMemory(y->type.dims, order, last)) return;
    if (!ctx_.get(knob::layout_absorb_transpose, *n)) return;
    setOrder(y, last);
  }

  // Axes of extent 1 put in or left out: the others keep their order.
  void reshape(ir::Node* n) {
    ir::Value *x = n->inputs[0], *y = n->outputs[0];
    if (x->type.layout.isRowMajor()) return;
    if (auto order = mapOnes(orderOf(x), x->type.dims, y->type.dims)) setOrder(y, *order);
  }

  void outputs() {
    for (ir::Value*& slot : graph_.top().outputs) {
      ir::Value* v = slot;
      if (!v->producer) continue;
      Order want = rowMajor(v->type.rank());
      if (auto it = ctx_.ioLayouts.find(v->name); it != ctx_.ioLayouts.end() && !it->second.order.empty())
        want = it->second.order;
      if (orderOf(v) == want) continue;
      if (sameMemory(v->type.dims, orderOf(v), want)) {
        setOrder(v, want);
        continue;
      }
      std::string how = ctx_.get(knob::layout_output_cast, *v->producer);
      // A copy either way: pointwise operators and parts write what is asked, views have to be materialised anyhow.
      bool copies = isPointwise(v->producer) || isPart(v->producer) || isOp(v->producer, "Concat") ||
                    isOp(v->producer, "Transpose") || isOp(v->producer, "Reshape");
      bool fused = how == "fused" || (how == "auto" && v->users.empty() && copies);
      if (fused) {
        setOrder(v, want);
        continue;
      }
      ir::Node* producer = v->producer;
      ir::Value* y = graph_.makeValue(v->name, v->type);
      ir::Node* c = graph_.makeNode(graph_.top(), "LayoutCast", {v}, {y});
      c->domain = "rutter";
      c->origins = producer->origins;
      setOrder(y, want);
      std::swap(v->name, y->name);
      slot = y;
    }
  }

  ir::Graph& graph_;
  PassContext& ctx_;
  std::map<std::pair<ir::Value*, Order>, ir::Value*> casts_;
};

}  // namespace

void AssignLayouts::apply(ir::Graph& g, PassContext& ctx) const {
  Assigner(g, ctx).run();
}

}  // namespace rutter::passes
