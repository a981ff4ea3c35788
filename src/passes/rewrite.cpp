#include "passes/rewrite.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/op.h"
#include "ops/pointwise.h"

namespace rutter::passes {

Builder::Builder(ir::Graph& g, ir::Node* at, std::initializer_list<const ir::Node*> replaced)
    : Builder(g, at, std::vector<const ir::Node*>(replaced)) {}
Builder::Builder(ir::Graph& g, ir::Node* at, const std::vector<const ir::Node*>& replaced) : graph_(g), at_(at) {
  for (const ir::Node* n : replaced)
    for (const std::string& o : n->origins)
      if (std::find(origins_.begin(), origins_.end(), o) == origins_.end()) origins_.push_back(o);
  base_ = replaced.empty() || !replaced[0]->output() ? at->op : replaced[0]->output()->name;
}
std::vector<ir::Value*> Builder::nodes(const std::string& op, std::vector<ir::Value*> inputs, size_t outputs,
                                       Attrs attrs) {
  std::vector<ir::Value*> out;
  for (size_t i = 0; i < outputs; i++) out.push_back(graph_.makeValue(base_));
  ir::Node* n = graph_.makeNode(*at_->parent, op, std::move(inputs), out, at_);
  n->origins = origins_;
  n->attrs = std::move(attrs);
  ops::inferNode(graph_, *n);
  return out;
}
ir::Value* Builder::node(const std::string& op, std::vector<ir::Value*> inputs, Attrs attrs,
                         const std::string& domain) {
  ir::Value* out = graph_.makeValue(base_);
  ir::Node* n = graph_.makeNode(*at_->parent, op, std::move(inputs), {out}, at_);
  n->domain = domain;
  n->origins = origins_;
  n->attrs = std::move(attrs);
  ops::inferNode(graph_, *n);
  return out;
}
ir::Value* Builder::constant(ir::Tensor t) {
  return graph_.makeConstant(base_ + "_const", std::move(t));
}
ir::Value* Builder::shape(const ir::Dims& dims) {
  if (auto c = ir::constants(dims)) return ints(*c);
  ir::Value* out = graph_.makeValue(base_ + "_shape", ir::Type::tensor(ir::DType::kI64, {int64_t(dims.size())}));
  out->symbolic = dims;
  ir::Node* n = graph_.makeNode(*at_->parent, "ShapeValue", {}, {out}, at_);
  n->domain = "rutter";
  n->origins = origins_;
  return out;
}
ir::Value* Builder::reshape(ir::Value* v, const ir::Dims& dims) {
  if (sameDims(v->type.dims, dims)) return v;
  if (v->constant)
    if (auto c = ir::constants(dims)) return constant(v->constant->reshaped(*c));
  ir::Value* out = node("Reshape", {v, shape(dims)}, {{"allowzero", int64_t(1)}});
  out->type.dims = dims;
  return out;
}
ir::Value* Builder::transpose(ir::Value* v, const std::vector<int64_t>& perm) {
  bool identity = true;
  for (size_t i = 0; i < perm.size(); i++) identity &= perm[i] == int64_t(i);
  return identity ? v : node("Transpose", {v}, {{"perm", perm}});
}

bool canReplace(const ir::Graph& g, const ir::Value* from, const ir::Value* to) {
  if (from == to) return false;
  return !g.isOutput(from) || (to->producer && !g.isOutput(to));
}
bool replaceValue(ir::Graph& g, ir::Value* from, ir::Value* to) {
  if (!canReplace(g, from, to)) return false;
  if (g.isOutput(from)) std::swap(from->name, to->name);
  g.replaceUses(from, to);
  return true;
}
void addOrigins(ir::Node* to, const ir::Node* from) {
  for (const std::string& o : from->origins)
    if (std::find(to->origins.begin(), to->origins.end(), o) == to->origins.end()) to->origins.push_back(o);
}

bool isOp(const ir::Node* n, std::string_view op) {
  return n && n->op == op && n->domain.empty();
}
ir::Node* producer(const ir::Value* v, std::string_view op) {
  return v && isOp(v->producer, op) ? v->producer : nullptr;
}
bool hasOneUse(const ir::Graph& g, const ir::Value* v) {
  return v->users.size() == 1 && !g.isOutput(v);
}

std::optional<double> splat(const ir::Value* v) {
  if (!v || !v->constant || v->constant->dtype() == ir::DType::kString || v->constant->size() == 0) return std::nullopt;
  double x = v->constant->getDouble(0);
  for (int64_t i = 1; i < v->constant->size(); i++)
    if (!(v->constant->getDouble(i) == x)) return std::nullopt;
  return x;
}
bool isSplat(const ir::Value* v, double x) {
  auto s = splat(v);
  if (!s) return false;
  return *s == x || std::abs(*s - x) <= 4e-7 * std::abs(x);
}
bool isScalarFor(const ir::Value* v, const ir::Value* with) {
  return v && with && v->constant && v->constant->size() == 1 && v->type.rank() <= with->type.rank();
}
std::optional<ir::Dims> knownDims(const ir::Value* v) {
  if (!v) return std::nullopt;
  if (v->symbolic) return v->symbolic;
  if (v->constant && v->constant->dtype() != ir::DType::kString && v->constant->rank() <= 1)
    return ir::toDims(v->constant->toInts());
  return std::nullopt;
}
std::optional<std::vector<int64_t>> knownInts(const ir::Value* v) {
  auto d = knownDims(v);
  return d ? ir::constants(*d) : std::nullopt;
}
bool sameDims(const ir::Dims& a, const ir::Dims& b) {
  return a == b;
}

namespace {
void collect(ir::Region& r, std::vector<ir::Node*>& out) {
  for (auto& n : r.nodes) {
    for (auto& s : n->regions) collect(*s, out);
    out.push_back(n.get());
  }
}
}  // namespace
std::vector<ir::Node*> allNodes(ir::Graph& g) {
  std::vector<ir::Node*> out;
  collect(g.top(), out);
  return out;
}

namespace {
const ops::Pointwise* pointwise(const ir::Node* n) {
  return n ? ops::findPointwise(n->domain, n->op) : nullptr;
}
}  // namespace
bool isUnaryPointwise(const ir::Node* n) {
  const ops::Pointwise* p = pointwise(n);
  if (!p || p->inputs != ops::Pointwise::kOne) return false;
  if (n->op == "Clip")  // the bounds must be scalars known now
    for (size_t i = 1; i < n->inputs.size(); i++)
      if (n->inputs[i] && !n->inputs[i]->constant) return false;
  return true;
}
bool isBinaryPointwise(const ir::Node* n) {
  const ops::Pointwise* p = pointwise(n);
  return p && n->inputs.size() == 2 && (p->inputs == ops::Pointwise::kTwo || p->inputs == ops::Pointwise::kTwoOrMore);
}
bool isPointwise(const ir::Node* n) {
  const ops::Pointwise* p = pointwise(n);
  if (!p) return false;
  if (p->inputs == ops::Pointwise::kOne) return isUnaryPointwise(n);
  return p->inputs != ops::Pointwise::kTwo || n->inputs.size() == 2;
}

}  // namespace rutter::passes
