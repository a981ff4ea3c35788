#pragma once
// Random routes for properties that hold under every route.
#include <random>
#include <string>

#include "knobs/registry.h"

namespace rutter::test {

/// Up to `most` knobs at random values; no lossy ones.
inline std::string randomRoute(std::mt19937& rng, int most) {
  auto knobs = knobs::Registry::builtin().knobs();
  std::string route;
  std::vector<bool> used(knobs.size());
  for (int k = 1 + int(rng() % unsigned(most)); k > 0; k--) {
    size_t i = rng() % knobs.size();
    const knobs::KnobInfo& info = knobs[i];
    if (used[i] || !info.bounded() || info.target == knobs::Target::kCuda) continue;
    size_t v = rng() % info.values.size();
    if (info.numerics[v] == knobs::Numerics::kLossy) continue;
    used[i] = true;
    route += (route.empty() ? "" : " ") + info.name + "=" + info.values[v];
  }
  return route;
}

}  // namespace rutter::test
