#include "codegen/memory.h"

#include <algorithm>
#include <numeric>

namespace rutter::codegen {

MemoryOptions memoryOptions(const knobs::LayerKnobs& k) {
  MemoryOptions o;
  o.reuse = *k.get(knob::memory_reuse);
  auto order = k.get(knob::memory_order);
  o.order = order == "size"   ? MemoryOptions::Order::kSize
            : order == "time" ? MemoryOptions::Order::kTime
                              : MemoryOptions::Order::kArea;
  o.bestFit = k.get(knob::memory_fit) == "best";
  o.align = *k.get(knob::memory_align);
  o.skew = *k.get(knob::memory_skew);
  return o;
}

int64_t planMemory(std::vector<MemoryItem>& items, const MemoryOptions& o) {
  auto up = [&](int64_t x) { return (x + o.align - 1) / o.align * o.align; };
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  auto weight = [&](size_t i) -> int64_t {
    const MemoryItem& m = items[i];
    switch (o.order) {
      case MemoryOptions::Order::kSize:
        return -m.bytes;
      case MemoryOptions::Order::kTime:
        return m.first;
      default:
        return -m.bytes * int64_t(m.last - m.first + 1);
    }
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weight(a) < weight(b); });
  std::vector<size_t> placed;  // by offset
  int64_t total = 0;
  for (size_t i : order) {
    MemoryItem& m = items[i];
    int64_t need = m.bytes + o.skew;
    int64_t at = 0, best = -1, bestGap = INT64_MAX;
    for (size_t j : placed) {
      const MemoryItem& p = items[j];
      if (o.reuse && (p.last < m.first || p.first > m.last)) continue;
      int64_t gap = p.offset - at;
      if (gap >= need && gap < bestGap) {
        best = at;
        bestGap = gap;
        if (!o.bestFit) break;
      }
      at = std::max(at, up(p.offset + p.bytes + o.skew));
    }
    m.offset = best >= 0 ? best : at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return items[a].offset < items[b].offset; }),
                  i);
    total = std::max(total, m.offset + m.bytes);
  }
  return up(total);
}

}  // namespace rutter::codegen
