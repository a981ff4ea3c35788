#include "compiler/expressions.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rutter::compiler {
using runtime::fb::DimOp;

Expressions::Expressions(const ir::Graph& g, runtime::fb::PlanT& plan) : graph_(g), plan_(plan) {
  const auto& inputs = g.top().inputs;
  for (size_t i = 0; i < inputs.size(); i++)
    for (size_t a = 0; a < inputs[i]->type.rank(); a++)
      if (auto s = inputs[i]->type.dims[a].asSymbol()) sources_.try_emplace(*s, int(i), int(a));
}
int Expressions::add(DimOp op, int a, int b, int64_t value) {
  auto [it, fresh] = unique_.try_emplace({int(op), a, b, value}, int(plan_.exprs.size()));
  if (fresh) plan_.exprs.emplace_back(op, a, b, value);
  return it->second;
}
int Expressions::operator()(const ir::Dim& d) {
  if (auto c = d.constant()) return add(DimOp::Constant, 0, 0, *c);
  auto it = known_.find(d.text());
  if (it != known_.end()) return it->second;
  int sum = -1;
  for (const ir::Dim::Term& t : *d.terms()) {
    int p = -1;
    auto times = [&](int x) { p = p < 0 ? x : add(DimOp::Mul, p, x, 0); };
    if (t.coefficient != 1 || t.factors.empty()) times(add(DimOp::Constant, 0, 0, t.coefficient));
    for (const auto& [text, f] : t.factors) {
      const ir::Dim::Atom& at = *f.first;
      int v;
      if (!at.symbol.empty()) {
        auto s = sources_.find(at.symbol);
        if (s == sources_.end())
          throw UserError(
              "the size '{}' appears in no input's shape by itself, so that it cannot be known at run time; give the "
              "inputs fixed shapes (--shapes)",
              at.symbol);
        v = add(DimOp::InputDim, s->second.first, s->second.second, 0);
      } else {
        int a = (*this)(at.a), b = (*this)(at.b);
        DimOp op = at.kind == ir::Dim::Kind::kFloorDiv  ? DimOp::FloorDiv
                   : at.kind == ir::Dim::Kind::kCeilDiv ? DimOp::CeilDiv
                   : at.kind == ir::Dim::Kind::kMod     ? DimOp::Mod
                   : at.kind == ir::Dim::Kind::kMin     ? DimOp::Min
                                                        : DimOp::Max;
        v = add(op, a, b, 0);
      }
      for (int i = 0; i < f.second; i++) times(v);
    }
    sum = sum < 0 ? p : add(DimOp::Add, sum, p, 0);
  }
  return known_[d.text()] = sum;
}
void Expressions::checkInputs() {
  auto check = [&](runtime::fb::CheckKind kind, int a, int b, std::string message) {
    auto c = std::make_unique<runtime::fb::CheckT>();
    c->kind = kind;
    c->a = a;
    c->b = b;
    c->message = std::move(message);
    plan_.checks.push_back(std::move(c));
  };
  const auto& inputs = graph_.top().inputs;
  for (size_t i = 0; i < inputs.size(); i++)
    for (size_t a = 0; a < inputs[i]->type.rank(); a++) {
      const ir::Dim& d = inputs[i]->type.dims[a];
      if (d.isConstant()) continue;
      auto s = d.asSymbol();
      if (s && sources_.at(*s) == std::pair(int(i), int(a))) continue;
      check(runtime::fb::CheckKind::Equal, add(DimOp::InputDim, int(i), int(a), 0), (*this)(d),
            fmt::format("axis {} of input '{}' must be {}", a, inputs[i]->name, d.text()));
    }
  for (const ir::Constraint& c : graph_.constraints) {
    auto kind = c.kind == ir::Constraint::Kind::kEqual       ? runtime::fb::CheckKind::Equal
                : c.kind == ir::Constraint::Kind::kDivisible ? runtime::fb::CheckKind::Divisible
                                                             : runtime::fb::CheckKind::AtLeast;
    check(kind, (*this)(c.a), (*this)(c.b), c.where);
  }
}

}  // namespace rutter::compiler
