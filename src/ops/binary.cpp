// Arithmetic of two inputs with broadcasting.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferPair(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  sameType(c, 0, 1);
  c.out(0, c.in(0).dtype, c.broadcast(c.in(0).dims, c.in(1).dims));
}
// Integers wrap: they are computed unsigned.
template <typename T>
auto wrap(T x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return uint64_t(x);
}
int64_t divide(int64_t a, int64_t b) {
  if (b == 0) throw UserError("integer division by zero");
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}
uint64_t divide(uint64_t a, uint64_t b) {
  if (b == 0) throw UserError("integer division by zero");
  return a / b;
}
double divide(double a, double b) {
  return a / b;
}

// fmod=0: the result has the sign of the divisor (Python); fmod=1: of the dividend (C).
double modulo(double a, double b, bool c) {
  double r = std::fmod(a, b);
  return !c && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t modulo(int64_t a, int64_t b, bool c) {
  if (b == 0) throw UserError("integer division by zero");
  if (b == -1) return 0;
  int64_t r = a % b;
  return !c && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
uint64_t modulo(uint64_t a, uint64_t b, bool) {
  if (b == 0) throw UserError("integer division by zero");
  return a % b;
}
}  // namespace

#define ARITHMETIC(Name, sign)                                                                 \
  const OpDef op_##Name = {                                                                    \
      #Name, "", 14,                                                                           \
      [](InferContext& c) {                                                                    \
        inferPair(c);                                                                          \
        symbolicBinary(c, [](const Dim& a, const Dim& b) { return std::optional(a sign b); }); \
      },                                                                                       \
      [](EvalContext& c) { evalBinary(c, c.in(0).dtype(), [](auto a, auto b) { return wrap(a) sign wrap(b); }); }};
ARITHMETIC(Add, +)
ARITHMETIC(Sub, -)
ARITHMETIC(Mul, *)

const OpDef op_Div = {
    "Div", "", 14,
    [](InferContext& c) {
      inferPair(c);
      bool whole = ir::isInteger(c.in(0).dtype);
      symbolicBinary(c, [&](const Dim& a, const Dim& b) -> std::optional<Dim> {
        if (b.is(0)) return std::nullopt;
        if (auto e = exactDiv(a, b)) return e;
        if (!whole) return std::nullopt;
        if (a.isConstant() && b.isConstant()) return Dim(divide(a.value(), b.value()));
        // Rounding towards zero and downwards agree on what is not negative.
        if (atLeast(c, a, 0) && atLeast(c, b, 1)) return floorDiv(a, b);
        return std::nullopt;
      });
    },
    [](EvalContext& c) { evalBinary(c, c.in(0).dtype(), [](auto a, auto b) { return divide(a, b); }); }};

const OpDef op_Mod = {"Mod", "", 28,
                      [](InferContext& c) {
                        inferPair(c);
                        if (!ir::isInteger(c.in(0).dtype)) return;
                        bool cStyle = c.node.getInt("fmod", 0);
                        symbolicBinary(c, [&](const Dim& a, const Dim& b) -> std::optional<Dim> {
                          if (b.is(0)) return std::nullopt;
                          if (a.isConstant() && b.isConstant()) return Dim(modulo(a.value(), b.value(), cStyle));
                          if (atLeast(c, a, 0) && atLeast(c, b, 1)) return mod(a, b);
                          return std::nullopt;
                        });
                      },
                      [](EvalContext& c) {
                        bool cStyle = c.node.getInt("fmod", 0);
                        evalBinary(c, c.in(0).dtype(), [=](auto a, auto b) { return modulo(a, b, cStyle); });
                      }};

namespace {
int64_t integerPower(int64_t a, int64_t b) {
  if (b < 0) {
    if (a == 0) throw UserError("zero to a negative integer power");
    return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  }
  uint64_t r = 1, x = uint64_t(a);
  for (; b; b >>= 1, x *= x)
    if (b & 1) r *= x;
  return int64_t(r);
}
void evalPow(EvalContext& c) {
  const Tensor &a = c.in(0), &b = c.in(1);
  Extents shape = broadcastShape(a.shape(), b.shape());
  auto run = [&](auto zero, auto f) {
    using T = decltype(zero);
    auto va = load<T>(a), vb = load<T>(b);
    std::vector<T> r(ir::elementCount(shape));
    forEach<2>(shape, {broadcastStrides(a.shape(), shape), broadcastStrides(b.shape(), shape)},
               [&](int64_t i, const auto& at) { r[i] = f(va[at[0]], vb[at[1]]); });
    store(c.out(0, a.dtype(), shape), r);
  };
  if (ir::isFloat(a.dtype()) || ir::isFloat(b.dtype()))
    run(double{}, [](double x, double y) { return std::pow(x, y); });
  else
    run(int64_t{}, integerPower);
}
}  // namespace
const OpDef op_Pow = {"Pow", "", 15,
                      [](InferContext& c) {
                        accept(c, 0, Accept::kNumber);
                        accept(c, 1, Accept::kNumber);
                        c.out(0, c.in(0).dtype, c.broadcast(c.in(0).dims, c.in(1).dims));
                      },
                      evalPow};

const OpDef op_PRelu = {"PRelu", "", 16,
                        [](InferContext& c) {
                          inferPair(c);
                          if (c.node.output(0)->type.rank() != c.in(0).rank())
                            throw UserError("slope of shape {} does not broadcast to {}", ir::toString(c.in(1).dims),
                                            ir::toString(c.in(0).dims));
                        },
                        [](EvalContext& c) {
                          evalBinary(c, c.in(0).dtype(),
                                     [](auto x, auto slope) { return x < 0 ? wrap(x) * wrap(slope) : wrap(x); });
                        }};

const OpDef op_SwiGLU = {
    "SwiGLU", "", 28,
    [](InferContext& c) {
      accept(c, 0, Accept::kFloat);
      sameType(c, 0, 1);
      if (c.in(0).rank() != c.in(1).rank())
        throw UserError("A and B have {} and {} axes, which must be equal", c.in(0).rank(), c.in(1).rank());
      for (size_t i = 0; i < c.in(0).rank(); i++)
        c.requireEqual(c.in(0).dims[i], c.in(1).dims[i], fmt::format("A and B must agree on axis {}", i));
      c.out(0, c.in(0).dtype, c.in(0).dims);
    },
    [](EvalContext& c) {
      double alpha = c.node.getFloat("alpha", 1);
      evalBinary(c, c.in(0).dtype(),
                 [=](auto a, auto b) { return double(a) / (1 + std::exp(-alpha * double(a))) * double(b); });
    }};

}  // namespace rutter::ops
