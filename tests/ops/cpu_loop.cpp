// Pointwise kernels, copies, transpositions and padding through the CPU target.
#include <cmath>

#include "ops/cpu_harness.h"

namespace rutter::cputest {
namespace {
std::mt19937 g_rng(7);

// One float operand over `space`, through unary operations.
Case chain(const std::vector<int64_t>& space, const std::vector<PwOp>& ops, DType t = DType::kF32) {
  Case c;
  Problem& p = c.problem;
  p.space = kdims(space);
  p.operands = {operand(t, dense(space)), operand(t, dense(space), true)};
  int v = p.epilogue.load(0, t);
  for (PwOp op : ops) v = p.epilogue.unary(op, t, v);
  p.epilogue.outputs = {v};
  c.fill(g_rng);
  return c;
}
// out = a * b + c with each operand's strides given.
Case three(const std::vector<int64_t>& space, const std::vector<std::vector<KDim>>& strides, std::vector<KDim> out) {
  Case c;
  Problem& p = c.problem;
  p.space = kdims(space);
  for (auto& s : strides) p.operands.push_back(operand(DType::kF32, s));
  p.operands.push_back(operand(DType::kF32, std::move(out), true));
  int a = p.epilogue.load(0, DType::kF32), b = p.epilogue.load(1, DType::kF32), d = p.epilogue.load(2, DType::kF32);
  int m = p.epilogue.binary(PwOp::kMul, DType::kF32, a, b);
  p.epilogue.outputs = {p.epilogue.binary(PwOp::kAdd, DType::kF32, m, d)};
  c.fill(g_rng);
  return c;
}

TEST(CpuLoop, SizesAroundVectorsAndUnrolledRounds) {
  for (int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129, 1000})
    checkAll(chain({n}, {PwOp::kNeg}));
}
TEST(CpuLoop, Scalars) {
  Case c = chain({}, {PwOp::kExp});
  checkAll(c);
}
TEST(CpuLoop, BroadcastsInEveryPosition) {
  std::vector<int64_t> s = {3, 5, 19};
  checkAll(three(s, {dense(s), {0, 0, 1}, {1, 0, 0}}, dense(s)));
  checkAll(three(s, {{0, 1, 0}, {0, 0, 0}, {0, 0, 1}}, dense(s)));
  checkAll(three({0, 5, 19}, {dense(s), {0, 0, 1}, {1, 0, 0}}, dense(s)));
}
TEST(CpuLoop, StridedOperandsAndOutputsLeaveTheGapsAlone) {
  checkAll(three({4, 21}, {{50, 2}, {1, 4}, {0, 3}}, {64, 1}));
  checkAll(three({4, 21}, {{21, 1}, {21, 1}, {1, 0}}, {64, 3}));
  checkAll(three({6, 18}, {{1, 6}, {18, 1}, {1, 0}}, {1, 6}));  // output transposed
}
TEST(CpuLoop, ManyRowsOverSeveralTasks) {
  std::vector<int64_t> s = {37, 3, 41};
  for (const char* route :
       {"", "-pointwise:task_bytes=4096", "-pointwise:unroll=8", "-pointwise:tail=scalar", "-pointwise:tail=mask",
        "-codegen:vector=128", "-codegen:vector=256", "-codegen:passes=off -codegen:opt=3", "-codegen:contract=off"})
    checkAll(three(s, {dense(s), {0, 0, 1}, {1, 0, 0}}, dense(s)), {.route = route});
  std::vector<int64_t> big = {20000};
  for (const char* route : {"", "-pointwise:task_bytes=4096"})
    checkAll(three(big, {dense(big), dense(big), {0}}, dense(big)), {.route = route});
}
TEST(CpuLoop, WindowsOfPads) {
  for (bool inner : {false, true}) {
    Case c;
    Problem& p = c.problem;
    p.space = kdims({7, 23});
    Operand x = operand(DType::kF32, inner ? kdims({20, 1}) : kdims({23, 1}));
    x.lo = inner ? kdims({0, 2}) : kdims({2, 0});
    x.hi = inner ? kdims({7, 22}) : kdims({5, 23});
    x.fill = -1.5;
    p.operands = {x, operand(DType::kF32, dense({7, 23}), true)};
    p.epilogue.outputs = {p.epilogue.unary(PwOp::kAbs, DType::kF32, p.epilogue.load(0, DType::kF32))};
    c.fill(g_rng);
    checkAll(c);
  }
  Case c;  // both axes, transposed source, integers
  Problem& p = c.problem;
  p.space = kdims({9, 40});
  Operand x = operand(DType::kI64, kdims({1, 4}));
  x.lo = kdims({3, 1});
  x.hi = kdims({7, 38});
  x.fill = 9;
  p.operands = {x, operand(DType::kI64, dense({9, 40}), true)};
  p.epilogue.outputs = {p.epilogue.load(0, DType::kI64)};
  c.fill(g_rng, -50, 50);
  checkAll(c);
}
TEST(CpuLoop, CopiesOfEveryType) {
  for (DType t : {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kI16, DType::kI8, DType::kU8, DType::kU16,
                  DType::kU32, DType::kU64, DType::kBool, DType::kBF16})
    for (int64_t n : {1, 37, 200}) checkAll(chain({2, n}, {}, t));
}
TEST(CpuLoop, Transpositions) {
  for (DType t : {DType::kF32, DType::kI32, DType::kI64, DType::kU8}) {
    for (auto [a, b] : {std::pair<int64_t, int64_t>{16, 16}, {1, 1}, {3, 50}, {50, 3}, {33, 17}, {64, 48}, {15, 31}}) {
      Case c;
      Problem& p = c.problem;
      p.space = kdims({2, a, b});
      p.operands = {operand(t, kdims({a * b, 1, a})), operand(t, kdims({a * b, b, 1}), true)};
      p.epilogue.outputs = {p.epilogue.load(0, t)};
      c.fill(g_rng, 0, 100);
      checkAll(c);
    }
  }
}
TEST(CpuLoop, TransposingTilesWithProgramsAndBroadcasts) {
  for (auto [a, b] : {std::pair<int64_t, int64_t>{16, 16}, {64, 96}, {3, 50}, {50, 3}, {33, 17}, {1, 20}, {100, 130}}) {
    // out[n, a, b] = x[n, b, a] * bias[b] + y[a]
    for (const char* route : {"", "-pointwise:tile=4", "-pointwise:tile=8 -pointwise:task_bytes=4096"})
      for (const char* tactic : {"transpose", "loop"}) {
        if (a == 1 && tactic[0] == 't') continue;
        checkAll(three({2, a, b}, {{a * b, 1, a}, {0, 0, 1}, {0, 1, 0}}, dense({2, a, b})),
                 {.route = route, .tactic = tactic});
      }
  }
  EXPECT_EQ(compile(three({2, 64, 64}, {{4096, 1, 64}, {0, 0, 1}, {0, 1, 0}}, dense({2, 64, 64}))).config.tactic,
            "transpose");
}
TEST(CpuLoop, IntegerArithmetic) {
  for (DType t : {DType::kI32, DType::kI64, DType::kU8, DType::kI8, DType::kU32}) {
    for (PwOp op : {PwOp::kAdd, PwOp::kSub, PwOp::kMul, PwOp::kDiv, PwOp::kMod, PwOp::kFmod, PwOp::kMin, PwOp::kMax,
                    PwOp::kAnd, PwOp::kOr, PwOp::kXor}) {
      Case c;
      Problem& p = c.problem;
      p.space = kdims({41});
      p.operands = {operand(t, dense({41})), operand(t, dense({41})), operand(t, dense({41}), true)};
      p.epilogue.outputs = {p.epilogue.binary(op, t, p.epilogue.load(0, t), p.epilogue.load(1, t))};
      c.fill(g_rng, -60, 60);
      c.fill(1, g_rng, 1, 9);
      checkAll(c);
      if (t == DType::kI32 || t == DType::kI64) {  // the one quotient that overflows, and negative divisors
        c.fill(1, g_rng, -4, -1);
        writeNumber(t, c.data[0].data(), {0, t == DType::kI32 ? INT32_MIN : INT64_MIN});
        writeNumber(t, c.data[1].data(), {0, -1});
        checkAll(c);
      }
    }
    for (PwOp op : {PwOp::kNeg, PwOp::kAbs, PwOp::kSign, PwOp::kNot}) {
      Case c = chain({41}, {op}, t);
      c.fill(g_rng, -60, 60);
      checkAll(c);
    }
  }
}
TEST(CpuLoop, DivisionByZeroFailsTheKernel) {
  Case c;
  Problem& p = c.problem;
  p.space = kdims({19});
  p.operands = {operand(DType::kI64, dense({19})), operand(DType::kI64, dense({19})),
                operand(DType::kI64, dense({19}), true)};
  p.epilogue.outputs = {
      p.epilogue.binary(PwOp::kDiv, DType::kI64, p.epilogue.load(0, DType::kI64), p.epilogue.load(1, DType::kI64))};
  c.fill(g_rng, 1, 5);
  for (const std::string& isa : isas()) {
    EXPECT_EQ(run(c, {.isa = isa}).status, 0);
    Case bad = c;
    writeNumber(DType::kI64, bad.data[1].data() + 8 * 18, {0, 0});
    EXPECT_EQ(run(bad, {.isa = isa}).status, 2);
  }
}
TEST(CpuLoop, ComparisonsSelectsCastsAndIndices) {
  Case c;
  Problem& p = c.problem;
  p.space = kdims({3, 37});
  p.operands = {operand(DType::kF32, dense({3, 37})),        operand(DType::kI64, kdims({0, 1})),
                operand(DType::kBool, kdims({37, 1})),       operand(DType::kF32, dense({3, 37}), true),
                operand(DType::kBool, dense({3, 37}), true), operand(DType::kI32, dense({3, 37}), true),
                operand(DType::kI64, dense({3, 37}), true)};
  PwProgram& e = p.epilogue;
  int x = e.load(0, DType::kF32), k = e.load(1, DType::kI64), b = e.load(2, DType::kBool);
  int kf = e.unary(PwOp::kCast, DType::kF32, k);
  int less = e.binary(PwOp::kLe, DType::kBool, kf, x);
  int both = e.binary(PwOp::kXor, DType::kBool, less, b);
  int sel = e.select(DType::kF32, both, x, kf);
  int whole = e.unary(PwOp::kCast, DType::kI32, sel);
  int idx = e.add({PwOp::kIndex, DType::kI64, {1, -1, -1}}), row = e.add({PwOp::kIndex, DType::kI64, {0, -1, -1}});
  int sum = e.binary(PwOp::kAdd, DType::kI64, e.binary(PwOp::kMul, DType::kI64, row, k), idx);
  e.outputs = {sel, both, whole, sum};
  c.fill(g_rng, -5, 5);
  checkAll(c);
}
TEST(CpuLoop, HalfTypes) {
  for (DType t : {DType::kBF16, DType::kF16}) {
    Case c = chain({45}, {PwOp::kExp, PwOp::kSqrt}, t);
    if (t == DType::kBF16) {
      checkAll(c);
      continue;
    }
    for (const std::string& isa : isas())
      if (isa != "generic") check(c, {.isa = isa});
    EXPECT_THROW(compile(c, {.isa = "generic"}), std::runtime_error);
  }
}
TEST(CpuLoop, ProgramsThatNoKernelTakesAreRefused) {
  EXPECT_THROW(compile(chain({4}, {PwOp::kExp}, DType::kF64)), std::runtime_error);
}

// ---- accuracy of the elementary functions ----
double truth(PwOp op, double x) {
  switch (op) {
    case PwOp::kExp:
      return std::exp(x);
    case PwOp::kLog:
      return std::log(x);
    case PwOp::kTanh:
      return std::tanh(x);
    case PwOp::kErf:
      return std::erf(x);
    case PwOp::kSigmoid:
      return x < -100 ? std::exp(x) : 1 / (1 + std::exp(-x));
    case PwOp::kSin:
      return std::sin(x);
    default:
      return std::cos(x);
  }
}
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  float w = float(want);
  if (std::isinf(w) || std::isinf(got)) return w == got ? 0 : 1e9;
  double ulp = std::max(std::ldexp(1.0, std::ilogb(std::max(std::abs(want), 1e-300)) - 23), 0x1p-149);
  return std::abs(double(got) - want) / ulp;
}
TEST(CpuMath, WithinTwoUlp) {
  std::vector<float> xs = {0.f,    -0.f,    1.f,     -1.f,    INFINITY, -INFINITY, NAN,
                           1e-45f, -1e-45f, 1e-38f,  3.4e38f, -3.4e38f, 88.72f,    88.73f,
                           -87.4f, -103.9f, -104.1f, 0.625f,  0.93f,    3.92f,     9.01f};
  for (int i = -120000; i <= 120000; i++) xs.push_back(float(i) * 1e-3f);
  for (int e = -149; e < 128; e++)
    for (int k = 0; k < 60; k++) xs.push_back(std::ldexp(1.f + float(k) / 60.f, e) * (k % 3 == 0 ? -1.f : 1.f));
  for (const std::string& isa : isas())
    for (PwOp op : {PwOp::kExp, PwOp::kLog, PwOp::kTanh, PwOp::kErf, PwOp::kSigmoid, PwOp::kSin, PwOp::kCos}) {
      Case c = chain({int64_t(xs.size())}, {op});
      std::memcpy(c.data[0].data(), xs.data(), xs.size() * 4);
      Result r = run(c, {.isa = isa});
      double worst = 0, at = 0;
      for (size_t i = 0; i < xs.size(); i++) {
        float got;
        std::memcpy(&got, &r.outputs[0][i * 4], 4);
        bool trig = op == PwOp::kSin || op == PwOp::kCos;
        if (trig && std::abs(xs[i]) > 1048576.f) continue;
        double u = ulps(got, truth(op, xs[i]));
        // Near its zeros sin has ulps far finer than those of the reduced argument.
        if (u > worst) worst = u, at = xs[i];
      }
      EXPECT_LE(worst, 2.0) << isa << " operation " << int(op) << " at " << at;
      RecordProperty(isa + std::to_string(int(op)), std::to_string(worst));
    }
}
TEST(CpuMath, PowersWithinTwoUlp) {
  std::vector<float> x, y;
  float specials[] = {0.f,  -0.f, 1.f,   -1.f, INFINITY, -INFINITY, NAN,   2.f,
                      -2.f, 0.5f, -0.5f, 3.f,  -3.f,     1e-40f,    1e30f, 16777217.f};
  for (float a : specials)
    for (float b : specials) x.push_back(a), y.push_back(b);
  std::uniform_real_distribution<float> big(-8, 8);
  for (int i = 0; i < 50000; i++) x.push_back(std::exp(big(g_rng) * 4)), y.push_back(big(g_rng));
  for (int i = 0; i < 2000; i++) x.push_back(big(g_rng)), y.push_back(std::round(big(g_rng)));
  Case c;
  Problem& p = c.problem;
  int64_t n = int64_t(x.size());
  p.space = kdims({n});
  p.operands = {operand(DType::kF32, dense({n})), operand(DType::kF32, dense({n})),
                operand(DType::kF32, dense({n}), true)};
  p.epilogue.outputs = {
      p.epilogue.binary(PwOp::kPow, DType::kF32, p.epilogue.load(0, DType::kF32), p.epilogue.load(1, DType::kF32))};
  c.fill(g_rng);
  std::memcpy(c.data[0].data(), x.data(), x.size() * 4);
  std::memcpy(c.data[1].data(), y.data(), y.size() * 4);
  for (const std::string& isa : isas()) {
    Result r = run(c, {.isa = isa});
    for (size_t i = 0; i < x.size(); i++) {
      float got;
      std::memcpy(&got, &r.outputs[0][i * 4], 4);
      ASSERT_LE(ulps(got, std::pow(double(x[i]), double(y[i]))), 2.0)
          << isa << " " << x[i] << "^" << y[i] << " = " << got;
    }
  }
}
TEST(CpuMath, Rounding) {
  std::vector<float> xs = {0.f,         -0.f,       0.5f,      -0.5f,       1.5f,   2.5f,   -2.5f,
                           0.49999997f, 8388607.5f, 8388609.f, -8388607.5f, 3e9f,   -1e30f, INFINITY,
                           -INFINITY,   NAN,        1.25f,     -1.75f,      1e-42f, -1e-42f};
  for (PwOp op : {PwOp::kFloor, PwOp::kCeil, PwOp::kRound}) {
    Case c = chain({int64_t(xs.size())}, {op});
    std::memcpy(c.data[0].data(), xs.data(), xs.size() * 4);
    for (const std::string& isa : isas()) {
      Result r = run(c, {.isa = isa});
      for (size_t i = 0; i < xs.size(); i++) {
        float got, want = op == PwOp::kFloor  ? std::floor(xs[i])
                          : op == PwOp::kCeil ? std::ceil(xs[i])
                                              : std::nearbyint(xs[i]);
        std::memcpy(&got, &r.outputs[0][i * 4], 4);
        EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))
            << isa << " operation " << int(op) << " of " << xs[i] << ": " << got;
      }
    }
  }
}
TEST(CpuMath, NansPassMaximaAndMinima) {
  std::vector<float> a = {1, NAN, 2, NAN, -0.f, INFINITY}, b = {2, 1, NAN, NAN, 0.f, -INFINITY};
  for (PwOp op : {PwOp::kMax, PwOp::kMin})
    for (bool constant : {false, true}) {
      Case c;
      Problem& p = c.problem;
      p.space = kdims({6});
      p.operands = {operand(DType::kF32, {1}), operand(DType::kF32, {1}), operand(DType::kF32, {1}, true)};
      int x = p.epilogue.load(0, DType::kF32),
          y = constant ? p.epilogue.constant(DType::kF32, 0) : p.epilogue.load(1, DType::kF32);
      p.epilogue.outputs = {p.epilogue.binary(op, DType::kF32, x, y)};
      c.fill(g_rng);
      std::memcpy(c.data[0].data(), a.data(), 24);
      std::memcpy(c.data[1].data(), b.data(), 24);
      checkAll(c);
    }
}
}  // namespace
}  // namespace rutter::cputest
