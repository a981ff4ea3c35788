// Reductions, softmax and normalisations through the CPU target.
#include <cmath>

#include "ops/cpu_harness.h"

namespace rutter::cputest {
namespace {
std::mt19937 g_rng(11);
using Ints = std::vector<int64_t>;

// Input dense over `space` in the axis order `order` (outermost first).
std::vector<KDim> orderedStrides(const Ints& space, const std::vector<int>& order) {
  std::vector<KDim> s(space.size());
  int64_t at = 1;
  for (size_t i = order.size(); i-- > 0;) {
    s[size_t(order[i])] = KDim(at);
    at *= space[size_t(order[i])];
  }
  return s;
}
std::vector<KDim> keptStrides(const Ints& space, const Ints& red) {
  std::vector<KDim> s(space.size(), KDim(0));
  int64_t at = 1;
  for (size_t a = space.size(); a-- > 0;)
    if (!red[a]) {
      s[a] = KDim(at);
      at *= space[a];
    }
  return s;
}
Case reduction(const std::string& op, const Ints& space, const Ints& red, const std::vector<int>& order,
               DType t = DType::kF32) {
  Case c;
  Problem& p = c.problem;
  p.kind = ProblemKind::kReduce;
  p.words["op"] = op;
  p.space = kdims(space);
  p.ints["reduced"] = kdims(red);
  DType out = op.rfind("arg", 0) == 0 ? DType::kI64 : t;
  p.operands = {operand(t, orderedStrides(space, order)), operand(out, keptStrides(space, red), true)};
  p.prologue.outputs = {p.prologue.load(0, t)};
  p.epilogue.outputs = {p.epilogue.add({PwOp::kAcc, out})};
  c.fill(g_rng);
  return c;
}
const std::vector<std::string> kOps = {"sum", "mean", "max",       "min",    "prod",  "sumsq",
                                       "l1",  "l2",   "logsumexp", "argmax", "argmin"};

TEST(CpuReduce, EveryOperationOverInnerOuterAndBothAxes) {
  for (const std::string& op : kOps) {
    bool arg = op.rfind("arg", 0) == 0;
    checkAll(reduction(op, {5, 67}, {0, 1}, {0, 1}), {}, 1e-5);
    checkAll(reduction(op, {19, 37}, {1, 0}, {0, 1}), {}, 1e-5);
    checkAll(reduction(op, {3, 9, 21}, {0, 1, 0}, {0, 1, 2}), {}, 1e-5);
    if (arg) continue;
    checkAll(reduction(op, {2, 21, 5, 7}, {0, 0, 1, 1}, {0, 2, 3, 1}), {}, 1e-5);  // channels last, over the image
    checkAll(reduction(op, {4, 6, 5}, {1, 0, 1}, {0, 1, 2}), {}, 1e-5);
    checkAll(reduction(op, {7, 5}, {1, 1}, {0, 1}), {}, 1e-5);
  }
}
TEST(CpuReduce, LengthsAroundVectorsAndChains) {
  for (int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 200}) {
    checkAll(reduction("sum", {3, n}, {0, 1}, {0, 1}), {}, 1e-5);
    checkAll(reduction("argmax", {3, n}, {0, 1}, {0, 1}));
    checkAll(reduction("max", {3, n}, {1, 0}, {0, 1}));
  }
}
TEST(CpuReduce, EmptyAxes) {
  checkAll(reduction("sum", {4, 0}, {0, 1}, {0, 1}));
  checkAll(reduction("max", {4, 0}, {0, 1}, {0, 1}));
  checkAll(reduction("sum", {0, 4}, {0, 1}, {0, 1}));
  checkAll(reduction("sum", {0, 4}, {1, 0}, {0, 1}));
}
TEST(CpuReduce, Integers) {
  for (DType t : {DType::kI32, DType::kI64, DType::kU8, DType::kI8})
    for (const char* op : {"sum", "max", "min", "prod", "l1", "sumsq", "argmax", "argmin"}) {
      Case c = reduction(op, {3, 41}, {0, 1}, {0, 1}, t);
      c.fill(g_rng, t == DType::kU8 ? 0 : -3, 3);
      checkAll(c);
      c = reduction(op, {9, 41}, {1, 0}, {0, 1}, t);
      c.fill(g_rng, t == DType::kU8 ? 0 : -3, 3);
      checkAll(c);
    }
  Case c = reduction("mean", {3, 8}, {0, 1}, {0, 1}, DType::kI32);
  c.fill(g_rng, -9, 9);
  checkAll(c);
}
TEST(CpuReduce, TheFirstOfEqualExtremesWins) {
  for (int64_t n : {5, 40, 150}) {
    Case c = reduction("argmax", {4, n}, {0, 1}, {0, 1});
    for (size_t i = 0; i < size_t(4 * n); i++) writeNumber(DType::kF32, &c.data[0][4 * i], {double(i % 3), 0});
    checkAll(c);
    c.problem.words["op"] = "argmin";
    checkAll(c);
  }
}
TEST(CpuReduce, ProloguesAndEpilogues) {
  for (bool inner : {true, false}) {
    Ints space = {6, 35}, red = inner ? Ints{0, 1} : Ints{1, 0};
    Case c;
    Problem& p = c.problem;
    p.kind = ProblemKind::kReduce;
    p.words["op"] = "sum";
    p.space = kdims(space);
    p.ints["reduced"] = kdims(red);
    p.operands = {operand(DType::kF32, dense(space)), operand(DType::kF32, kdims({0, 1})),
                  operand(DType::kF32, keptStrides(space, red)), operand(DType::kF32, keptStrides(space, red), true),
                  operand(DType::kF32, keptStrides(space, red), true)};
    PwProgram &a = p.prologue, &z = p.epilogue;
    a.outputs = {a.binary(PwOp::kMul, DType::kF32, a.unary(PwOp::kSigmoid, DType::kF32, a.load(0, DType::kF32)),
                          a.load(1, DType::kF32))};
    int acc = z.add({PwOp::kAcc, DType::kF32});
    int y = z.binary(PwOp::kAdd, DType::kF32, acc, z.load(2, DType::kF32));
    z.outputs = {y, z.unary(PwOp::kTanh, DType::kF32, y)};
    c.fill(g_rng);
    for (const char* route : {"", "-reduce:vector=reduced", "-reduce:vector=kept", "-reduce:chains=1",
                              "-reduce:chains=8", "-reduce:task_bytes=4096"})
      checkAll(c, {.route = route}, 1e-5);
  }
}

Case rows(const std::string& op, const Ints& space, const Ints& red, const std::vector<int>& order,
          bool fused = false) {
  Case c;
  Problem& p = c.problem;
  p.kind = ProblemKind::kRow;
  p.words["op"] = op;
  p.reals["eps"] = 1e-5;
  p.space = kdims(space);
  p.ints["reduced"] = kdims(red);
  std::vector<KDim> along(space.size(), KDim(0));
  along.back() = KDim(1);
  auto s = orderedStrides(space, order);
  p.operands = {operand(DType::kF32, s), operand(DType::kF32, along), operand(DType::kF32, s, true)};
  PwProgram &a = p.prologue, &z = p.epilogue;
  int x = a.load(0, DType::kF32);
  if (fused) x = a.binary(PwOp::kMul, DType::kF32, a.unary(PwOp::kTanh, DType::kF32, x), a.load(1, DType::kF32));
  a.outputs = {x};
  int y = z.add({PwOp::kAcc, DType::kF32});
  if (fused) y = z.binary(PwOp::kAdd, DType::kF32, y, z.load(1, DType::kF32));
  z.outputs = {y};
  c.fill(g_rng, -3, 3);
  return c;
}
const char* kRoutes[] = {"",
                         "-row:softmax=online -row:norm=onepass",
                         "-row:vector=reduced -row:buffer=off",
                         "-row:vector=kept -row:buffer=on",
                         "-row:unroll=1 -row:buffer=on",
                         "-row:unroll=8 -row:softmax=online"};

TEST(CpuRow, EveryOperationAlongInnerAndOuterAxes) {
  for (const char* op : {"softmax", "logsoftmax", "layernorm", "rmsnorm"})
    for (const char* route : kRoutes)
      for (bool fused : {false, true}) {
        checkAll(rows(op, {7, 67}, {0, 1}, {0, 1}, fused), {.route = route}, 2e-5);
        checkAll(rows(op, {2, 13, 37}, {0, 1, 0}, {0, 1, 2}, fused), {.route = route}, 2e-5);
      }
}
TEST(CpuRow, LengthsAroundVectors) {
  for (const char* op : {"softmax", "layernorm"})
    for (int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 1000})
      for (const char* route : {"", "-row:softmax=online -row:norm=onepass"})
        checkAll(rows(op, {5, n}, {0, 1}, {0, 1}), {.route = route}, 2e-5);
}
TEST(CpuRow, SeveralNormalisedAxes) {
  checkAll(rows("layernorm", {3, 5, 21}, {0, 1, 1}, {0, 1, 2}, true), {}, 2e-5);
  checkAll(rows("layernorm", {3, 21, 4, 5}, {0, 1, 1, 1}, {0, 2, 3, 1}), {}, 2e-5);
  checkAll(rows("softmax", {0, 5}, {0, 1}, {0, 1}));
}
TEST(CpuRow, ManyRowsInTasks) {
  checkAll(rows("softmax", {700, 33}, {0, 1}, {0, 1}), {}, 2e-5);
}
TEST(CpuRow, MaskedAttentionScoresOfMinusInfinity) {
  Case c = rows("softmax", {6, 40}, {0, 1}, {0, 1});
  for (size_t i = 0; i < 240; i++)
    if (i % 3 != 1) writeNumber(DType::kF32, &c.data[0][4 * i], {-INFINITY, 0});
  for (const char* route : kRoutes) checkAll(c, {.route = route}, 2e-5);
}
TEST(CpuRow, LargeMeansKeepTheirVariance) {
  Case c = rows("layernorm", {4, 300}, {0, 1}, {0, 1});
  for (size_t i = 0; i < 1200; i++) writeNumber(DType::kF32, &c.data[0][4 * i], {1000 + double(i % 7) / 8, 0});
  for (const char* route : kRoutes) checkAll(c, {.route = route}, 2e-4);
}
}  // namespace
}  // namespace rutter::cputest
