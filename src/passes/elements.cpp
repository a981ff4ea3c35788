#include "passes/elements.h"

#include <algorithm>

namespace rutter::passes {

ir::Tensor transposed(const ir::Tensor& m) {
  int64_t rows = m.shape()[0], columns = m.shape()[1];
  ir::Tensor t(m.dtype(), {columns, rows});
  if (m.dtype() != ir::DType::kF32) {
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++) t.setDouble(c * rows + r, m.getDouble(r * columns + c));
    return t;
  }
  const char* from = static_cast<const char*>(m.data());
  char* to = static_cast<char*>(t.mutableData());
  constexpr int64_t kTile = 32;  // both sides of a tile stay in the first-level cache
  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (int64_t c = c0; c < std::min(columns, c0 + kTile); c++)
        for (int64_t r = r0; r < std::min(rows, r0 + kTile); r++)
          std::memcpy(to + 4 * (c * rows + r), from + 4 * (r * columns + c), 4);
  return t;
}

}  // namespace rutter::passes
