#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "runtime/context.h"
#include "runtime_plans.h"

namespace rutter::runtime {
namespace {

using namespace testing_;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Pool> pool(int threads = 2) {
  return std::make_shared<Pool>(PoolOptions{threads, true});
}
template <typename E = UserError>
std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}
std::vector<float> ramp(int64_t n, float scale) {
  std::vector<float> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) v[size_t(i)] = scale * float(i);
  return v;
}

TEST(Context, RunsEveryShapeOfItsProfile) {
  auto engine = SumTwice().load();
  for (int threads : {1, 2, 3}) {
    Context c(engine, pool(threads));
    for (int64_t b : {1, 8, 3}) {
      auto x = ramp(b * 5, 1), y = ramp(b * 5, 10);
      std::vector<float> z(size_t(b * 5), -1);
      c.setInputShape(0, {b, 5});
      c.setInputShape(1, {b, 5});
      EXPECT_THAT(c.shape(2), ElementsAre(b, 5));
      EXPECT_EQ(c.bytes(2), b * 20);
      c.setAddress(0, x.data());
      c.setAddress(1, y.data());
      c.setAddress(2, z.data());
      c.run();
      for (int64_t i = 0; i < b * 5; i++) ASSERT_EQ(z[size_t(i)], 22 * float(i));
    }
  }
}
TEST(Context, AddressesMayHaveAnyAlignmentAndChange) {
  Context c(SumTwice().load(), pool());
  c.setInputShape(0, {2, 5});
  c.setInputShape(1, {2, 5});
  std::vector<char> raw(3 * 40 + 8);
  for (int shift : {0, 1, 4}) {
    char* at = raw.data() + shift;
    for (int i = 0; i < 20; i++) {
      float v = float(i);
      std::memcpy(at + i * 4, &v, 4);
    }
    c.setAddress(0, at);
    c.setAddress(1, at + 40);
    c.setAddress(2, at + 80);
    c.run();
    for (int i = 0; i < 10; i++) {
      float v;
      std::memcpy(&v, at + 80 + i * 4, 4);
      EXPECT_EQ(v, 2 * float(i + i + 10));
    }
  }
}
TEST(Context, BadShapesSayWhatIsWrong) {
  Context c(SumTwice().load(), pool(1));
  EXPECT_THAT(message([&] { c.setInputShape(0, {9, 5}); }),
              HasSubstr("input 'x': axis 0 is 9, outside the range 1 to 8"));
  EXPECT_THAT(message([&] { c.setInputShape(0, {2, 6}); }), HasSubstr("axis 1 must be 5, not 6"));
  EXPECT_THAT(message([&] { c.setInputShape(0, {2}); }), HasSubstr("rank 2, a shape of rank 1"));
  EXPECT_THAT(message([&] { c.setInputShape(2, {2, 5}); }), HasSubstr("'z' is an output"));
  EXPECT_EQ(c.unspecifiedInputs(), 2);
  EXPECT_THAT(message([&] { c.resolve(); }), HasSubstr("shape of input 'x' is not set"));
  c.setInputShape(0, {2, 5});
  c.setInputShape(1, {3, 5});
  EXPECT_THAT(message([&] { c.resolve(); }), HasSubstr("input 'y': axis 0 is 3, but must be 2"));
  c.setInputShape(1, {2, 5});
  EXPECT_THAT(message([&] { c.run(); }), HasSubstr("no address is set for input 'x'"));
  EXPECT_THAT(message([&] { c.setProfile(1); }), HasSubstr("profile 1 does not exist"));
}
TEST(Context, ChecksOfThePlanRejectShapes) {
  SumTwice p(5, {2, 4, 8});
  auto k = std::make_unique<fb::CheckT>();
  k->kind = fb::CheckKind::Divisible;
  k->a = p.rows;
  k->b = p.constant(2);
  k->message = "node 'pairs'";
  p.plan.checks.push_back(std::move(k));
  Context c(p.load(), pool(1));
  c.setInputShape(0, {3, 5});
  c.setInputShape(1, {3, 5});
  EXPECT_THAT(message([&] { c.run(); }), HasSubstr("node 'pairs': 3 must be divisible by 2; x:4x5,y:4x5 would fit"));
  c.setInputShape(0, {4, 5});
  c.setInputShape(1, {4, 5});
  c.resolve();
}
TEST(Context, ZeroSizedTensorsNeedNoAddress) {
  SumTwice p(5, {0, 4, 8});
  Context c(p.load(), pool());
  c.setInputShape(0, {0, 5});
  c.setInputShape(1, {0, 5});
  c.run();
  EXPECT_THAT(c.shape(2), ElementsAre(0, 5));
}
TEST(Context, AFailingKernelNamesItsLayer) {
  PlanBuilder p;
  int rows = p.constant(3), width = p.constant(2), n = p.constant(4), bytes = p.constant(32);
  int table = p.io("table", true, {rows, width}, {{3, 3, 3}, {2, 2, 2}});
  int idx = p.io("idx", true, {n}, {{4, 4, 4}}, ir::DType::kI64);
  int out = p.io("out", false, {n, width});
  p.launch("look up", "gather_rows",
           {p.ioBuffer(table, p.constant(24)), p.ioBuffer(idx, bytes), p.ioBuffer(out, bytes)}, {rows, width}, n);
  Context c(p.load(), pool());
  float data[6] = {0, 1, 10, 11, 20, 21}, result[8];
  int64_t good[4] = {2, 0, 1, 1}, bad[4] = {0, 1, 3, 0};
  c.setAddress(0, data);
  c.setAddress(1, good);
  c.setAddress(2, result);
  c.run();
  EXPECT_THAT(result, ElementsAre(20, 21, 0, 1, 10, 11, 10, 11));
  c.setAddress(1, bad);
  EXPECT_THAT(message<ExecutionError>([&] { c.run(); }),
              HasSubstr("layer 'look up' failed: an index in the input data is out of range"));
  c.setAddress(1, good);
  c.run();
}
TEST(Context, OffsetsAndCopiesMoveTheRightBytes) {
  // out[2B] = x, x by two copies, the second at an offset that depends on the shape.
  PlanBuilder p;
  int b = p.inputDim(0, 0), bytes = p.mul(b, p.constant(4)), twoB = p.mul(b, p.constant(2));
  int x = p.io("x", true, {b}, {{1, 2, 4}});
  int out = p.io("out", false, {twoB});
  int from = p.ioBuffer(x, bytes), to = p.ioBuffer(out, p.mul(bytes, p.constant(2)));
  for (int half : {-1, bytes}) {
    fb::CopyT copy;
    copy.from = std::make_unique<fb::Ref>(from, -1);
    copy.to = std::make_unique<fb::Ref>(to, half);
    copy.bytes = bytes;
    p.instruction("copy").action.Set(std::move(copy));
  }
  Context c(p.load(), pool());
  float in[3] = {1, 2, 3}, result[7] = {0, 0, 0, 0, 0, 0, 99};
  c.setInputShape(0, {3});
  c.setAddress(0, in);
  c.setAddress(1, result);
  c.run();
  EXPECT_THAT(result, ElementsAre(1, 2, 3, 1, 2, 3, 99));
}
TEST(Context, ReferenceNodesRunTheirOracle) {
  // y = transpose(x) by Transpose's oracle, with its attribute; the result passes through the arena to a kernel.
  PlanBuilder p;
  int two = p.constant(2), b = p.inputDim(0, 0), elements = p.mul(two, b), bytes = p.mul(elements, p.constant(4));
  int x = p.io("x", true, {b, two}, {{1, 3, 4}, {2, 2, 2}}), y = p.io("y", false, {two, b});
  int bx = p.ioBuffer(x, bytes), by = p.ioBuffer(y, bytes);
  p.plan.arena_bytes = 32;
  int middle = p.buffer(fb::Place::Arena, -1, 0, bytes);
  auto operand = [](int buffer, std::vector<int> dims) {
    auto o = std::make_unique<fb::OperandT>();
    o->ref = std::make_unique<fb::Ref>(buffer, -1);
    o->dtype = uint8_t(ir::DType::kF32);
    o->dims = dims;
    return o;
  };
  fb::ReferenceT r;
  r.op = "Transpose";
  r.attrs = encodeAttrs({{"perm", std::vector<int64_t>{1, 0}}});
  r.inputs.push_back(operand(bx, {b, two}));
  r.outputs.push_back(operand(middle, {two, b}));
  p.instruction("turn").action.Set(std::move(r));
  p.launch("double", "twice", {middle, by}, {}, elements).scratch = 64;
  auto engine = p.load();
  ASSERT_NE(engine->reference(0), nullptr);
  EXPECT_EQ(engine->reference(0)->node.getInts("perm"), (std::vector<int64_t>{1, 0}));
  Context c(engine, pool());
  float in[6] = {0, 1, 2, 3, 4, 5}, out[6];
  c.setInputShape(0, {3, 2});
  c.setAddress(0, in);
  c.setAddress(1, out);
  c.run();
  EXPECT_THAT(out, ElementsAre(0, 4, 8, 2, 6, 10));
}
TEST(Context, AReferenceNodeThatDisagreesWithThePlanFails) {
  PlanBuilder p;
  int two = p.constant(2), three = p.constant(3), bytes = p.constant(24);
  int x = p.io("x", true, {three, two}, {{3, 3, 3}, {2, 2, 2}}), y = p.io("y", false, {three, two});
  auto operand = [&](int buffer) {
    auto o = std::make_unique<fb::OperandT>();
    o->ref = std::make_unique<fb::Ref>(buffer, -1);
    o->dims = {three, two};
    return o;
  };
  fb::ReferenceT r;
  r.op = "Transpose";
  r.attrs = encodeAttrs({});
  r.inputs.push_back(operand(p.ioBuffer(x, bytes)));
  r.outputs.push_back(operand(p.ioBuffer(y, bytes)));
  p.instruction("turn").action.Set(std::move(r));
  Context c(p.load(), pool());
  float in[6] = {}, out[6];
  c.setAddress(0, in);
  c.setAddress(1, out);
  EXPECT_EQ(message<ExecutionError>([&] { c.run(); }), "layer 'turn' made float32[2,3] where float32[3,2] was planned");
}
TEST(Context, WeightsAreReadWhereTheFileIsMapped) {
  PlanBuilder p;
  static const float weights[4] = {1, 2, 3, 4};
  p.parts.weights = {{64, {reinterpret_cast<const char*>(weights), sizeof weights}}};
  int n = p.constant(4), bytes = p.constant(16);
  int x = p.io("x", true, {n}, {{4, 4, 4}}), y = p.io("y", false, {n});
  p.launch("bias", "add_rows",
           {p.ioBuffer(x, bytes), p.buffer(fb::Place::Weights, -1, 64, -1, 16), p.ioBuffer(y, bytes)}, {p.constant(1)},
           n);
  auto engine = p.load();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(engine->weights()) % 64, 0u);
  EXPECT_GE(engine->weights(), engine->bytes().data());
  EXPECT_LE(engine->weights() + engine->weightsBytes(), engine->bytes().data() + engine->bytes().size());
  Context c(engine, pool());
  float in[4] = {10, 20, 30, 40}, out[4];
  c.setAddress(0, in);
  c.setAddress(1, out);
  c.run();
  EXPECT_THAT(out, ElementsAre(11, 22, 33, 44));
}
TEST(Context, MemoryOfTheCaller) {
  auto engine = SumTwice().load();
  Context c(engine, pool(2), MemoryPolicy::kUser);
  c.setInputShape(0, {8, 5});
  c.setInputShape(1, {8, 5});
  auto x = ramp(40, 1), z = ramp(40, 0);
  c.setAddress(0, x.data());
  c.setAddress(1, x.data());
  c.setAddress(2, z.data());
  const int64_t need = c.memoryBytes();
  EXPECT_EQ(need, 64 + 192 + 2 * 64);  // 64 unused, 160 rounded up, scratch of two threads
  EXPECT_EQ(Context::memoryBytes(*engine, 2, -1), need);
  EXPECT_THAT(message([&] { c.run(); }), HasSubstr("need 384 bytes of memory for activations, 0 were supplied"));
  alignas(64) char memory[512];
  EXPECT_THAT(message([&] { c.setMemory(memory + 8, 400); }), HasSubstr("aligned to 64"));
  c.setMemory(memory, need - 1);
  EXPECT_THAT(message([&] { c.run(); }), HasSubstr("383 were supplied"));
  std::memset(memory, 0x55, sizeof memory);
  c.setMemory(memory, need);
  c.run();
  EXPECT_EQ(z[39], 4 * 39.f);
  for (int64_t i = need; i < 512; i++) ASSERT_EQ(memory[i], 0x55);
  // Fewer rows need less.
  c.setInputShape(0, {1, 5});
  c.setInputShape(1, {1, 5});
  EXPECT_LT(c.memoryBytes(), need);
  Context own(engine, pool(1));
  EXPECT_THAT(message([&] { own.setMemory(memory, 512); }), HasSubstr("has its own memory"));
}
TEST(Context, EveryPolicyGivesTheSameAnswer) {
  auto engine = SumTwice().load();
  for (auto policy : {MemoryPolicy::kStatic, MemoryPolicy::kProfile, MemoryPolicy::kShapes}) {
    Context c(engine, pool(), policy);
    for (int64_t b : {1, 8}) {
      auto x = ramp(b * 5, 1);
      std::vector<float> z(size_t(b * 5));
      c.setInputShape(0, {b, 5});
      c.setInputShape(1, {b, 5});
      c.setAddress(0, x.data());
      c.setAddress(1, x.data());
      c.setAddress(2, z.data());
      c.run();
      EXPECT_EQ(z.back(), 4 * float(b * 5 - 1));
    }
  }
}
TEST(Context, LayersAreTimedInOrder) {
  Context c(SumTwice().load(), pool());
  c.setInputShape(0, {8, 5});
  c.setInputShape(1, {8, 5});
  auto x = ramp(40, 1), z = x;
  c.setAddress(0, x.data());
  c.setAddress(1, x.data());
  c.setAddress(2, z.data());
  c.run();
  EXPECT_THAT(std::vector<double>(c.layerTimes().begin(), c.layerTimes().end()), ElementsAre(0, 0));
  c.setProfiling(true);
  c.run();
  ASSERT_EQ(c.layerTimes().size(), 2u);
  for (double ms : c.layerTimes()) EXPECT_GT(ms, 0);
  EXPECT_THAT(c.executionOrder(), ElementsAre(0, 1));
}
TEST(Context, SeveralContextsAndEnginesAtOnce) {
  auto shared = pool(2);
  auto engine = SumTwice().load(), other = SumTwice(7).load();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      auto& e = t % 2 ? engine : other;
      const int64_t w = t % 2 ? 5 : 7;
      Context c(e, shared);
      for (int i = 0; i < 100; i++) {
        int64_t b = 1 + (i + t) % 8;
        auto x = ramp(b * w, float(t + 1));
        std::vector<float> z(size_t(b * w), -1);
        c.setInputShape(0, {b, w});
        c.setInputShape(1, {b, w});
        c.setAddress(0, x.data());
        c.setAddress(1, x.data());
        c.setAddress(2, z.data());
        c.run();
        for (size_t k = 0; k < z.size(); k++) wrong += z[k] != 4 * x[k];
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace rutter::runtime
