// What a kernel cache holds never changes an engine: after any history a build equals that of an empty cache.
#include <fmt/format.h>

#include "knobs/random_net.h"
#include "knobs/random_route.h"
#include "knobs/witness.h"

namespace rutter::test {

TEST(KernelCache, WarmEqualsCold) {
  const unsigned seed = 20240611;
  std::mt19937 rng(seed);
  std::vector<Net> nets(4);
  for (size_t i = 0; i < nets.size(); i++) randomNet(nets[i], unsigned(100 + i), 7);
  compiler::KernelCache warm;
  int hits = 0;
  for (int k = 0; k < 40; k++) {
    const ir::Graph& g = *nets[rng() % nets.size()].graph;
    const std::string isa = rng() % 2 ? "generic" : "";
    const std::string route = randomRoute(rng, 6);
    SCOPED_TRACE(fmt::format("seed {} round {} isa '{}' route '{}'", seed, k, isa, route));
    compiler::KernelCache cold;
    Built a = build(g, route, isa, warm), b = build(g, route, isa, cold);
    EXPECT_EQ(b.result.kernelsCompiled, b.result.kernels);
    hits += a.result.kernels - a.result.kernelsCompiled;
    ASSERT_TRUE(a.engine->bytes() == b.engine->bytes());
    EXPECT_EQ(a.result.decisionHash, b.result.decisionHash);
  }
  EXPECT_GT(hits, 40) << "the warm cache was hardly used: nothing is shown";
}

}  // namespace rutter::test
