#pragma once
// Offsets of tensors in the arena, fixed for the largest shapes of the profile.
#include <cstdint>
#include <string>
#include <vector>

#include "knobs/resolve.h"

namespace rutter::codegen {

/// A piece of arena: bytes, and the layers (inclusive) between which it must keep its contents.
struct MemoryItem {
  int64_t bytes = 0;
  int first = 0, last = 0;
  int64_t offset = 0;  ///< result
};
struct MemoryOptions {
  bool reuse = true;
  enum class Order { kSize, kTime, kArea } order = Order::kSize;
  bool bestFit = true;
  int64_t align = 64, skew = 0;
};
/// Model-wide knobs of the memory area.
MemoryOptions memoryOptions(const knobs::LayerKnobs& k);
/// Sets every offset; returns the arena's size. Items that overlap in time never overlap in memory.
int64_t planMemory(std::vector<MemoryItem>& items, const MemoryOptions& o);

}  // namespace rutter::codegen
