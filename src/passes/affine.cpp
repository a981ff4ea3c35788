#include "passes/affine.h"

#include <algorithm>
#include <cmath>

#include "passes/elements.h"
#include "passes/rules.h"

namespace rutter::passes {
namespace {

bool isConv(const ir::Node* n) {
  return isOp(n, "Conv") || isOp(n, "ConvTranspose");
}

// A convolution with constant floating-point weights (and bias, if any) as doubles.
struct Weights {
  ir::Node* node;
  bool transposed;
  int64_t groups, in, out;  ///< channels
};
std::optional<Weights> weightsOf(ir::Node* n) {
  if (!isConv(n) || n->inputs.size() < 2 || !n->inputs[1]->constant || !ir::isFloat(n->inputs[1]->type.dtype))
    return std::nullopt;
  if (n->input(2) && !n->inputs[2]->constant) return std::nullopt;
  Weights w{n, n->op == "ConvTranspose", n->getInt("group", 1), 0, 0};
  const auto& s = n->inputs[1]->constant->shape();
  w.out = w.transposed ? s[1] * w.groups : s[0];
  w.in = w.transposed ? s[0] : s[1] * w.groups;
  return w;
}
// Multiplies the weights by one factor an output and one an input channel.
ir::Tensor scaled(const Weights& w, const std::vector<double>& byOut, const std::vector<double>& byIn) {
  const ir::Tensor& old = *w.node->inputs[1]->constant;
  ir::Tensor t(old.dtype(), old.shape());
  int64_t d0 = old.shape()[0], d1 = old.shape()[1], rest = old.size() / std::max<int64_t>(1, d0 * d1);
  int64_t outPerGroup = w.out / w.groups, inPerGroup = w.in / w.groups;
  for (int64_t a = 0, i = 0; a < d0; a++)
    for (int64_t b = 0; b < d1; b++) {
      int64_t o = w.transposed ? a / inPerGroup * outPerGroup + b : a;
      int64_t c = w.transposed ? a : a / outPerGroup * inPerGroup + b;
      double f = byOut[size_t(o)] * byIn[size_t(c)];
      scaleRun(old, t, i, rest, [f](int64_t) { return f; });
      i += rest;
    }
  return t;
}
std::vector<double> biasOf(const Weights& w) {
  std::vector<double> b(size_t(w.out), 0);
  if (w.node->input(2))
    for (int64_t i = 0; i < w.out; i++) b[size_t(i)] = w.node->inputs[2]->constant->getDouble(i);
  return b;
}
ir::Tensor tensorOf(ir::DType t, const std::vector<double>& v) {
  ir::Tensor r(t, {int64_t(v.size())});
  for (size_t i = 0; i < v.size(); i++) r.setDouble(int64_t(i), v[i]);
  return r;
}
bool allFinite(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return std::isfinite(x); });
}

// A constant that is one value, or one value a channel (axis 1 of `dims`), as a vector of `channels`.
std::optional<std::vector<double>> perChannel(const ir::Value* c, const ir::Dims& dims, int64_t channels) {
  if (!c || !c->constant || c->constant->dtype() == ir::DType::kString || c->type.rank() > dims.size())
    return std::nullopt;
  size_t lead = dims.size() - c->type.rank();
  for (size_t i = 0; i < c->type.rank(); i++)
    if (i + lead != 1 && c->constant->shape()[i] != 1) return std::nullopt;
  std::vector<double> v;
  if (c->constant->size() != 1 && c->constant->size() != channels) return std::nullopt;
  for (int64_t i = 0; i < channels; i++) v.push_back(c->constant->getDouble(c->constant->size() == 1 ? 0 : i));
  return v;
}

