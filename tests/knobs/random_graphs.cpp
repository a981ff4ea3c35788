// Random graphs under random routes and every instruction set compute what the oracle computes.
#include <fmt/format.h>

#include <cstdlib>

#include "base/cpu.h"
#include "knobs/random_net.h"
#include "knobs/random_route.h"
#include "knobs/witness.h"

namespace rutter::test {
namespace {
int64_t fromEnvironment(const char* name, int64_t fallback) {
  const char* s = std::getenv(name);
  return s ? std::atoll(s) : fallback;
}
/// As relativeError, but a result that is zero by cancellation may be off by what its terms round to.
bool agrees(const std::vector<ir::Tensor>& x, const std::vector<ir::Tensor>& want) {
  for (size_t k = 0; k < want.size(); k++) {
    if (relativeError({x[k]}, {want[k]}) <= 1e-4) continue;
    for (int64_t i = 0; i < want[k].size(); i++)
      if (!(std::abs(x[k].getDouble(i) - want[k].getDouble(i)) <= 2e-6)) return false;
  }
  return x.size() == want.size();
}
}  // namespace

// RUTTER_RANDOM_GRAPHS: how many; RUTTER_RANDOM_SEED: the first seed. A failure names the seed of its graph.
TEST(RandomGraphs, AgreeWithTheOracle) {
  const int64_t count = fromEnvironment("RUTTER_RANDOM_GRAPHS", 80), first = fromEnvironment("RUTTER_RANDOM_SEED", 1);
  int built = 0;
  for (int64_t seed = first; seed < first + count; seed++) {
    Net n;
    std::mt19937 rng(static_cast<unsigned>(seed));
    randomNet(n, unsigned(seed), 4 + int(rng() % 9));
    auto in = randomInputs(*n.graph, unsigned(seed));
    auto want = ops::evalGraph(*n.graph, in);
    compiler::KernelCache cache;
    for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
      std::string route = rng() % 4 ? randomRoute(rng, 8) : "";
      if (!cpuInfo().features.covers(featuresOf(isa))) continue;
      SCOPED_TRACE(fmt::format("seed {} isa {} route '{}'\n{}", seed, isaName(isa), route, n.graph->print()));
      try {
        Built b = build(*n.graph, route, std::string(isaName(isa)), cache);
        auto x = runBuilt(b, in);
        for (size_t k = 0; k < want.size(); k++)
          EXPECT_TRUE(agrees({x.at(k)}, {want[k]}))
              << "output " << n.graph->top().outputs[k]->name << ": error " << relativeError({x[k]}, {want[k]});
        built++;
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  EXPECT_GE(built, count);  // one instruction set at least
}

}  // namespace rutter::test
