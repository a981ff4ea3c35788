#pragma once
// Small polynomials read off a graph: how a value depends on one or two others through +, -, *, / and small powers.
// Matching activations by their polynomial takes every ordering that exporters write.
#include <map>
#include <optional>
#include <utility>

#include "ir/graph.h"

namespace rutter::passes {

/// Coefficient by powers (of x, of t).
using Polynomial = std::map<std::pair<int, int>, double>;

/// `v` as a polynomial in x and t (t may be null), through nodes with scalar constants; nothing if another value
/// takes part, a power exceeds 4, or the expression has more than 24 nodes. Shapes of all parts are that of x.
std::optional<Polynomial> polynomialOf(const ir::Value* v, const ir::Value* x, const ir::Value* t = nullptr);
/// True if both have the same terms, with coefficients within 2e-6 relative.
bool matches(const Polynomial& p, const Polynomial& want);

}  // namespace rutter::passes