// The convolution again with y = conv * scale + shift folded in, in place of node n's output.
bool rewriteConv(ir::Graph& g, ir::Node* n, const Weights& w, const std::vector<double>& scale,
                 const std::vector<double>& shift) {
  std::vector<double> bias = biasOf(w);
  for (size_t i = 0; i < bias.size(); i++) bias[i] = bias[i] * scale[i] + shift[i];
  if (!allFinite(bias) || !allFinite(scale)) return false;
  Builder b(g, n, {w.node, n});
  ir::Value* weights = w.node->inputs[1];
  if (std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1; }))
    weights = b.constant(scaled(w, scale, std::vector<double>(size_t(w.in), 1)));
  ir::Value* y =
      b.node(w.node->op, {w.node->inputs[0], weights, b.constant(tensorOf(weights->type.dtype, bias))}, w.node->attrs);
  return replaceValue(g, n->outputs[0], y);
}

struct BatchNorm {
  std::vector<double> scale, shift;
};
std::optional<BatchNorm> batchNorm(const ir::Node* n) {
  if (!isOp(n, "BatchNormalization") || n->getInt("training_mode", 0) != 0 || n->inputs.size() < 5) return std::nullopt;
  for (int i = 1; i < 5; i++)
    if (!n->inputs[size_t(i)] || !n->inputs[size_t(i)]->constant) return std::nullopt;
  BatchNorm r;
  double eps = n->getFloat("epsilon", 1e-5f);
  for (int64_t c = 0; c < n->inputs[1]->constant->size(); c++) {
    auto in = [&](size_t i) { return n->inputs[i]->constant->getDouble(c); };
    double s = in(1) / std::sqrt(in(4) + eps);
    r.scale.push_back(s);
    r.shift.push_back(in(2) - in(3) * s);
  }
  return r;
}
bool splitBatchNorm(ir::Graph& g, ir::Node* n) {
  auto bn = batchNorm(n);
  if (!bn) return false;
  ir::Value* x = n->inputs[0];
  std::vector<int64_t> shape(x->type.rank() < 2 ? 1 : x->type.rank() - 1, 1);
  shape[0] = int64_t(bn->scale.size());
  Builder b(g, n, {n});
  ir::Value* y = b.node("Mul", {x, b.constant(tensorOf(x->type.dtype, bn->scale).reshaped(shape))});
  y = b.node("Add", {y, b.constant(tensorOf(x->type.dtype, bn->shift).reshaped(shape))});
  return replaceValue(g, n->outputs[0], y);
}

bool ruleConvBatchNorm(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  auto bn = batchNorm(n);
  if (!bn) return false;
  ir::Node* conv = n->inputs[0]->producer;
  if (!isConv(conv)) return splitBatchNorm(g, n);
  auto w = weightsOf(conv);
  if (!w || !hasOneUse(g, conv->outputs[0])) {
    ctx.refuse(knob::fuse_conv_bn, *conv, w ? "its result is read by others too" : "its weights are not constant");
    return splitBatchNorm(g, n);
  }
  if (!ctx.get(knob::fuse_conv_bn, *conv)) return false;  // stays whole until Decompose
  return rewriteConv(g, n, *w, bn->scale, bn->shift);
}

bool ruleConvThenAffine(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  bool mul = isOp(n, "Mul"), add = isOp(n, "Add");
  if ((!mul && !add) || n->inputs.size() != 2 || !n->inputs[1]->constant || !isConv(n->inputs[0]->producer))
    return false;
  ir::Node* conv = n->inputs[0]->producer;
  auto w = weightsOf(conv);
  if (!w || !hasOneUse(g, conv->outputs[0])) return false;
  auto c = perChannel(n->inputs[1], conv->outputs[0]->type.dims, w->out);
  if (!c || !ctx.get(mul ? knob::fuse_conv_scale : knob::fuse_conv_shift, *conv)) return false;
  std::vector<double> one(size_t(w->out), 1), zero(size_t(w -> out), 0);
  return rewriteConv(g, n, *w, mul ? *c : one, mul ? zero : *c);
}

bool padsNothing(const ir::Node* conv) {
  auto pads = conv->getInts("pads");
  std::string mode = conv->getString("auto_pad", "NOTSET");
  return (mode == "NOTSET" || mode == "VALID") &&
         std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
}

