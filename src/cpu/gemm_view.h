#pragma once
// A GEMM problem in the form that its tactics work on: [batch…] matrices with the output contiguous along n.
#include <optional>
#include <string>

#include "codegen/tactic.h"

namespace rutter::cpu {

using codegen::KDim;
using codegen::Problem;

/// Strides (elements) of a matrix operand: of each batch axis, rows and columns as the view sees them.
struct MatrixStrides {
  std::vector<KDim> batch;
  KDim row, col;
};
struct GemmView {
  std::vector<KDim> batch;     ///< extents
  std::vector<int> batchAxes;  ///< of Problem::space, beside `batch`
  KDim m, n, k;
  int rowAxis = 0, colAxis = 0;  ///< of Problem::space
  int a = 0, b = 1;              ///< operands: exchanged if the output was contiguous along m
  MatrixStrides as, bs;          ///< a: row m, col k; b: row k, col n

  int64_t batchOpt(const Problem& p) const;
};
/// `why` says what is not supported.
std::optional<GemmView> gemmView(const Problem& p, std::string* why);

/// Stride of operand `i` along the view's rows, columns or batch axes.
const KDim& rowStrideOf(const Problem& p, const GemmView& v, size_t i);

}  // namespace rutter::cpu
