#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>

namespace rutter {

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", hi, lo);
}

Hash128 hashBytes(const void* data, size_t bytes) {
  auto h = XXH3_128bits(data, bytes);
  return {h.low64, h.high64};
}

uint32_t crc32c(std::string_view s) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int k = 0; k < 8; k++) c = (c >> 1) ^ ((c & 1) ? 0x82f63b78u : 0u);
      t[i] = c;
    }
    return t;
  }();
  uint32_t c = ~0u;
  for (unsigned char b : s) c = table[(c ^ b) & 255] ^ (c >> 8);
  return ~c;
}

}  // namespace rutter