bool ruleAffineThenConv(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Conv")) return false;
  auto w = weightsOf(n);
  ir::Node* a = n->inputs[0]->producer;
  bool mul = isOp(a, "Mul"), add = isOp(a, "Add");
  if (!w || (!mul && !add) || a->inputs.size() != 2 || !a->inputs[1]->constant || !hasOneUse(g, a->outputs[0]))
    return false;
  if (!sameDims(a->inputs[0]->type.dims, a->outputs[0]->type.dims) || (add && !padsNothing(n))) return false;
  auto c = perChannel(a->inputs[1], a->outputs[0]->type.dims, w->in);
  if (!c || !allFinite(*c) || !ctx.get(knob::fuse_scale_conv, *a)) return false;
  Builder b(g, n, {n, a});
  std::vector<ir::Value*> inputs = n->inputs;
  inputs[0] = a->inputs[0];
  if (mul) {
    inputs[1] = b.constant(scaled(*w, std::vector<double>(size_t(w->out), 1), *c));
  } else {  // every output sees every weight once: the bias takes their sum times the constant
    const ir::Tensor& t = *n->inputs[1]->constant;
    std::vector<double> bias = biasOf(*w);
    int64_t inPerGroup = w->in / w->groups, rest = t.size() / (w->out * inPerGroup);
    for (int64_t o = 0, i = 0; o < w->out; o++)
      for (int64_t k = 0; k < inPerGroup; k++)
        for (int64_t r = 0; r < rest; r++, i++)
          bias[size_t(o)] += t.getDouble(i) * (*c)[size_t(o / (w->out / w->groups) * inPerGroup + k)];
    inputs.resize(3);
    inputs[2] = b.constant(tensorOf(t.dtype(), bias));
  }
  return replaceValue(g, n->outputs[0], b.node("Conv", inputs, n->attrs));
}

// ---- MatMul ----

// The constant `c` (one value, or one a column) times the columns of the constant matrix `m` [… x N].
std::optional<ir::Tensor> scaleColumns(const ir::Tensor& m, const ir::Tensor& c) {
  int64_t n = m.shape().back();
  if (c.size() != 1 && (c.size() != n || c.shape().back() != n)) return std::nullopt;
  ir::Tensor t(m.dtype(), m.shape());
  std::vector<double> factors(static_cast<size_t>(n), 0);
  for (int64_t i = 0; i < n; i++) factors[size_t(i)] = c.getDouble(c.size() == 1 ? 0 : i);
  const double* f = factors.data();
  for (int64_t row = 0; row + n <= t.size() && n > 0; row += n) scaleRun(m, t, row, n, [f](int64_t i) { return f[i]; });
  return t;
}
bool finite(const ir::Tensor& c) {
  for (int64_t i = 0; i < c.size(); i++)
    if (!std::isfinite(c.getDouble(i))) return false;
  return true;
}

