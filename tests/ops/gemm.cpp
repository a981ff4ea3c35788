// GEMM tactics against the definition of the problem: sizes around every block edge, strides, transpositions, batches,
// epilogues, run-time extents, explicit knob values, every instruction set.
#include "ops/gemm_cases.h"

namespace rutter::cputest {
namespace {

TEST(Gemm, SizesAroundTileEdges) {
  for (int64_t m : {1, 2, 5, 14, 15, 29})
    for (int64_t n : {1, 7, 16, 33, 70})
      for (int64_t k : {1, 3, 17}) {
        SCOPED_TRACE(fmt::format("{}x{}x{}", m, n, k));
        for (const std::string& isa : isas()) check(gemmCase({m, n, k}), {.isa = isa}, 1e-5);
      }
}
TEST(Gemm, EmptyExtents) {
  for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{0, 5, 3}, {5, 0, 3}, {5, 7, 0}})
    check(gemmCase({.m = m, .n = n, .k = k, .constantB = false}), {}, 1e-5);
}
TEST(Gemm, TransposedAndPaddedOperands) {
  for (int bits = 0; bits < 16; bits++) {
    SCOPED_TRACE(bits);
    GemmShape s{19, 37, 21, 2};
    s.constantB = bits & 1;
    s.transA = bits & 2;
    s.transB = bits & 4;
    s.transOut = bits & 8;
    s.pad = 3;
    s.batchedB = !s.constantB;
    for (const std::string& isa : isas()) check(gemmCase(s, true, true, true), {.isa = isa}, 1e-5);
  }
}
TEST(Gemm, RunTimeExtents) {
  for (bool transB : {false, true}) {
    GemmShape s{23, 45, 34, 3};
    s.constantB = false;
    s.batchedB = true;
    s.transB = transB;
    checkAll(gemmCase(s, true, true), {}, 1e-5);
    // Constant weights, rows known at run time.
    GemmShape w{23, 45, 34, 3};
    for (const std::string& isa : isas())
      check(withParams(gemmCase(w), [](int64_t v) { return v == 23 || v == 23 * 34 || v == 23 * 45; }), {.isa = isa},
            1e-5);
  }
}
TEST(Gemm, RowsInTheSameCacheSets) {
  GemmShape s{30, 40, 1000};
  s.pad = 24;  // rows of 4 KiB
  check(gemmCase(s), {}, 3e-5);
}

TEST(Gemm, FewRowsAsDotProducts) {
  for (int64_t m : {1, 3})
    for (int64_t n : {1, 16, 37})
      for (int64_t k : {1, 15, 32, 100}) {
        GemmShape s{m, n, k, 2, false};
        s.transB = s.batchedB = true;
        for (const std::string& isa : isas()) check(gemmCase(s, true, true), {.isa = isa, .tactic = "gemv"}, 1e-5);
      }
  GemmShape s{3, 37, 100, 1, true};
  s.transB = true;
  for (const char* route : {"-gemm:unroll_k=1", "-gemm:unroll_k=8", "-gemm:task_n=16"})
    check(gemmCase(s), {.isa = "", .route = route, .tactic = "gemv"}, 1e-5);
}

// Every value of every knob keeps the result.
struct KnobValues {
  const char* name;
  std::vector<const char*> values;
};
TEST(Gemm, ExplicitKnobs) {
  const KnobValues knobs[] = {
      {"tile_m", {"1", "2", "4", "6", "8", "12", "14", "28"}},
      {"tile_n", {"4", "8", "16", "32", "48", "64", "96", "128"}},
      {"unroll_k", {"1", "2", "4", "8"}},
      {"prefetch", {"0", "4", "16"}},
      {"block_k", {"0", "64", "128"}},
      {"task_m", {"8", "16", "64"}},
      {"task_n", {"16", "64", "1024"}},
      {"order", {"columns", "rows"}},
      {"task_order", {"columns", "rows"}},
      {"pack_a", {"on", "off"}},
      {"pack_b", {"direct", "task", "layer"}},
      {"epilogue", {"registers", "loop"}},
  };
  for (bool constantB : {true, false})
    for (const KnobValues& k : knobs)
      for (const char* v : k.values) {
        GemmShape s{37, 150, 150, 2};
        s.constantB = constantB;
        s.batchedB = !constantB;
        std::string route = fmt::format("-gemm:{}={}", k.name, v);
        SCOPED_TRACE(route);
        check(gemmCase(s, true, false, true), {.isa = "", .route = route}, 2e-5);
        if (std::string(k.name) == "block_k" || std::string(k.name) == "pack_b") {
          s.transB = true;
          s.constantB = false;
          s.batchedB = true;
          check(withParams(gemmCase(s)), {.isa = "avx2", .route = route}, 2e-5);
        }
      }
}
// What a wish that cannot be taken says.
TEST(Gemm, RefusesWishes) {
  auto refusal = [](const GemmShape& s, const std::string& route) {
    Result r = compile(gemmCase(s), {.isa = "generic", .route = route});
    return r.refusals.empty() ? std::string() : r.refusals[0].reason;
  };
  EXPECT_EQ(refusal({40, 40, 8}, "-gemm:tile_m=28"), "28 rows of 4 columns exceed 16 registers");
  EXPECT_EQ(refusal({3, 40, 8}, "-gemm:tile_m=4"), "there are only 3 rows");
  EXPECT_EQ(refusal({40, 40, 8}, "-gemm:pack_b=task"), "the matrix is constant: it is packed when the engine is built");
  GemmShape t{40, 40, 8, 1, false};
  t.transB = true;
  EXPECT_EQ(refusal(t, "-gemm:pack_b=direct"), "columns of the matrix are not contiguous");
}

}  // namespace
}  // namespace rutter::cputest
