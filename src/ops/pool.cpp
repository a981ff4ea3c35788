// MaxPool, AveragePool and LpPool over any number of spatial axes, and the global pools.
#include "ops/support.h"
#include "ops/window.h"

namespace rutter::ops {
namespace {
Dims spatial(const Dims& d) {
  return Dims(d.begin() + 2, d.end());
}
void inferPool(InferContext& c, Accept set) {
  accept(c, 0, set);
  const Dims x = c.in(0).dims;
  if (x.size() < 3) throw UserError("data has {} axes and needs at least 3", x.size());
  Window w = windowOf(c.node, spatial(x), poolKernel(c.node), c.graph.symbols);
  requireRoom(c, w);
  Dims out{x[0], x[1]};
  out.insert(out.end(), w.out.begin(), w.out.end());
  c.out(0, c.in(0).dtype, std::move(out));
}
void inferMax(InferContext& c) {
  int64_t order = c.node.getInt("storage_order", 0);
  if (order != 0 && order != 1) throw UserError("attribute storage_order is {}; supported: 0, 1", order);
  inferPool(c, Accept::kNumber);
  c.out(1, DType::kI64, c.node.output(0)->type.dims);
}

// Calls f(plane, o, cells) for every result element: cells are the offsets, within the input plane, of the window's
// elements that lie inside the input.
template <typename F>
void slide(const Window& w, const Extents& in, F&& f) {
  size_t axes = w.axes();
  Extents out, spatialIn(in.begin() + 2, in.end()), strides = ir::rowMajorStrides(spatialIn);
  for (const Dim& d : w.out) out.push_back(d.value());
  int64_t results = ir::elementCount(out), planes = in[0] * in[1], taps = ir::elementCount(w.kernel);
  std::vector<int64_t> cells;
  Extents at(axes);
  for (int64_t o = 0; o < results; o++) {
    for (int64_t i = int64_t(axes) - 1, rest = o; i >= 0; i--) {
      at[i] = rest % out[i] * w.stride[i] - w.padBegin[i].value();
      rest /= out[i];
    }
    cells.clear();
    for (int64_t t = 0; t < taps; t++) {
      int64_t offset = 0, rest = t;
      bool inside = true;
      for (int64_t i = int64_t(axes) - 1; i >= 0; i--) {
        int64_t p = at[i] + rest % w.kernel[i] * w.dilation[i];
        inside = inside && p >= 0 && p < spatialIn[i];
        offset += p * strides[i];
        rest /= w.kernel[i];
      }
      if (inside) cells.push_back(offset);
    }
    for (int64_t p = 0; p < planes; p++) f(p, o, at, cells);
  }
}
Extents outShape(const Window& w, const Extents& in) {
  Extents s{in[0], in[1]};
  for (const Dim& d : w.out) s.push_back(d.value());
  return s;
}

// The offset in a column-major plane of what lies at `offset` of the row-major one.
int64_t transposed(int64_t offset, const Extents& plane) {
  int64_t r = 0;
  for (size_t i = plane.size(); i-- > 0; offset /= plane[i]) {
    int64_t stride = 1;
    for (size_t k = 0; k < i; k++) stride *= plane[k];
    r += offset % plane[i] * stride;
  }
  return r;
}
void evalMax(EvalContext& c) {
  const Tensor& x = c.in(0);
  bool columnMajor = c.node.getInt("storage_order", 0);
  Window w = windowOf(c.node, spatial(ir::toDims(x.shape())), poolKernel(c.node), {});
  Tensor& y = c.out(0, x.dtype(), outShape(w, x.shape()));
  Extents plane(x.shape().begin() + 2, x.shape().end());
  int64_t size = ir::elementCount(plane), results = y.size() / std::max<int64_t>(1, x.shape()[0] * x.shape()[1]);
  compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    constexpr T lowest = std::is_same_v<T, double> ? T(-INFINITY) : std::numeric_limits<T>::lowest();
    auto v = load<T>(x);
    std::vector<T> r(size_t(y.size()), lowest);
    Extents where(size_t(y.size()), 0);
    slide(w, x.shape(), [&](int64_t p, int64_t o, const Extents&, const std::vector<int64_t>& cells) {
      T m = lowest;
      int64_t best = cells.empty() ? 0 : cells[0];
      for (int64_t k : cells) {
        T e = v[size_t(p * size + k)];
        if (e > m || e != e) {
          m = e;
          best = k;
        }
        if (m != m) break;
      }
      r[size_t(p * results + o)] = m;
      where[size_t(p * results + o)] = p * size + (columnMajor ? transposed(best, plane) : best);
    });
    store(y, r);
    if (c.outputs.size() > 1) store(c.out(1, DType::kI64, outShape(w, x.shape())), where);
  });
}

