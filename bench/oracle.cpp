// Speed of the oracle, which is truth, not speed, yet must not make checking an engine a matter of minutes: at least
// 1 GFLOP/s a core on convolutions and matrix products.
#include <benchmark/benchmark.h>

#include "ops/op.h"

using namespace rutter;
namespace {
ir::Tensor ramp(std::vector<int64_t> shape) {
  ir::Tensor t(ir::DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.size(); i++) t.as<float>()[i] = float(i % 17) / 16 - 0.5f;
  return t;
}
void run(benchmark::State& state, const char* op, const ir::Tensor& a, const ir::Tensor& b,
         std::map<std::string, ir::Attr> attrs, double flop) {
  ir::Graph g;
  ir::Node* n = g.makeNode(g.top(), op, {g.makeConstant("a", a), g.makeConstant("b", b)}, {g.makeValue("y")});
  n->attrs = std::move(attrs);
  for (auto _ : state) benchmark::DoNotOptimize(ops::evalNode(*n, {&a, &b}));
  state.counters["GFLOP/s"] = benchmark::Counter(flop * double(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}
void matmul(benchmark::State& state) {
  int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  run(state, "MatMul", ramp({m, k}), ramp({k, n}), {}, 2.0 * double(m * n * k));
}
BENCHMARK(matmul)
    ->ArgNames({"m", "n", "k"})
    ->Args({128, 768, 768})
    ->Args({128, 3072, 768})
    ->Args({1, 1000, 2048})
    ->Unit(benchmark::kMillisecond);
// A square image of `size`, `in` channels to `out`, a square kernel, in groups, so padded that the size stays.
void conv(benchmark::State& state) {
  int64_t in = state.range(0), out = state.range(1), size = state.range(2), k = state.range(3), group = state.range(4),
          pad = k / 2;
  run(state, "Conv", ramp({1, in, size, size}), ramp({out, in / group, k, k}),
      {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}, {"group", group}},
      2.0 * double(out * size * size * in / group * k * k));
}
BENCHMARK(conv)
    ->ArgNames({"in", "out", "size", "kernel", "group"})
    ->Args({64, 64, 56, 3, 1})
    ->Args({256, 64, 56, 1, 1})
    ->Args({3, 64, 112, 7, 1})
    ->Args({512, 512, 7, 3, 1})
    ->Args({96, 96, 56, 3, 96})
    ->Unit(benchmark::kMillisecond);
}  // namespace
BENCHMARK_MAIN();
