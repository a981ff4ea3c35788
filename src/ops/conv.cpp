#include "ops/double_gemm.h"
#include "ops/support.h"
#include "ops/window.h"

namespace rutter::ops {
namespace {
Dims spatial(const Dims& d) {
  return Dims(d.begin() + 2, d.end());
}

void infer(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  sameType(c, 0, 1);
  const Dims x = c.in(0).dims, w = c.in(1).dims;
  int64_t group = c.node.getInt("group", 1);
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size())
    throw UserError("data and weights have {} and {} axes; 3 to 5 each are supported (1 to 3 spatial ones)", x.size(),
                    w.size());
  if (group < 1) throw UserError("attribute group is {}", group);
  c.requireEqual(x[1], w[1] * Dim(group),
                 fmt::format("channels must be {} groups of the weights' {}", group, w[1].text()));
  c.requireDivisible(w[0], Dim(group), "output channels must be divisible by group");
  if (c.has(2)) {
    sameType(c, 0, 2);
    needRank(c, 2, 1, "bias");
    c.requireEqual(c.in(2).dims[0], w[0], "the bias must have one element an output channel");
  }
  Window win = windowOf(c.node, spatial(x), convKernel(c.node, w), c.graph.symbols);
  requireRoom(c, win);
  Dims out{x[0], w[0]};
  out.insert(out.end(), win.out.begin(), win.out.end());
  c.out(0, c.in(0).dtype, std::move(out));
}

// One or two spatial axes are taken as three, with extents 1 in front.
struct Box {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  Box(const Window& w, const Extents& shape) {
    for (size_t i = 0, o = 3 - w.axes(); i < w.axes(); i++, o++) {
      in[o] = shape[i + 2];
      out[o] = w.out[i].value();
      kernel[o] = w.kernel[i];
      stride[o] = w.stride[i];
      dilation[o] = w.dilation[i];
      pad[o] = w.padBegin[i].value();
    }
  }
  int64_t inSize() const { return in[0] * in[1] * in[2]; }
  int64_t outSize() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// Columns [j, j + n) of row (channel, tap) of the matrix whose columns are output positions and whose rows are the
// input elements that the tap reads there (im2col).
void patchRow(const Box& b, const double* x, int64_t tap, int64_t j, int64_t n, double* row) {
  int64_t t[3] = {tap / (b.kernel[1] * b.kernel[2]), tap / b.kernel[2] % b.kernel[1], tap % b.kernel[2]};
  int64_t o[3] = {j / (b.out[1] * b.out[2]), j / b.out[2] % b.out[1], j % b.out[2]};
  while (n > 0) {
    int64_t d = o[0] * b.stride[0] + t[0] * b.dilation[0] - b.pad[0],
            h = o[1] * b.stride[1] + t[1] * b.dilation[1] - b.pad[1];
    int64_t run = std::min(n, b.out[2] - o[2]), col = o[2] * b.stride[2] + t[2] * b.dilation[2] - b.pad[2];
    if (d < 0 || d >= b.in[0] || h < 0 || h >= b.in[1]) {
      std::fill_n(row, run, 0.0);
    } else {
      // [lo, hi): where the tap reads inside of the line; zeros around.
      const double* line = x + (d * b.in[1] + h) * b.in[2];
      int64_t step = b.stride[2], lo = std::clamp<int64_t>(col < 0 ? (-col + step - 1) / step : 0, 0, run);
      int64_t hi = std::clamp<int64_t>(col < b.in[2] ? (b.in[2] - 1 - col) / step + 1 : 0, lo, run);
      std::fill_n(row, lo, 0.0);
      if (step == 1)
        std::copy_n(line + col + lo, hi - lo, row + lo);
      else
        for (int64_t i = lo; i < hi; i++) row[i] = line[col + i * step];
      std::fill_n(row + hi, run - hi, 0.0);
    }
    row += run;
    n -= run;
    o[2] = 0;
    if (++o[1] == b.out[1]) o[1] = 0, o[0]++;
  }
}

// A group of few output channels: a product would waste most of its tiles.
void evalNarrow(const Box& b, int64_t m, int64_t channels, const double* weights, const double* image, double* result) {
  int64_t n = b.outSize(), taps = b.taps();
  std::vector<double> row(size_t(n), 0.0);
  for (int64_t k = 0; k < channels * taps; k++) {
    patchRow(b, image + k / taps * b.inSize(), k % taps, 0, n, row.data());
    for (int64_t i = 0; i < m; i++) addScaled(result + i * n, weights[i * channels * taps + k], row.data(), n);
  }
}

void eval(EvalContext& c) {
  const Tensor &x = c.in(0), &w = c.in(1);
  int64_t group = c.node.getInt("group", 1);
  Window win = windowOf(c.node, spatial(ir::toDims(x.shape())), convKernel(c.node, ir::toDims(w.shape())), {});
  Box b(win, x.shape());
  int64_t batch = x.shape()[0], channels = w.shape()[1], m = w.shape()[0] / group, k = channels * b.taps(),
          n = b.outSize();
  if (x.shape()[1] != channels * group)
    throw UserError("{} channels are given, {} are needed", x.shape()[1], channels * group);
  Extents shape{batch, m * group};
  for (const Dim& d : win.out) shape.push_back(d.value());
  Tensor& y = c.out(0, x.dtype(), shape);
  auto vx = load<double>(x), vw = load<double>(w);
  std::vector<double> bias = c.has(2) ? load<double>(c.in(2)) : std::vector<double>(size_t(m * group)),
                      r(size_t(y.size()));
  for (int64_t g = 0; g < group; g++) {
    if (m < 3) {
      for (int64_t s = 0; s < batch; s++) {
        double* to = r.data() + (s * group + g) * m * n;
        for (int64_t i = 0; i < m * n; i++) to[i] = bias[size_t(g * m + i / n)];
        evalNarrow(b, m, channels, vw.data() + g * m * k, vx.data() + (s * group + g) * channels * b.inSize(), to);
      }
      continue;
    }
    DoubleGemm gemm(m, k, vw.data() + g * m * k);
    for (int64_t s = 0; s < batch; s++) {
      const double* image = vx.data() + (s * group + g) * channels * b.inSize();
      gemm.run(
          n,
          [&](int64_t p, int64_t j, int64_t width, double* row) {
            patchRow(b, image + p / b.taps() * b.inSize(), p % b.taps(), j, width, row);
          },
          [&](int64_t i, int64_t j, int64_t width, const double* row) {
            double* to = r.data() + ((s * group + g) * m + i) * n + j;
            for (int64_t q = 0; q < width; q++) to[q] = row[q] + bias[size_t(g * m + i)];
          });
    }
  }
  store(y, r);
}
}  // namespace
const OpDef op_Conv = {"Conv", "", 22, infer, eval};

namespace {
void inferTransposed(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  sameType(c, 0, 1);
  const Dims x = c.in(0).dims, w = c.in(1).dims;
  int64_t group = c.node.getInt("group", 1);
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size())
    throw UserError("data and weights have {} and {} axes; 3 to 5 each are supported (1 to 3 spatial ones)", x.size(),
                    w.size());
  if (group < 1) throw UserError("attribute group is {}", group);
  c.requireEqual(x[1], w[0], "the weights' first axis must be the input's channels");
  c.requireDivisible(w[0], Dim(group), "input channels must be divisible by group");
  Dim m = w[1] * Dim(group);
  if (c.has(2)) {
    sameType(c, 0, 2);
    needRank(c, 2, 1, "bias");
    c.requireEqual(c.in(2).dims[0], m, "the bias must have one element an output channel");
  }
  Window win = transposedWindowOf(c.node, spatial(x), convKernel(c.node, w));
  requireRoom(c, win);
  Dims out{x[0], m};
  out.insert(out.end(), win.out.begin(), win.out.end());
  c.out(0, c.in(0).dtype, std::move(out));
}

// Every input element adds its weights to a window of the result: (taps x channels) * (channels x positions), whose
// rows are scattered.
void evalTransposed(EvalContext& c) {
  const Tensor &x = c.in(0), &w = c.in(1);
  int64_t group = c.node.getInt("group", 1);
  Window win = transposedWindowOf(c.node, spatial(ir::toDims(x.shape())), convKernel(c.node, ir::toDims(w.shape())));
  Box b(win, x.shape());
  int64_t batch = x.shape()[0], channels = x.shape()[1] / group, m = w.shape()[1], taps = b.taps(), n = b.inSize();
  if (w.shape()[0] != x.shape()[1]) throw UserError("{} channels are given, {} are needed", x.shape()[1], w.shape()[0]);
  Extents shape{batch, m * group};
  for (const Dim& d : win.out) shape.push_back(d.value());
  Tensor& y = c.out(0, x.dtype(), shape);
  auto vx = load<double>(x), vw = load<double>(w);
  std::vector<double> r(size_t(y.size())), left(size_t(m * taps * channels));
  if (c.has(2)) {
    auto bias = load<double>(c.in(2));
    for (size_t i = 0; i < r.size(); i++) r[i] = bias[i / size_t(b.outSize()) % size_t(m * group)];
  }
  for (int64_t g = 0; g < group; g++) {
    for (int64_t p = 0; p < channels; p++)
      for (int64_t i = 0; i < m * taps; i++)
        left[size_t(i * channels + p)] = vw[size_t((g * channels + p) * m * taps + i)];
    DoubleGemm gemm(m * taps, channels, left.data());
    for (int64_t s = 0; s < batch; s++) {
      const double* image = vx.data() + (s * group + g) * channels * n;
      double* result = r.data() + (s * group + g) * m * b.outSize();
      gemm.run(
          n, [&](int64_t p, int64_t j, int64_t width, double* row) { std::copy_n(image + p * n + j, width, row); },
          [&](int64_t i, int64_t j, int64_t width, const double* row) {
            double* plane = result + i / taps * b.outSize();
            int64_t t = i % taps, kd = t / (b.kernel[1] * b.kernel[2]), kh = t / b.kernel[2] % b.kernel[1],
                    kw = t % b.kernel[2];
            for (int64_t q = 0; q < width; q++) {
              int64_t at = j + q;
              int64_t d = at / (b.in[1] * b.in[2]) * b.stride[0] + kd * b.dilation[0] - b.pad[0];
              int64_t h = at / b.in[2] % b.in[1] * b.stride[1] + kh * b.dilation[1] - b.pad[1];
              int64_t v = at % b.in[2] * b.stride[2] + kw * b.dilation[2] - b.pad[2];
              if (d >= 0 && d < b.out[0] && h >= 0 && h < b.out[1] && v >= 0 && v < b.out[2])
                plane[(d * b.out[1] + h) * b.out[2] + v] += row[q];
            }
          });
    }
  }
  store(y, r);
}
}  // namespace
const OpDef op_ConvTranspose = {"ConvTranspose", "", 22, inferTransposed, evalTransposed};
}  // namespace rutter::ops
