#include "passes/polynomial.h"

#include <cmath>

#include "passes/rewrite.h"

namespace rutter::passes {
namespace {

Polynomial add(const Polynomial& a, const Polynomial& b, double sign) {
  Polynomial r = a;
  for (const auto& [k, c] : b) r[k] += sign * c;
  return r;
}
Polynomial mul(const Polynomial& a, const Polynomial& b) {
  Polynomial r;
  for (const auto& [ka, ca] : a)
    for (const auto& [kb, cb] : b) r[{ka.first + kb.first, ka.second + kb.second}] += ca * cb;
  return r;
}

class Reader {
 public:
  Reader(const ir::Value* x, const ir::Value* t) : x_(x), t_(t) {}

  std::optional<Polynomial> read(const ir::Value* v) {
    if (v == x_) return Polynomial{{{1, 0}, 1.0}};
    if (v == t_) return Polynomial{{{0, 1}, 1.0}};
    if (v->constant) {
      if (!isScalarFor(v, x_)) return std::nullopt;
      if (v->constant->dtype() == ir::DType::kString) return std::nullopt;
      return Polynomial{{{0, 0}, v->constant->getDouble(0)}};
    }
    const ir::Node* n = v->producer;
    if (!n || !n->domain.empty() || ++nodes_ > 24 || !(v->type.dims == x_->type.dims)) return std::nullopt;
    if (n->op == "Neg") {
      auto a = read(n->inputs[0]);
      if (!a) return std::nullopt;
      return add({}, *a, -1);
    }
    if (n->inputs.size() != 2 ||
        (n->op != "Add" && n->op != "Sub" && n->op != "Mul" && n->op != "Div" && n->op != "Pow"))
      return std::nullopt;
    auto a = read(n->inputs[0]);
    if (!a) return std::nullopt;
    auto b = read(n->inputs[1]);
    if (!b) return std::nullopt;
    std::optional<Polynomial> r;
    if (n->op == "Add") r = add(*a, *b, 1);
    if (n->op == "Sub") r = add(*a, *b, -1);
    if (n->op == "Mul") r = mul(*a, *b);
    bool constant = b->size() == 1 && b->begin()->first == std::pair(0, 0);
    double c = constant ? b->begin()->second : 0;
    if (n->op == "Div" && constant && c != 0) r = mul(*a, {{{0, 0}, 1 / c}});
    if (n->op == "Pow" && constant && (c == 1 || c == 2 || c == 3)) {
      r = *a;
      for (int i = 1; i < int(c); i++) r = mul(*r, *a);
    }
    if (r)
      for (const auto& [k, coefficient] : *r)
        if (k.first > 4 || k.second > 4) return std::nullopt;
    return r;
  }

 private:
  const ir::Value *x_, *t_;
  int nodes_ = 0;
};

}  // namespace

std::optional<Polynomial> polynomialOf(const ir::Value* v, const ir::Value* x, const ir::Value* t) {
  return Reader(x, t).read(v);
}

bool matches(const Polynomial& p, const Polynomial& want) {
  auto near = [](double a, double b) { return std::abs(a - b) <= 2e-6 * std::abs(b); };
  for (const auto& [k, c] : want) {
    auto it = p.find(k);
    if (it == p.end() || !near(it->second, c)) return false;
  }
  for (const auto& [k, c] : p)
    if (!want.count(k) && std::abs(c) > 1e-9) return false;
  return true;
}

}  // namespace rutter::passes
