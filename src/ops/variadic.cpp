// Min, Max, Sum, Mean of any number of inputs with broadcasting.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferAll(InferContext& c, Accept set) {
  accept(c, 0, set);
  Dims d = c.in(0).dims;
  for (size_t i = 1; i < c.inputs(); i++) {
    sameType(c, 0, i);
    d = c.broadcast(d, c.in(i).dims);
  }
  c.out(0, c.in(0).dtype, std::move(d));
}
template <typename F, typename G>
void fold(EvalContext& c, F combine, G finish) {
  Extents shape;
  for (size_t k = 0; k < c.inputs.size(); k++) shape = broadcastShape(shape, c.in(k).shape());
  compute(c.in(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> r(ir::elementCount(shape));
    for (size_t k = 0; k < c.inputs.size(); k++) {
      auto v = load<T>(c.in(k));
      forEach<1>(shape, {broadcastStrides(c.in(k).shape(), shape)},
                 [&](int64_t i, const auto& at) { r[i] = k ? combine(r[i], v[at[0]]) : v[at[0]]; });
    }
    for (T& x : r) x = finish(x);
    store(c.out(0, c.in(0).dtype(), shape), r);
  });
}
// NaN wins.
template <typename T>
T lower(T a, T b) {
  return b < a || b != b ? b : a;
}
template <typename T>
T higher(T a, T b) {
  return b > a || b != b ? b : a;
}
using Choice = Dim (*)(const InferContext&, const Dim&, const Dim&);
void inferChoice(InferContext& c, Choice pick) {
  inferAll(c, Accept::kNumber);
  if (c.inputs() == 1) return symbolicCopy(c);
  if (c.inputs() == 2) symbolicBinary(c, [&](const Dim& a, const Dim& b) { return std::optional(pick(c, a, b)); });
}
auto same = [](auto x) { return x; };
}  // namespace

const OpDef op_Min = {"Min", "", 13, [](InferContext& c) { inferChoice(c, smaller); },
                      [](EvalContext& c) { fold(c, [](auto a, auto b) { return lower(a, b); }, same); }};
const OpDef op_Max = {"Max", "", 13, [](InferContext& c) { inferChoice(c, larger); },
                      [](EvalContext& c) { fold(c, [](auto a, auto b) { return higher(a, b); }, same); }};
const OpDef op_Sum = {"Sum", "", 13, [](InferContext& c) { inferAll(c, Accept::kFloat); },
                      [](EvalContext& c) { fold(c, [](auto a, auto b) { return a + b; }, same); }};
const OpDef op_Mean = {"Mean", "", 13, [](InferContext& c) { inferAll(c, Accept::kFloat); },
                       [](EvalContext& c) {
                         fold(
                             c, [](auto a, auto b) { return a + b; },
                             [n = c.inputs.size()](auto x) { return decltype(x)(x / decltype(x)(n)); });
                       }};

}  // namespace rutter::ops
