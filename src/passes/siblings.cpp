#include <algorithm>
#include <map>

#include "passes/affine.h"
#include "passes/rules.h"

namespace rutter::passes {
namespace {

bool sameAttrs(const ir::Node* a, const ir::Node* b) {
  if (a->op != b->op || a->domain != b->domain || a->attrs.size() != b->attrs.size()) return false;
  for (const auto& [k, v] : a->attrs) {
    auto it = b->attrs.find(k);
    if (it == b->attrs.end() || std::holds_alternative<ir::Tensor>(v) || it->second.index() != v.index()) return false;
    bool same = std::visit(
        [&](const auto& x) {
          using T = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<T, ir::Tensor>)
            return false;
          else
            return x == std::get<T>(it->second);
        },
        v);
    if (!same) return false;
  }
  return true;
}

// Constants with one extent other than 1, laid one after the other along their axis `axis`.
ir::Tensor concatenate(const std::vector<const ir::Tensor*>& parts, size_t axis) {
  std::vector<int64_t> shape = parts[0]->shape();
  shape[axis] = 0;
  for (const ir::Tensor* p : parts) shape[axis] += p->shape()[axis];
  ir::Tensor out(parts[0]->dtype(), shape);
  int64_t outer = 1;
  for (size_t i = 0; i < axis; i++) outer *= shape[i];
  auto* to = static_cast<char*>(out.mutableData());
  for (int64_t o = 0; o < outer; o++)
    for (const ir::Tensor* p : parts) {
      int64_t bytes = p->bytes() / outer;
      std::copy_n(static_cast<const char*>(p->data()) + o * bytes, bytes, to);
      to += bytes;
    }
  return out;
}

class Merger {
 public:
  Merger(ir::Graph& g, std::vector<ir::Node*> siblings, size_t axis)
      : graph_(g), siblings_(std::move(siblings)), axis_(axis) {
    for (ir::Node* n : siblings_) {
      ends_.push_back(n->outputs[0]);
      replaced_.push_back(n);
    }
  }
  // The merged product or convolution becomes `y`, which later steps extend.
  void start(ir::Value* y) { y_ = y; }
  Builder builder() { return Builder(graph_, siblings_[0], replaced_); }

  // Takes bias additions along, if all siblings have one.
  void absorbBias() {
    std::vector<ir::Node*> adds;
    std::vector<const ir::Tensor*> parts;
    std::vector<ir::Tensor> flat;
    for (ir::Value* v : ends_) {
      if (!hasOneUse(graph_, v) || !isOp(v->users[0], "Add")) return;
      ir::Node* add = v->users[0];
      ir::Value* c = add->inputs[0] == v ? add->inputs[1] : add->inputs[0];
      if (!c->constant || c->constant->size() != v->type.dims[axis_].value() ||
          c->constant->shape().back() != c->constant->size())
        return;
      if (axis_ + 1 != v->type.rank() || c->type.rank() > v->type.rank()) return;
      adds.push_back(add);
      flat.push_back(c->constant->reshaped({c->constant->size()}));
    }
    for (const ir::Tensor& t : flat) parts.push_back(&t);
    extend(adds);
    Builder b = builder();
    y_ = b.node("Add", {y_, b.constant(concatenate(parts, 0))});
  }
  // Takes the same activation of all siblings along.
  void absorbActivations() {
    for (;;) {
      std::vector<ir::Node*> next;
      for (ir::Value* v : ends_) {
        if (!hasOneUse(graph_, v) || !isUnaryPointwise(v->users[0]) || v->users[0]->inputs.size() != 1) return;
        if (!next.empty() && !sameAttrs(next[0], v->users[0])) return;
        next.push_back(v->users[0]);
      }
      extend(next);
      Builder b = builder();
      y_ = b.node(next[0]->op, {y_}, next[0]->attrs, next[0]->domain);
    }
  }
  void finish() {
    std::vector<int64_t> sizes;
    for (ir::Value* v : ends_) sizes.push_back(v->type.dims[axis_].value());
    Builder b = builder();
    auto parts = b.nodes("Split", {y_, b.ints(sizes)}, sizes.size(), {{"axis", int64_t(axis_)}});
    for (size_t i = 0; i < parts.size(); i++) replaceValue(graph_, ends_[i], parts[i]);
  }

