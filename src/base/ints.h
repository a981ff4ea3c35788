#pragma once
// Division and rounding of extents and tile sizes.
#include <cstdint>
#include <type_traits>

namespace rutter {

/// x / y rounded up; x >= 0, y > 0.
template <typename T>
constexpr T ceilOf(T x, std::type_identity_t<T> y) {
  return (x + y - 1) / y;
}
/// The least multiple of `to` that is not below x; x >= 0, to > 0.
template <typename T>
constexpr T roundUp(T x, std::type_identity_t<T> to) {
  return ceilOf(x, to) * to;
}

/// What extents are rounded up to where a shape that does not fit has one near it that may: powers of two first, as
/// networks halve their extents and join the halves again; then patches and windows of other sizes.
inline constexpr int64_t kLikelyMultiples[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 3, 6, 12, 24, 5, 10, 20, 7, 14, 28};

}  // namespace rutter
