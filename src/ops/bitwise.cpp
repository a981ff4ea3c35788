#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferPair(InferContext& c) {
  accept(c, 0, Accept::kInteger);
  sameType(c, 0, 1);
  c.out(0, c.in(0).dtype, c.broadcast(c.in(0).dims, c.in(1).dims));
}
bool leftOf(const ir::Node& n) {
  std::string d = n.getString("direction", "");
  if (d != "LEFT" && d != "RIGHT") throw UserError("attribute direction is '{}'; it must be LEFT or RIGHT", d);
  return d == "LEFT";
}
// Shifts by a negative count, or by the type's width and more, leave the sign alone.
template <typename T>
T shift(T x, T count, bool left, int bits) {
  if (count < 0 || uint64_t(count) >= uint64_t(bits)) return !left && x < 0 ? T(-1) : T(0);
  return left ? T(uint64_t(x) << count) : x >> count;
}
// The bits of integers, which never are floats here.
template <typename F>
void evalBits(EvalContext& c, F f) {
  evalBinary(c, c.in(0).dtype(), [&](auto a, auto b) {
    if constexpr (std::is_same_v<decltype(a), double>)
      return a;
    else
      return f(a, b);
  });
}
}  // namespace
const OpDef op_BitwiseAnd = {"BitwiseAnd", "", 18, inferPair,
                             [](EvalContext& c) { evalBits(c, [](auto a, auto b) { return a & b; }); }};
const OpDef op_BitwiseOr = {"BitwiseOr", "", 18, inferPair,
                            [](EvalContext& c) { evalBits(c, [](auto a, auto b) { return a | b; }); }};
const OpDef op_BitwiseXor = {"BitwiseXor", "", 18, inferPair,
                             [](EvalContext& c) { evalBits(c, [](auto a, auto b) { return a ^ b; }); }};
const OpDef op_BitwiseNot = {"BitwiseNot", "", 18,
                             [](InferContext& c) {
                               accept(c, 0, Accept::kInteger);
                               c.out(0, c.in(0).dtype, c.in(0).dims);
                             },
                             [](EvalContext& c) {
                               auto v = load<int64_t>(c.in(0));
                               for (int64_t& x : v) x = ~x;
                               store(c.out(0, c.in(0).dtype(), c.in(0).shape()), v);
                             }};
const OpDef op_BitShift = {"BitShift", "", 28,
                           [](InferContext& c) {
                             leftOf(c.node);
                             inferPair(c);
                           },
                           [](EvalContext& c) {
                             evalBits(c, [left = leftOf(c.node), bits = ir::bitsOf(c.in(0).dtype())](auto a, auto b) {
                               return shift(a, b, left, bits);
                             });
                           }};
}  // namespace rutter::ops