 private:
  void extend(const std::vector<ir::Node*>& next) {
    for (size_t i = 0; i < next.size(); i++) {
      ends_[i] = next[i]->outputs[0];
      replaced_.push_back(next[i]);
    }
  }
  ir::Graph& graph_;
  std::vector<ir::Node*> siblings_;
  size_t axis_;
  std::vector<ir::Value*> ends_;
  std::vector<const ir::Node*> replaced_;
  ir::Value* y_ = nullptr;
};

void mergeMatMuls(ir::Graph& g, const std::vector<ir::Node*>& all, PassContext& ctx) {
  std::vector<ir::Node*> s;
  for (ir::Node* n : all)
    if (n->inputs[1]->type.rank() == 2 &&
        n->inputs[1]->constant->shape()[0] == all[0]->inputs[1]->constant->shape()[0] &&
        n->inputs[1]->type.dtype == all[0]->inputs[1]->type.dtype && n->outputs[0]->type.rank() >= 2)
      s.push_back(n);
  if (s.size() < 2)
    return ctx.refuse(knob::fuse_qkv, *all[0], "no other product of its input has a constant matrix of its depth");
  if (!ctx.get(knob::fuse_qkv, *s[0])) return;
  std::vector<const ir::Tensor*> parts;
  for (ir::Node* n : s) parts.push_back(&*n->inputs[1]->constant);
  Merger m(g, s, s[0]->outputs[0]->type.rank() - 1);
  Builder b = m.builder();
  m.start(b.node("MatMul", {s[0]->inputs[0], b.constant(concatenate(parts, 1))}));
  m.absorbBias();
  m.absorbActivations();
  m.finish();
}

bool isPointConv(const ir::Node* n) {
  if (!isOp(n, "Conv") || n->getInt("group", 1) != 1 || !n->inputs[1]->constant ||
      (n->input(2) && !n->inputs[2]->constant))
    return false;
  const auto& k = n->inputs[1]->constant->shape();
  auto pads = n->getInts("pads");
  return std::all_of(k.begin() + 2, k.end(), [](int64_t x) { return x == 1; }) &&
         std::all_of(pads.begin(), pads.end(), [](int64_t x) { return x == 0; }) &&
         n->getString("auto_pad", "NOTSET") == "NOTSET";
}
std::vector<int64_t> stridesOf(const ir::Node* n) {
  auto s = n->getInts("strides");
  return s.empty() ? std::vector<int64_t>(n->outputs[0]->type.rank() - 2, 1) : s;
}

void mergeConvs(ir::Graph& g, const std::vector<ir::Node*>& all, PassContext& ctx) {
  std::vector<ir::Node*> s;
  for (ir::Node* n : all)
    if (stridesOf(n) == stridesOf(all[0]) && bool(n->input(2)) == bool(all[0]->input(2))) s.push_back(n);
  if (s.size() < 2)
    return ctx.refuse(knob::fuse_conv_siblings, *all[0], "no other 1x1 convolution reads its input with its strides");
  if (!ctx.get(knob::fuse_conv_siblings, *s[0])) return;
  std::vector<const ir::Tensor*> weights, biases;
  for (ir::Node* n : s) {
    weights.push_back(&*n->inputs[1]->constant);
    if (n->input(2)) biases.push_back(&*n->inputs[2]->constant);
  }
  Merger m(g, s, 1);
  Builder b = m.builder();
  std::vector<ir::Value*> inputs = {s[0]->inputs[0], b.constant(concatenate(weights, 0))};
  if (!biases.empty()) inputs.push_back(b.constant(concatenate(biases, 0)));
  auto attrs = s[0]->attrs;
  m.start(b.node("Conv", inputs, attrs));
  m.absorbActivations();
  m.finish();
}

}  // namespace

void MergeSiblings::apply(ir::Graph& g, PassContext& ctx) const {
  // In node order, so that the result does not depend on addresses.
  std::vector<ir::Value*> order;
  std::map<ir::Value*, std::vector<ir::Node*>> products, convs;
  for (ir::Node* n : allNodes(g)) {
    if (n->inputs.size() < 2 || !n->inputs[0] || !n->inputs[1]) continue;
    bool product = isOp(n, "MatMul") && n->inputs[1]->constant && !n->inputs[0]->constant, conv = isPointConv(n);
    if (!product && !conv) continue;
    if (!products.count(n->inputs[0]) && !convs.count(n->inputs[0])) order.push_back(n->inputs[0]);
    (product ? products : convs)[n->inputs[0]].push_back(n);
  }
  for (ir::Value* x : order) {
    if (products.count(x)) mergeMatMuls(g, products[x], ctx);
    if (convs.count(x)) mergeConvs(g, convs[x], ctx);
  }
}

}  // namespace rutter::passes
