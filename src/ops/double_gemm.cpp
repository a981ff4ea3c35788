#include "ops/double_gemm.h"

#include <algorithm>

#include "base/vectorised.h"

namespace rutter::ops {
namespace {
constexpr int64_t kTile = 4, kColumns = 512, kDepth = 256;
// Two doubles, which every x86-64 has; the tile of 4 x 4 fits into 8 of 16 registers.
typedef double Pair __attribute__((vector_size(16), aligned(8), may_alias));

// c[4][4] (row stride ldc) += a[k][4] * b[k][4]
void tile(int64_t k, const double* a, const double* b, double* c, int64_t ldc) {
  Pair acc[4][2];
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 2; j++) acc[i][j] = *reinterpret_cast<const Pair*>(c + i * ldc + 2 * j);
  for (int64_t p = 0; p < k; p++, a += 4, b += 4) {
    Pair b0 = *reinterpret_cast<const Pair*>(b), b1 = *reinterpret_cast<const Pair*>(b + 2);
    for (int i = 0; i < 4; i++) {
      Pair x = {a[i], a[i]};
      acc[i][0] += x * b0;
      acc[i][1] += x * b1;
    }
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 2; j++) *reinterpret_cast<Pair*>(c + i * ldc + 2 * j) = acc[i][j];
}
int64_t up(int64_t v) {
  return (v + kTile - 1) / kTile * kTile;
}
}  // namespace

DoubleGemm::DoubleGemm(int64_t m, int64_t k, const double* a) : m_(m), k_(k), a_(size_t(up(m) * k)) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t p = 0; p < k; p++) a_[size_t((i / kTile * k + p) * kTile + i % kTile)] = a[i * k + p];
}

void DoubleGemm::run(int64_t n, const FillRow& fill, const TakeRow& take) const {
  std::vector<double> panel(size_t(kDepth * kColumns)), row(kColumns, 0.0), c(size_t(up(m_) * kColumns));
  for (int64_t j = 0; j < n; j += kColumns) {
    int64_t columns = std::min(kColumns, n - j), padded = up(columns);
    std::fill(c.begin(), c.end(), 0.0);
    for (int64_t p = 0; p < k_; p += kDepth) {
      int64_t depth = std::min(kDepth, k_ - p);
      for (int64_t q = 0; q < depth; q++) {  // panel: [columns/4][depth][4]
        fill(p + q, j, columns, row.data());
        std::fill(row.begin() + columns, row.begin() + padded, 0.0);
        for (int64_t x = 0; x < padded; x += kTile)
          std::copy_n(&row[size_t(x)], kTile, &panel[size_t((x / kTile * depth + q) * kTile)]);
      }
      for (int64_t x = 0; x < padded; x += kTile)
        for (int64_t i = 0; i < m_; i += kTile)
          tile(depth, &a_[size_t((i / kTile * k_ + p) * kTile)], &panel[size_t(x / kTile * depth * kTile)],
               &c[size_t(i * kColumns + x)], kColumns);
    }
    for (int64_t i = 0; i < m_; i++) take(i, j, columns, &c[size_t(i * kColumns)]);
  }
}

RUTTER_VECTORISED void addScaled(double* y, double w, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] += w * x[i];
}

void multiply(int64_t m, int64_t n, int64_t k, const double* a, const double* b, bool transposed, double* y) {
  if (transposed && m < 4) {
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += a[i * k + p] * b[j * k + p];
        y[i * n + j] = sum;
      }
  } else if (transposed) {  // (b * a')': b is packed as it lies
    DoubleGemm(n, k, b).run(
        m,
        [&](int64_t p, int64_t j, int64_t w, double* row) {
          for (int64_t i = 0; i < w; i++) row[i] = a[(j + i) * k + p];
        },
        [&](int64_t i, int64_t j, int64_t w, const double* row) {
          for (int64_t q = 0; q < w; q++) y[(j + q) * n + i] = row[q];
        });
  } else if (m < 4) {  // packing b would cost more than it saves
    std::fill_n(y, m * n, 0.0);
    for (int64_t p = 0; p < k; p++)
      for (int64_t i = 0; i < m; i++) addScaled(y + i * n, a[i * k + p], b + p * n, n);
  } else {
    DoubleGemm(m, k, a).run(
        n, [&](int64_t p, int64_t j, int64_t w, double* row) { std::copy_n(b + p * n + j, w, row); },
        [&](int64_t i, int64_t j, int64_t w, const double* row) { std::copy_n(row, w, y + i * n + j); });
  }
}

}  // namespace rutter::ops
