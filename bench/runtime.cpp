// What the runtime itself costs: giving a launch to threads, walking a plan, setting shapes, loading an engine.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include "runtime/context.h"

using namespace rutter::runtime;
namespace {

int32_t nothing(const Args*, int64_t, int64_t, void*) {
  return 0;
}
void dispatch(benchmark::State& state) {
  Pool pool({int(state.range(0)), true});
  Job job;
  job.kernel = nothing;
  job.tasks = state.range(0);
  job.schedule = Schedule(state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(pool.run(job));
}
BENCHMARK(dispatch)->ArgNames({"threads", "schedule"})->Args({1, 0})->Args({2, 0})->Args({2, 2})->UseRealTime();

/// `steps` copies of n floats from the input to the output; weights of a size that the caller wants.
EngineParts copies(int steps, std::string_view weights) {
  EngineParts parts;
  fb::PlanT& p = parts.plan;
  p.profiles = 1;
  p.exprs = {{fb::DimOp::InputDim, 0, 0, 0}, {fb::DimOp::Constant, 0, 0, 4}, {fb::DimOp::Mul, 0, 1, 0}};
  for (bool input : {true, false}) {
    auto t = std::make_unique<fb::IoTensorT>();
    t->name = input ? "x" : "y";
    t->is_input = input;
    t->dims = {0};
    if (input) t->min = {1}, t->opt = {8}, t->max = {64};
    p.io.push_back(std::move(t));
    auto b = std::make_unique<fb::BufferT>();
    b->place = input ? fb::Place::Input : fb::Place::Output;
    b->io = input ? 0 : 1;
    b->size = 2;
    p.buffers.push_back(std::move(b));
  }
  p.layers.push_back(std::make_unique<fb::LayerT>());
  p.layers[0]->name = "copy";
  p.regions.push_back(std::make_unique<fb::RegionT>());
  for (int i = 0; i < steps; i++) {
    auto x = std::make_unique<fb::InstructionT>();
    fb::CopyT c;
    c.from = std::make_unique<fb::Ref>(0, -1);
    c.to = std::make_unique<fb::Ref>(1, -1);
    c.bytes = 2;
    x->action.Set(std::move(c));
    p.regions[0]->code.push_back(std::move(x));
  }
  if (!weights.empty()) parts.weights = {{0, weights}};
  return parts;
}
void walk(benchmark::State& state) {
  auto engine = Engine::load(Blob::copy(writeEngine(copies(200, ""))));
  Context c(engine, std::make_shared<Pool>(PoolOptions{1, false}));
  float x[64] = {}, y[64];
  c.setInputShape(0, {8});
  c.setAddress(0, x);
  c.setAddress(1, y);
  for (auto _ : state) c.run();
}
BENCHMARK(walk);
void shapes(benchmark::State& state) {
  auto engine = Engine::load(Blob::copy(writeEngine(copies(200, ""))));
  Context c(engine, std::make_shared<Pool>(PoolOptions{1, false}));
  int64_t n = 1;
  for (auto _ : state) {
    c.setInputShape(0, {n = n % 64 + 1});
    c.resolve();
  }
}
BENCHMARK(shapes);
void load(benchmark::State& state) {
  std::string weights(size_t(state.range(0)) << 20, 'w'),
      path = "/tmp/rutter-bench." + std::to_string(getpid()) + ".engine";
  writeEngineFile(copies(200, weights), path);
  for (auto _ : state) benchmark::DoNotOptimize(Engine::load(Blob::map(path)));
  unlink(path.c_str());
}
BENCHMARK(load)->ArgName("MiB")->Arg(1)->Arg(100)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
BENCHMARK_MAIN();
