#pragma once
// Division and rounding of extents and tile sizes while a kernel is configured.
#include <cstdint>

namespace rutter::cpu {

/// x / y rounded up; x >= 0, y > 0.
inline int64_t ceilOf(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}
/// The least multiple of `to` that is not below x; x >= 0, to > 0.
inline int64_t roundUp(int64_t x, int64_t to) {
  return ceilOf(x, to) * to;
}

}  // namespace rutter::cpu
