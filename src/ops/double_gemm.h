#pragma once
// The matrix product behind MatMul, Gemm and the convolutions of the oracle: operands are copied into panels of
// doubles, so that it accumulates in double and still runs at several GFLOP/s a core. No tuning knobs: it is truth,
// not speed.
#include <cstdint>
#include <functional>
#include <vector>

namespace rutter::ops {

/// Row k of B, columns [j, j + n), written to `row`.
using FillRow = std::function<void(int64_t k, int64_t j, int64_t n, double* row)>;
/// Takes columns [j, j + n) of row i of the product.
using TakeRow = std::function<void(int64_t i, int64_t j, int64_t n, const double* row)>;

/// Products with one left operand, which is packed once.
class DoubleGemm {
 public:
  /// `a` is m x k, row-major.
  DoubleGemm(int64_t m, int64_t k, const double* a);
  /// (m x k) * (k x n). Rows come in blocks of columns: all rows of columns [0, 512), then those of [512, 1024) …
  void run(int64_t n, const FillRow& b, const TakeRow& take) const;

 private:
  int64_t m_, k_;
  std::vector<double> a_;  // panels of 4 rows: [m/4][k][4], padded with zeros
};

/// y (m x n) = a (m x k) * b, all row-major; b is k x n, or n x k if `transposed`.
void multiply(int64_t m, int64_t n, int64_t k, const double* a, const double* b, bool transposed, double* y);
/// y += w * x
void addScaled(double* y, double w, const double* x, int64_t n);

}  // namespace rutter::ops
