#include "ops/op.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

namespace rutter::ops {

#define OP(name) extern const OpDef op_##name;
#include "ops/ops.def"
#undef OP

namespace {
const std::vector<const OpDef*>& table() {
  static const std::vector<const OpDef*> t = {
#define OP(name) &op_##name,
#include "ops/ops.def"
#undef OP
  };
  return t;
}
// Integers of the types that shapes come in, bool, and the floats that sizes pass through on their way to Resize.
bool holdsExpressions(ir::DType t) {
  using ir::DType;
  return t == DType::kI64 || t == DType::kI32 || t == DType::kBool || t == DType::kF32 || t == DType::kF64;
}
std::string typesOf(const ir::Node& n) {
  std::string s;
  for (const ir::Value* v : n.inputs) s += (s.empty() ? "" : ", ") + (v ? v->type.text() : std::string("none"));
  return s;
}
}  // namespace

const OpDef* findOp(std::string_view domain, std::string_view name) {
  static const auto index = [] {
    std::map<std::pair<std::string_view, std::string_view>, const OpDef*> m;
    for (const OpDef* d : table()) m[{d->domain, d->name}] = d;
    return m;
  }();
  auto it = index.find({domain, name});
  return it == index.end() ? nullptr : it->second;
}
std::span<const OpDef* const> allOps() {
  return table();
}

const ir::Type& InferContext::in(size_t i) const {
  const ir::Value* v = node.input(i);
  if (!v) throw UserError("input {} is missing", i);
  if (!v->type.known) throw UserError("input {} ({}) has no known type", i, v->name);
  return v->type;
}
const ir::Tensor* InferContext::constant(size_t i) const {
  const ir::Value* v = node.input(i);
  return v && v->constant ? &*v->constant : nullptr;
}
std::optional<ir::Dims> InferContext::symbolic(size_t i) const {
  const ir::Value* v = node.input(i);
  if (!v) return std::nullopt;
  if (v->symbolic) return v->symbolic;
  const auto& t = v->constant;
  if (!t || t->rank() > 1 || t->size() > 64 || !holdsExpressions(t->dtype())) return std::nullopt;
  if (ir::isFloat(t->dtype()))
    for (int64_t k = 0; k < t->size(); k++)
      if (double d = t->getDouble(k); d != std::floor(d) || std::abs(d) > 1e15) return std::nullopt;
  return ir::toDims(t->toInts());
}
ir::Dims InferContext::needSymbolic(size_t i, const char* what) const {
  if (auto s = symbolic(i)) return *s;
  const ir::Value* v = node.input(i);
  throw UserError(
      "input {} ({}, '{}') must be known when the engine is built; a size that depends on the data is not supported", i,
      what, v ? v->name : "none");
}
std::vector<int64_t> InferContext::needInts(size_t i, const char* what) const {
  if (const ir::Tensor* t = constant(i)) return t->toInts();
  if (auto v = ir::constants(needSymbolic(i, what))) return *v;
  throw UserError("input {} ({}) must be constant", i, what);
}
void InferContext::out(size_t i, ir::DType t, ir::Dims dims) {
  if (ir::Value* v = node.output(i)) {
    ir::Layout keep = v->type.layout;
    v->type = ir::Type::tensor(t, std::move(dims));
    if (keep.order.size() == v->type.rank()) v->type.layout = keep;
  }
}
void InferContext::setSymbolic(size_t i, ir::Dims values) {
  ir::Value* v = node.output(i);
  if (!v || !v->type.known || !holdsExpressions(v->type.dtype)) return;
  // What the dtype would wrap or round is no expression any more.
  int64_t limit = v->type.dtype == ir::DType::kI32 ? INT32_MAX : v->type.dtype == ir::DType::kF32 ? 1 << 24 : INT64_MAX;
  for (const ir::Dim& d : values)
    if (d.isConstant() && (d.value() > limit || d.value() < -limit)) return;
  v->symbolic = std::move(values);
}
void InferContext::addConstraint(ir::Constraint::Kind kind, const ir::Dim& a, const ir::Dim& b,
                                 const std::string& what) {
  for (const ir::Constraint& k : graph.constraints)  // the first node that needs it names it
    if (k.kind == kind && k.a == a && k.b == b) return;
  graph.constraints.push_back({kind, a, b, fmt::format("node {} ({}): {}", node.name, node.op, what)});
}
void InferContext::requireEqual(const ir::Dim& a, const ir::Dim& b, const std::string& what) {
  if (a == b) return;
  if (auto d = (a - b).constant()) throw UserError("{}: {} and {} differ", what, a.text(), b.text());
  auto [alo, ahi] = a.range(graph.symbols);
  auto [blo, bhi] = b.range(graph.symbols);
  if (ahi < blo || bhi < alo)
    throw UserError("{}: {} and {} differ for every shape of the profile", what, a.text(), b.text());
  addConstraint(ir::Constraint::Kind::kEqual, a, b, what);
}
void InferContext::requireDivisible(const ir::Dim& a, const ir::Dim& b, const std::string& what) {
  if (exactDiv(a, b)) return;
  if (a.isConstant() && b.isConstant()) throw UserError("{}: {} is not divisible by {}", what, a.text(), b.text());
  addConstraint(ir::Constraint::Kind::kDivisible, a, b, what);
}
void InferContext::requireAtLeast(const ir::Dim& a, const ir::Dim& b, const std::string& what) {
  auto [alo, ahi] = a.range(graph.symbols);
  auto [blo, bhi] = b.range(graph.symbols);
  if (alo >= bhi) return;
  if (ahi < blo) throw UserError("{}: {} is less than {} for every shape of the profile", what, a.text(), b.text());
  addConstraint(ir::Constraint::Kind::kAtLeast, a, b, what);
}
ir::Dims InferContext::broadcast(const ir::Dims& a, const ir::Dims& b) {
  size_t rank = std::max(a.size(), b.size());
  ir::Dims out(rank);
  for (size_t i = 0; i < rank; i++) {
    ir::Dim x = i + a.size() < rank ? ir::Dim(1) : a[i + a.size() - rank];
    ir::Dim y = i + b.size() < rank ? ir::Dim(1) : b[i + b.size() - rank];
    if (x.is(1) || y.is(1)) {
      out[i] = x.is(1) ? y : x;
    } else {
      requireEqual(x, y,
                   fmt::format("shapes {} and {} do not broadcast on axis {}", ir::toString(a), ir::toString(b), i));
      out[i] = y.isConstant() ? y : x;
    }
  }
  return out;
}
int64_t InferContext::axis(int64_t a, size_t rank) const {
  int64_t r = int64_t(rank);
  if (a < -r || a >= r) throw UserError("axis {} is outside [-{}, {})", a, r, r);
  return a < 0 ? a + r : a;
}

const ir::Tensor& EvalContext::in(size_t i) const {
  if (!has(i)) throw UserError("input {} is missing", i);
  return *inputs[i];
}
ir::Tensor& EvalContext::out(size_t i, ir::DType t, std::vector<int64_t> shape) {
  RUTTER_CHECK(i < outputs.size(), "output {} of {}", i, outputs.size());
  outputs[i] = ir::Tensor(t, std::move(shape));
  return outputs[i];
}
int64_t EvalContext::axis(int64_t a, int64_t r) const {
  if (a < -r || a >= r) throw UserError("axis {} is outside [-{}, {})", a, r, r);
  return a < 0 ? a + r : a;
}

void inferNode(ir::Graph& g, ir::Node& n) {
  const OpDef* d = findOp(n.domain, n.op);
  if (!d) throw UserError("node {}: operator {} is not supported", n.name, n.op);
  if (d != &op_ShapeValue)  // whose contents are given
    for (ir::Value* v : n.outputs)
      if (v) v->symbolic.reset();  // of an earlier inference with other shapes
  try {
    InferContext c(g, n);
    d->infer(c);
  } catch (const UserError& e) {
    throw UserError("node {} ({}) on ({}): {}", n.name, n.op, typesOf(n), e.what());
  }
}
std::vector<ir::Tensor> evalNode(const ir::Node& n, const std::vector<const ir::Tensor*>& inputs) {
  const OpDef* d = findOp(n.domain, n.op);
  if (!d) throw UserError("node {}: operator {} is not supported", n.name, n.op);
  try {
    EvalContext c(n, inputs);
    d->eval(c);
    return std::move(c.outputs);
  } catch (const UserError& e) {
    throw UserError("node {} ({}): {}", n.name, n.op, e.what());
  }
}

std::vector<ir::Tensor> evalGraph(const ir::Graph& g, const std::vector<ir::Tensor>& inputs) {
  const ir::Region& r = g.top();
  if (inputs.size() != r.inputs.size())
    throw UserError("{} inputs given, the model has {}", inputs.size(), r.inputs.size());
  std::unordered_map<const ir::Value*, ir::Tensor> env;
  std::unordered_map<const ir::Value*, size_t> uses;
  for (auto& n : r.nodes)
    for (const ir::Value* v : n->inputs)
      if (v) uses[v]++;
  for (const ir::Value* v : r.outputs) uses[v]++;
  for (size_t i = 0; i < inputs.size(); i++) env[r.inputs[i]] = inputs[i];
  auto find = [&](const ir::Value* v) -> const ir::Tensor* {
    if (!v) return nullptr;
    if (v->constant) return &*v->constant;
    auto it = env.find(v);
    RUTTER_CHECK(it != env.end(), "value {} is not computed", v->name);
    return &it->second;
  };
  for (auto& n : r.nodes) {
    std::vector<const ir::Tensor*> in;
    for (const ir::Value* v : n->inputs) in.push_back(find(v));
    auto out = evalNode(*n, in);
    for (size_t i = 0; i < out.size(); i++)
      if (n->outputs[i] && uses[n->outputs[i]]) env[n->outputs[i]] = std::move(out[i]);
    for (const ir::Value* v : n->inputs)
      if (v && --uses[v] == 0) env.erase(v);
  }
  std::vector<ir::Tensor> result;
  for (const ir::Value* v : r.outputs) result.push_back(*find(v));
  return result;
}

}  // namespace rutter::ops
