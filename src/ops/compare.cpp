// Comparisons and logic. Their results on expressions are known where the profile's bounds decide.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferPair(InferContext& c, Accept set) {
  accept(c, 0, set);
  sameType(c, 0, 1);
  c.out(0, DType::kBool, c.broadcast(c.in(0).dims, c.in(1).dims));
}
std::optional<Dim> provablyEqual(const InferContext& c, const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  auto [lo, hi] = (a - b).range(c.graph.symbols);
  if (lo > 0 || hi < 0) return Dim(0);
  return lo == 0 && hi == 0 ? std::optional(Dim(1)) : std::nullopt;
}
// a - b >= margin: 0 for "greater or equal", 1 for "greater".
std::optional<Dim> provablyAtLeast(const InferContext& c, const Dim& a, const Dim& b, int64_t margin) {
  auto [lo, hi] = (a - b).range(c.graph.symbols);
  if (lo >= margin) return Dim(1);
  return hi < margin ? std::optional(Dim(0)) : std::nullopt;
}
}  // namespace

#define COMPARE(Name, since, set, sign, proof)                                                      \
  const OpDef op_##Name = {                                                                         \
      #Name, "", since,                                                                             \
      [](InferContext& c) {                                                                         \
        inferPair(c, set);                                                                          \
        symbolicBinary(c, [&](const Dim& a, const Dim& b) -> std::optional<Dim> { return proof; }); \
      },                                                                                            \
      [](EvalContext& c) { evalBinary(c, DType::kBool, [](auto a, auto b) { return a sign b; }); }};
COMPARE(Equal, 19, Accept::kNumberOrBool, ==, provablyEqual(c, a, b))
COMPARE(Less, 13, Accept::kNumber, <, provablyAtLeast(c, b, a, 1))
COMPARE(LessOrEqual, 16, Accept::kNumber, <=, provablyAtLeast(c, b, a, 0))
COMPARE(Greater, 13, Accept::kNumber, >, provablyAtLeast(c, a, b, 1))
COMPARE(GreaterOrEqual, 16, Accept::kNumber, >=, provablyAtLeast(c, a, b, 0))

#define LOGIC(Name, ...)                                                         \
  const OpDef op_##Name = {                                                      \
      #Name, "", 7,                                                              \
      [](InferContext& c) {                                                      \
        inferPair(c, Accept::kBool);                                             \
        symbolicBinary(c, [](const Dim& x, const Dim& y) -> std::optional<Dim> { \
          if (!x.isConstant() || !y.isConstant()) return std::nullopt;           \
          bool a = x.value(), b = y.value();                                     \
          return Dim(__VA_ARGS__);                                               \
        });                                                                      \
      },                                                                         \
      [](EvalContext& c) { evalBinary(c, DType::kBool, [](auto a, auto b) { return __VA_ARGS__; }); }};
LOGIC(And, a&& b)
LOGIC(Or, a || b)
LOGIC(Xor, (a != 0) != (b != 0))

}  // namespace rutter::ops
