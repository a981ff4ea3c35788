// Reductions over a set of axes.
#include "ops/support.h"

namespace rutter::ops {
namespace {
// Which axes go. Without any, all; with noop_with_empty_axes=1 none, and the operator acts on single elements.
std::vector<bool> reducedAxes(const ir::Node& n, std::vector<int64_t> axes, size_t rank) {
  if (axes.empty()) return std::vector<bool>(rank, !n.getInt("noop_with_empty_axes", 0));
  std::vector<bool> r(rank);
  int64_t size = int64_t(rank);
  for (int64_t a : axes) {
    if (a < -size || a >= size) throw UserError("axis {} is outside [-{}, {})", a, size, size);
    r[size_t(a < 0 ? a + size : a)] = true;
  }
  return r;
}
template <typename T>
std::vector<T> reducedShape(const ir::Node& n, const std::vector<T>& in, const std::vector<bool>& gone) {
  bool keep = n.getInt("keepdims", 1);
  std::vector<T> out;
  for (size_t i = 0; i < in.size(); i++) {
    if (!gone[i])
      out.push_back(in[i]);
    else if (keep)
      out.push_back(T(1));
  }
  return out;
}
void infer(InferContext& c, Accept set) {
  accept(c, 0, set);
  std::vector<int64_t> axes;
  if (c.has(1)) axes = c.needInts(1, "axes");
  c.out(0, c.in(0).dtype, reducedShape(c.node, c.in(0).dims, reducedAxes(c.node, axes, c.in(0).rank())));
}
// A vector of expressions down to one.
void inferSymbolic(InferContext& c, Accept set, Dim (*f)(const InferContext&, const Dim&, const Dim&)) {
  infer(c, set);
  auto v = c.symbolic(0);
  if (!v || v->empty() || !c.node.output(0) || c.in(0).rank() != 1) return;
  if (c.node.output(0)->type.rank() == 1 && !c.node.output(0)->type.dims[0].is(1)) return;
  Dim r = (*v)[0];
  for (size_t i = 1; i < v->size(); i++) r = f(c, r, (*v)[i]);
  c.setSymbolic(0, {r});
}

struct Reduction {
  Extents shape;      // of the result
  Extents strides;    // of the result, one an input axis, 0 on those that go
  int64_t count = 1;  // elements that make one
};
Reduction reductionOf(EvalContext& c) {
  const Extents& in = c.in(0).shape();
  auto gone = reducedAxes(c.node, c.has(1) ? c.in(1).toInts() : std::vector<int64_t>{}, in.size());
  Reduction r;
  r.shape = reducedShape(c.node, in, gone);
  r.strides.assign(in.size(), 0);
  int64_t s = 1;
  for (size_t i = in.size(); i-- > 0;) {
    if (gone[i]) {
      r.count *= in[i];
    } else {
      r.strides[i] = s;
      s *= in[i];
    }
  }
  return r;
}
// acc = step(acc, x) from `start`, then finish(acc, count).
template <typename T, typename Step, typename Finish>
void reduce(EvalContext& c, T start, Step step, Finish finish) {
  Reduction r = reductionOf(c);
  auto v = load<T>(c.in(0));
  std::vector<T> acc(size_t(ir::elementCount(r.shape)), start);
  forEach<1>(c.in(0).shape(), {r.strides},
             [&](int64_t i, const auto& o) { acc[size_t(o[0])] = step(acc[size_t(o[0])], v[size_t(i)]); });
  for (T& a : acc) a = finish(a, r.count);
  store(c.out(0, c.in(0).dtype(), r.shape), acc);
}
auto keep = [](auto a, int64_t) { return a; };
template <typename Step, typename Finish>
void reduceNumbers(EvalContext& c, int start, Step step, Finish finish) {
  compute(c.in(0).dtype(), [&](auto zero) { reduce(c, decltype(zero)(start), step, finish); });
}
template <typename T>
T magnitude(T x) {
  if constexpr (std::is_same_v<T, double>)
    return std::abs(x);
  else
    return x < 0 ? T(0 - uint64_t(x)) : x;
}
template <typename T>
T rootOf(T x) {
  return T(std::sqrt(double(x)));
}
// The extreme element; NaN wins. Over nothing: the infinity that any element beats; bool: false or true; integers have
// none.
template <bool kMax>
void extreme(EvalContext& c) {
  if (ir::isInteger(c.in(0).dtype()) && reductionOf(c).count == 0)
    throw UserError("integers have no extreme element over an empty axis");
  compute(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    using L = std::numeric_limits<T>;
    T start = c.in(0).dtype() == DType::kBool ? T(!kMax)
              : std::is_same_v<T, double>     ? T(kMax ? -INFINITY : INFINITY)
              : kMax                          ? L::lowest()
                                              : L::max();
    reduce(c, start, [](T a, T x) { return (kMax ? x > a : x < a) || x != x ? x : a; }, keep);
  });
}
void logSumExp(EvalContext& c) {
  Reduction r = reductionOf(c);
  auto v = load<double>(c.in(0));
  size_t n = size_t(ir::elementCount(r.shape));
  std::vector<double> top(n, -INFINITY), sum(n, 0.0);
  forEach<1>(c.in(0).shape(), {r.strides}, [&](int64_t i, const auto& o) {
    double x = v[size_t(i)], &m = top[size_t(o[0])];
    if (x > m || std::isnan(x)) m = x;
  });
  auto shift = [&](size_t o) { return std::isinf(top[o]) ? 0.0 : top[o]; };
  forEach<1>(c.in(0).shape(), {r.strides},
             [&](int64_t i, const auto& o) { sum[size_t(o[0])] += std::exp(v[size_t(i)] - shift(size_t(o[0]))); });
  for (size_t o = 0; o < n; o++) sum[o] = std::log(sum[o]) + shift(o);
  store(c.out(0, c.in(0).dtype(), r.shape), sum);
}
}  // namespace

