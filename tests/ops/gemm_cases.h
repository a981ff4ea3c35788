#pragma once
// Problems for the tests of GEMM and convolution tactics.
#include "ops/cpu_harness.h"

namespace rutter::cputest {

/// acc [+ bias along biasAxis] [+ residual] [then max with 0 and * 0.5], one output with strides `out`.
void addEpilogue(Problem& p, int biasAxis, bool residual, bool activation, const std::vector<KDim>& out);

struct GemmShape {
  int64_t m, n, k, batch = 1;
  bool constantB = true, transA = false, transB = false, batchedB = false;
  int64_t pad = 0;  ///< extra elements between rows of A, B and C
  bool transOut = false;
};
Case gemmCase(const GemmShape& s, bool bias = true, bool residual = false, bool activation = false);

struct ConvShape {
  int64_t ic, h, w, oc, kh, kw;
  int64_t sh = 1, sw = 1, dh = 1, dw = 1, pt = 0, pl = 0, pb = 0, pr = 0, groups = 1, n = 1;
  bool planarIn = false, planarOut = false, transposed = false, line = false;  ///< line: one spatial axis (w)
  int64_t outputPadding = 0;
};
Case convCase(const ConvShape& s, bool bias = true, bool residual = false, bool activation = false);

}  // namespace rutter::cputest
