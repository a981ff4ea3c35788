#pragma once
// Content hashes (XXH3-128) and the CRC of journal lines.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rutter {

struct Hash128 {
  uint64_t lo = 0, hi = 0;
  auto operator<=>(const Hash128&) const = default;
  std::string hex() const;  ///< 32 lower-case hexadecimal digits
};
Hash128 hashBytes(const void* data, size_t bytes);
inline Hash128 hashBytes(std::string_view s) {
  return hashBytes(s.data(), s.size());
}
uint32_t crc32c(std::string_view s);  ///< CRC-32C (Castagnoli), RFC 3720 appendix B.4

}  // namespace rutter

template <>
struct std::hash<rutter::Hash128> {
  size_t operator()(const rutter::Hash128& h) const noexcept { return h.lo; }
};