void evalAverage(EvalContext& c) {
  const Tensor& x = c.in(0);
  Window w = windowOf(c.node, spatial(ir::toDims(x.shape())), poolKernel(c.node), {});
  Tensor& y = c.out(0, x.dtype(), outShape(w, x.shape()));
  Extents plane(x.shape().begin() + 2, x.shape().end());
  int64_t size = ir::elementCount(plane), results = y.size() / std::max<int64_t>(1, x.shape()[0] * x.shape()[1]);
  bool countPad = c.node.getInt("count_include_pad", 0);
  auto v = load<double>(x);
  std::vector<double> r(size_t(y.size()));
  slide(w, x.shape(), [&](int64_t p, int64_t o, const Extents& at, const std::vector<int64_t>& cells) {
    double sum = 0;
    for (int64_t k : cells) sum += v[size_t(p * size + k)];
    int64_t count = int64_t(cells.size());
    if (countPad) {  // elements of the padding count, those that ceil_mode adds beyond it do not
      count = 1;
      for (size_t i = 0; i < w.axes(); i++) {
        int64_t n = 0, end = plane[i] + w.padEnd[i].value();
        for (int64_t k = 0; k < w.kernel[i]; k++) n += at[i] + k * w.dilation[i] < end;
        count *= n;
      }
    }
    r[size_t(p * results + o)] = sum / double(count);
  });
  store(y, r);
}

double lpOrder(const ir::Node& n) {
  int64_t p = n.getInt("p", 2);
  if (p < 1) throw UserError("attribute p is {} and must be at least 1", p);
  return double(p);
}
void evalLp(EvalContext& c) {
  const Tensor& x = c.in(0);
  Window w = windowOf(c.node, spatial(ir::toDims(x.shape())), poolKernel(c.node), {});
  Tensor& y = c.out(0, x.dtype(), outShape(w, x.shape()));
  Extents plane(x.shape().begin() + 2, x.shape().end());
  int64_t size = ir::elementCount(plane), results = y.size() / std::max<int64_t>(1, x.shape()[0] * x.shape()[1]);
  double order = lpOrder(c.node);
  auto v = load<double>(x);
  std::vector<double> r(size_t(y.size()), 0.0);
  slide(w, x.shape(), [&](int64_t p, int64_t o, const Extents&, const std::vector<int64_t>& cells) {
    double sum = 0;
    for (int64_t k : cells) sum += std::pow(std::abs(v[size_t(p * size + k)]), order);
    r[size_t(p * results + o)] = std::pow(sum, 1 / order);
  });
  store(y, r);
}

void inferGlobal(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  Dims d = c.in(0).dims;
  if (d.size() < 3) throw UserError("data has {} axes and needs at least 3", d.size());
  std::fill(d.begin() + 2, d.end(), Dim(1));
  c.out(0, c.in(0).dtype, std::move(d));
}
template <typename F>
void evalGlobal(EvalContext& c, F f) {
  const Tensor& x = c.in(0);
  Extents shape = x.shape();
  std::fill(shape.begin() + 2, shape.end(), 1);
  Tensor& y = c.out(0, x.dtype(), shape);
  auto v = load<double>(x);
  int64_t n = y.size() ? x.size() / y.size() : 0;
  for (int64_t p = 0; p < y.size(); p++) y.setDouble(p, f(std::span(v).subspan(size_t(p * n), size_t(n))));
}
}  // namespace
const OpDef op_MaxPool = {"MaxPool", "", 22, inferMax, evalMax};
const OpDef op_AveragePool = {"AveragePool", "", 22, [](InferContext& c) { inferPool(c, Accept::kFloat); },
                              evalAverage};
const OpDef op_GlobalAveragePool = {"GlobalAveragePool", "", 22, inferGlobal, [](EvalContext& c) {
                                      evalGlobal(c, [](auto v) {
                                        double s = 0;
                                        for (double x : v) s += x;
                                        return s / double(v.size());
                                      });
                                    }};
const OpDef op_LpPool = {"LpPool", "", 22,
                         [](InferContext& c) {
                           lpOrder(c.node);
                           inferPool(c, Accept::kFloat);
                         },
                         evalLp};
const OpDef op_GlobalLpPool = {"GlobalLpPool", "", 22,
                               [](InferContext& c) {
                                 lpOrder(c.node);
                                 inferGlobal(c);
                               },
                               [](EvalContext& c) {
                                 evalGlobal(c, [order = lpOrder(c.node)](auto v) {
                                   double sum = 0;
                                   for (double x : v) sum += std::pow(std::abs(x), order);
                                   return std::pow(sum, 1 / order);
                                 });
                               }};
const OpDef op_GlobalMaxPool = {"GlobalMaxPool", "", 22, inferGlobal, [](EvalContext& c) {
                                  evalGlobal(c, [](auto v) {
                                    double m = -INFINITY;
                                    for (double x : v)
                                      if (x > m || std::isnan(x)) m = x;
                                    return m;
                                  });
                                }};
}  // namespace rutter::ops
