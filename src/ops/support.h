#pragma once
// What the files of this room share: declarations of all OpDefs, dtype checks, loading and storing tensors as plain
// numbers, broadcasting loops, and arithmetic on the expressions that shape rules pass along.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "ops/op.h"

namespace rutter::ops {

#define OP(name) extern const OpDef op_##name;
#include "ops/ops.def"
#undef OP

using ir::Dim;
using ir::Dims;
using ir::DType;
using ir::Tensor;
using Extents = std::vector<int64_t>;

/// Sets of element types that the rules accept.
enum class Accept : uint8_t {
  kFloat,    ///< float16, bfloat16, float32, float64
  kInteger,  ///< int8 … uint64
  kNumber,   ///< both
  kBool,
  kNumberOrBool,
  kIndex,    ///< int32, int64
  kMovable,  ///< everything of at least one byte an element: for operators that only move data
};
bool accepts(Accept set, DType t);
/// UserError that names the input, its dtype and what is supported, unless input i is of the set.
void accept(InferContext& c, size_t i, Accept set);
/// UserError unless inputs i and j have one dtype.
void sameType(InferContext& c, size_t i, size_t j);
/// UserError unless input i has `rank` axes.
void needRank(InferContext& c, size_t i, size_t rank, const char* what);

/// Calls f with a value of the type to compute in: double for floats, uint64_t for uint64, int64_t for the rest.
template <typename F>
auto compute(DType t, F&& f) {
  if (ir::isFloat(t)) return f(double{});
  if (t == DType::kU64) return f(uint64_t{});
  return f(int64_t{});
}
/// All elements as T, one of double, int64_t, uint64_t.
template <typename T>
std::vector<T> load(const Tensor& t);
/// Rounds (floats) or wraps (integers) all elements to the dtype of t.
template <typename T>
void store(Tensor& t, const std::vector<T>& v);

/// Calls f with an unsigned integer as wide as an element.
template <typename F>
void byWidth(const Tensor& t, F&& f) {
  switch (ir::bitsOf(t.dtype())) {
    case 8:
      return f(uint8_t{});
    case 16:
      return f(uint16_t{});
    case 32:
      return f(uint32_t{});
    case 64:
      return f(uint64_t{});
    default:
      throw UserError("elements of type {} cannot be moved one by one", ir::dtypeName(t.dtype()));
  }
}
/// Element of an input tensor of any alignment.
template <typename T>
T at(const Tensor& t, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(t.data()) + i * int64_t(sizeof(T)), sizeof v);
  return v;
}
/// out[i] = in[offset + <index of i in out's shape, strides>]: strides in elements of `in`, may be 0 or negative.
void stridedCopy(Tensor& out, const Tensor& in, const Extents& strides, int64_t offset = 0);

/// Multidirectional broadcast of concrete shapes; UserError if they do not fit.
Extents broadcastShape(const Extents& a, const Extents& b);
/// Element strides of a dense tensor of shape `in` when it is read under shape `out`: 0 on repeated axes.
Extents broadcastStrides(const Extents& in, const Extents& out);

/// Visits `shape` in row-major order: f(i, index) with i counting up and index[k] following strides[k].
template <size_t N, typename F>
void forEach(const Extents& shape, const std::array<Extents, N>& strides, F&& f) {
  int64_t total = ir::elementCount(shape);
  if (total == 0) return;
  size_t rank = shape.size();
  int64_t inner = rank ? shape[rank - 1] : 1;
  std::array<int64_t, N> base{}, step{};
  if (rank)
    for (size_t k = 0; k < N; k++) step[k] = strides[k][rank - 1];
  Extents counter(rank, 0);
  for (int64_t i = 0; i < total;) {
    std::array<int64_t, N> index = base;
    for (int64_t j = 0; j < inner; j++, i++) {
      f(i, index);
      for (size_t k = 0; k < N; k++) index[k] += step[k];
    }
    for (size_t a = rank < 2 ? 0 : rank - 1; a-- > 0;) {
      for (size_t k = 0; k < N; k++) base[k] += strides[k][a];
      if (++counter[a] < shape[a]) break;
      for (size_t k = 0; k < N; k++) base[k] -= strides[k][a] * shape[a];
      counter[a] = 0;
    }
  }
}

/// An operator over elements of one input: result type and shape are the input's.
template <typename F>
void evalFloatUnary(EvalContext& c, F f) {
  auto v = load<double>(c.in(0));
  for (double& x : v) x = f(x);
  store(c.out(0, c.in(0).dtype(), c.in(0).shape()), v);
}
/// Like evalFloatUnary, but f also takes int64_t and uint64_t, for integer inputs.
template <typename F>
void evalUnary(EvalContext& c, F f) {
  compute(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto v = load<T>(c.in(0));
    for (T& x : v) x = T(f(x));
    store(c.out(0, c.in(0).dtype(), c.in(0).shape()), v);
  });
}
/// out = f(a, b) with broadcasting; both inputs of one dtype.
template <typename F>
void evalBinary(EvalContext& c, DType out, F f) {
  const Tensor &a = c.in(0), &b = c.in(1);
  Extents shape = broadcastShape(a.shape(), b.shape());
  compute(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using R = decltype(f(zero, zero));
    using S = std::conditional_t<std::is_same_v<R, bool>, int64_t, R>;
    auto va = load<T>(a), vb = load<T>(b);
    std::vector<S> r(ir::elementCount(shape));
    forEach<2>(shape, {broadcastStrides(a.shape(), shape), broadcastStrides(b.shape(), shape)},
               [&](int64_t i, const auto& at) { r[i] = S(f(va[at[0]], vb[at[1]])); });
    store(c.out(0, out, shape), r);
  });
}

/// Sets the output's contents to f of the inputs' contents, element by element with broadcasting, if all of them are
/// known and the output has at most one axis. f returns nothing where the result cannot be expressed.
void symbolicBinary(InferContext& c, const std::function<std::optional<Dim>(const Dim&, const Dim&)>& f);
void symbolicUnary(InferContext& c, const std::function<std::optional<Dim>(const Dim&)>& f);
/// Passes the contents of input i on to output 0.
void symbolicCopy(InferContext& c, size_t i = 0);

/// Minimum and maximum that are simplified where the profile's bounds decide.
Dim smaller(const ir::SymbolTable& s, const Dim& a, const Dim& b);
Dim larger(const ir::SymbolTable& s, const Dim& a, const Dim& b);
inline Dim smaller(const InferContext& c, const Dim& a, const Dim& b) {
  return smaller(c.graph.symbols, a, b);
}
inline Dim larger(const InferContext& c, const Dim& a, const Dim& b) {
  return larger(c.graph.symbols, a, b);
}
bool atLeast(const InferContext& c, const Dim& a, int64_t v);  ///< provably a >= v
bool below(const InferContext& c, const Dim& a, int64_t v);    ///< provably a < v

/// Node attribute `axes` or input i, made non-negative, checked for range and repetition.
std::vector<int64_t> normalAxes(InferContext& c, std::vector<int64_t> axes, size_t rank);

}  // namespace rutter::ops