// v times the constant c without a multiplication at run time: c moves up to constant weights. Null if it cannot.
// Only chains that nothing else reads are taken, and nothing is built unless the whole chain can be.
ir::Value* scaleUp(ir::Graph& g, PassContext& ctx, ir::Node* at, ir::Value* v, const ir::Value* c, bool scalar,
                   int depth) {
  ir::Node* n = v->producer;
  if (!n || !n->domain.empty() || depth == 0 || !hasOneUse(g, v)) return nullptr;
  if (n->op == "Add" && n->inputs[1]->constant) {
    auto shift = c->constant->size() == 1 || n->inputs[1]->constant->shape().size() <= 1
                     ? scaleColumns(n->inputs[1]->constant->rank() ? *n->inputs[1]->constant
                                                                   : n->inputs[1]->constant->reshaped({1}),
                                    *c->constant)
                     : std::nullopt;
    if (!shift || (n->inputs[1]->constant->size() == 1 && c->constant->size() != 1)) return nullptr;
    ir::Value* up = scaleUp(g, ctx, at, n->inputs[0], c, scalar, depth - 1);
    if (!up) return nullptr;
    Builder b(g, at, {n});
    return b.node("Add", {up, b.constant(n->inputs[1]->constant->rank() ? *shift : shift->reshaped({}))});
  }
  if (n->op == "MatMul") {
    if (n->inputs[1]->constant && n->inputs[1]->type.rank() >= 2) {
      if (auto t = scaleColumns(*n->inputs[1]->constant, *c->constant); t && ctx.get(knob::fuse_gemm_scale, *n)) {
        Builder b(g, at, {n});
        return b.node("MatMul", {n->inputs[0], b.constant(*t)});
      }
      return nullptr;
    }
    if (!scalar) return nullptr;
    for (size_t i : {size_t(0), size_t(1)})
      if (ir::Value* up = scaleUp(g, ctx, at, n->inputs[i], c, scalar, depth - 1)) {
        Builder b(g, at, {n});
        auto inputs = n->inputs;
        inputs[i] = up;
        return b.node("MatMul", inputs);
      }
    return nullptr;
  }
  if (scalar && (n->op == "Reshape" || n->op == "Transpose")) {
    ir::Value* up = scaleUp(g, ctx, at, n->inputs[0], c, scalar, depth - 1);
    if (!up) return nullptr;
    Builder b(g, at, {n});
    auto inputs = n->inputs;
    inputs[0] = up;
    return b.node(n->op, inputs, n->attrs);
  }
  return nullptr;
}

bool ruleGemmScale(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Mul") || n->inputs.size() != 2 || !n->inputs[1]->constant || n->inputs[0]->constant) return false;
  ir::Value* c = n->inputs[1];
  ir::Value* x = n->inputs[0];
  if (!x->producer || !ir::isFloat(c->type.dtype) || !sameDims(x->type.dims, n->outputs[0]->type.dims) ||
      !finite(*c->constant))
    return false;
  bool scalar = c->constant->size() == 1;
  if (!scalar && (x->type.dims.empty() || c->constant->shape().back() != c->constant->size())) return false;
  ir::Value* y = scaleUp(g, ctx, n, x, c, scalar, 8);
  if (!y) return false;
  addOrigins(y->producer, n);
  return replaceValue(g, n->outputs[0], y);
}

bool ruleGemm(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!isOp(n, "Gemm")) return false;
  Builder b(g, n, {n});
  auto operand = [&](size_t i, const char* flag) {
    ir::Value* v = n->inputs[i];
    if (n->getInt(flag, 0) == 0) return v;
    if (!v->constant) return b.transpose(v, {1, 0});
    return b.constant(transposed(*v->constant));
  };
  if (!ir::isFloat(n->inputs[0]->type.dtype)) return false;
  ir::DType type = n->inputs[0]->type.dtype;
  ir::Value* y = b.node("MatMul", {operand(0, "transA"), operand(1, "transB")});
  if (float alpha = n->getFloat("alpha", 1); alpha != 1)
    y = b.node("Mul", {y, b.constant(ir::Tensor::scalar(type, alpha))});
  if (n->input(2)) {
    ir::Value* c = n->inputs[2];
    if (float beta = n->getFloat("beta", 1); beta != 1)
      c = b.node("Mul", {c, b.constant(ir::Tensor::scalar(type, beta))});
    y = b.node("Add", {y, c});
  }
  return replaceValue(g, n->outputs[0], y);
}

bool ruleSplitBatchNorm(ir::Graph& g, ir::Node* n, PassContext&) {
  return splitBatchNorm(g, n);
}

}  // namespace

void FoldAffine::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx, {ruleConvBatchNorm, ruleConvThenAffine, ruleAffineThenConv, ruleGemmScale});
}

void DecomposeGemm::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx, {ruleGemm});
}
void DecomposeBatchNorm::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx, {ruleSplitBatchNorm});
}

}  // namespace rutter::passes