const OpDef op_ReduceSum = {"ReduceSum", "", 13,
                            [](InferContext& c) {
                              inferSymbolic(c, Accept::kNumber,
                                            [](const InferContext&, const Dim& a, const Dim& b) { return a + b; });
                            },
                            [](EvalContext& c) { reduceNumbers(c, 0, [](auto a, auto x) { return a + x; }, keep); }};
const OpDef op_ReduceProd = {"ReduceProd", "", 18,
                             [](InferContext& c) {
                               inferSymbolic(c, Accept::kNumber,
                                             [](const InferContext&, const Dim& a, const Dim& b) { return a * b; });
                             },
                             [](EvalContext& c) { reduceNumbers(c, 1, [](auto a, auto x) { return a * x; }, keep); }};
const OpDef op_ReduceMax = {"ReduceMax", "", 20,
                            [](InferContext& c) { inferSymbolic(c, Accept::kNumberOrBool, larger); }, extreme<true>};
const OpDef op_ReduceMin = {"ReduceMin", "", 20,
                            [](InferContext& c) { inferSymbolic(c, Accept::kNumberOrBool, smaller); }, extreme<false>};
const OpDef op_ReduceMean = {"ReduceMean", "", 18, [](InferContext& c) { infer(c, Accept::kNumber); },
                             [](EvalContext& c) {
                               reduceNumbers(
                                   c, 0, [](auto a, auto x) { return a + x; },
                                   [](auto a, int64_t n) {
                                     return n || std::is_same_v<decltype(a), double> ? decltype(a)(a / decltype(a)(n))
                                                                                     : a;
                                   });
                             }};
const OpDef op_ReduceL1 = {
    "ReduceL1", "", 18, [](InferContext& c) { infer(c, Accept::kNumber); },
    [](EvalContext& c) { reduceNumbers(c, 0, [](auto a, auto x) { return a + magnitude(x); }, keep); }};
const OpDef op_ReduceL2 = {
    "ReduceL2", "", 18, [](InferContext& c) { infer(c, Accept::kNumber); },
    [](EvalContext& c) {
      reduceNumbers(c, 0, [](auto a, auto x) { return a + x * x; }, [](auto a, int64_t) { return rootOf(a); });
    }};
const OpDef op_ReduceSumSquare = {
    "ReduceSumSquare", "", 18, [](InferContext& c) { infer(c, Accept::kNumber); },
    [](EvalContext& c) { reduceNumbers(c, 0, [](auto a, auto x) { return a + x * x; }, keep); }};
const OpDef op_ReduceLogSum = {
    "ReduceLogSum", "", 28, [](InferContext& c) { infer(c, Accept::kFloat); },
    [](EvalContext& c) {
      reduce(c, 0.0, [](double a, double x) { return a + x; }, [](double a, int64_t) { return std::log(a); });
    }};
const OpDef op_ReduceLogSumExp = {"ReduceLogSumExp", "", 28, [](InferContext& c) { infer(c, Accept::kFloat); },
                                  logSumExp};

}  // namespace rutter::ops
