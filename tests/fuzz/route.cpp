// Whatever the bytes are: parsing ends in a value or in a RouteError, and what parses prints and parses again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "knobs/expression.h"

using namespace rutter::knobs;

namespace {
void require(bool ok) {
  if (!ok) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    auto route = Route::parse(text);
    require(Route::parse(route.print()) == route);
  } catch (const RouteError& e) {
    require(e.column >= 1 && e.column <= size + 1);
  }
  try {
    auto e = Expression::parse(text);
    for (size_t i = 0; i < e.fastCount() && i < 16; i++) require(Route::parse(e.fast(i).print()) == e.fast(i));
    auto n = e.fullCount().small();
    if (!n || *n > 1) require(!(e.full(0) == e.full(1)));
    std::vector<Positive> all;
    for (size_t i = 1; i < e.fastCount(); i++) all.push_back({i, 1.1});
    PhaseTwo two(e, all);
    for (int i = 0; i < 16 && two.next(); i++) {
    }
  } catch (const RouteError&) {
  }
  return 0;
}
