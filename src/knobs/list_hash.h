#pragma once
// The list of knobs as this translation unit was compiled with it. Handles are indices into the list: libraries that
// were compiled with different lists would misread one another's knobs.
#include <cstdint>
#include <string_view>

namespace rutter::knobs {
namespace detail {
constexpr uint64_t mix(uint64_t h, std::string_view text) {  // FNV-1a, with an end
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (h ^ 0x100) * 0x100000001b3u;
}
constexpr uint64_t mix(uint64_t h, int64_t v) {
  for (int i = 0; i < 8; i++) h = (h ^ (static_cast<uint64_t>(v) >> (8 * i) & 0xff)) * 0x100000001b3u;
  return h;
}
constexpr uint64_t listHash() {
  uint64_t h = 0xcbf29ce484222325u;
#define KNOB_BOOL(area, what, values, ...) h = mix(mix(mix(h, "bool"), #area ":" #what), values);
#define KNOB_INTS(area, what, values, ...) h = mix(mix(mix(h, "ints"), #area ":" #what), values);
#define KNOB_ENUM(area, what, values, ...) h = mix(mix(mix(h, "enum"), #area ":" #what), values);
#define KNOB_RANGE(area, what, low, high, ...) \
  h = mix(mix(mix(mix(h, "range"), #area ":" #what), int64_t(low)), int64_t(high));
#include "knobs/all.def"
  return h;
}
}  // namespace detail

/// Of names, domains and their order.
inline constexpr uint64_t kListHash = detail::listHash();

}  // namespace rutter::knobs
