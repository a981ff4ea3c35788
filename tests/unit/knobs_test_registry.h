#pragma once
// The knobs of the worked examples in the specification, and a few more shapes of domain.
#include "knobs/registry.h"

namespace rutter::knobs {

inline const Registry& exampleKnobs() {
  static const Registry r({
      {Domain::kBool, "", "fuse", "on|off", 0, 0, "on", Target::kAny, "exact", "Fuse."},
      {Domain::kInts, "", "tile", "16|32|64", 0, 0, "32", Target::kCpu, "exact", "Tile."},
      {Domain::kInts, "", "unroll", "1|2", 0, 0, "1", Target::kCpu, "exact", "Unroll."},
      {Domain::kEnum, "", "a", "x|y", 0, 0, "y", Target::kAny, "exact", "A."},
      {Domain::kInts, "", "b", "0|1|2", 0, 0, "2", Target::kAny, "exact", "B."},
      {Domain::kRange, "", "c", "", 0, 100, "0", Target::kAny, "exact", "C."},
      {Domain::kEnum, "gemm", "type", "auto|f32|bf16", 0, 0, "auto", Target::kAny, "exact,bf16=lossy", "Type."},
      {Domain::kRange, "gemm", "depth", "", -4, 4, "auto", Target::kAny, "reorders", "Depth."},
      {Domain::kBool, "gemm", "pack", "auto|on|off", 0, 0, "auto", Target::kAny, "exact", "Pack."},
  });
  return r;
}
inline KnobId exampleId(std::string_view name) {
  return exampleKnobs().find(name)->id;
}

}  // namespace rutter::knobs
