// A value that is declared exact gives the default's bits, on graphs that nobody chose.
#include <cstring>

#include "base/cpu.h"
#include "knobs/random_net.h"
#include "knobs/witness.h"

namespace rutter::test {

TEST(NumericsClass, ExactValuesKeepBits) {
  const std::string isa = cpuInfo().features.covers(featuresOf(Isa::kAvx2)) ? "avx2" : "generic";
  int compared = 0;
  for (unsigned seed = 40; seed < 60; seed++) {
    Net n;
    randomNet(n, seed, 9);
    compiler::KernelCache cache;
    auto in = randomInputs(*n.graph, seed);
    Built base = build(*n.graph, "", isa, cache);
    auto want = runBuilt(base, in);
    for (const knobs::KnobInfo& k : knobs::Registry::builtin().knobs()) {
      if (k.target == knobs::Target::kCuda || k.numericsOf(k.defaultValue) != knobs::Numerics::kExact) continue;
      for (const std::string& v : k.values) {
        if (v == k.defaultValue || k.numericsOf(v) != knobs::Numerics::kExact) continue;
        Built b = build(*n.graph, k.name + "=" + v, isa, cache);
        if (b.result.decisionHash == base.result.decisionHash) continue;
        auto x = runBuilt(b, in);
        for (size_t i = 0; i < want.size(); i++)
          EXPECT_EQ(std::memcmp(x.at(i).data(), want[i].data(), size_t(want[i].bytes())), 0)
              << k.name << "=" << v << " changes output " << i << " of the graph of seed " << seed << " by "
              << relativeError({x[i]}, {want[i]});
        compared++;
      }
    }
  }
  EXPECT_GT(compared, 400) << "hardly a value made another engine";
}

}  // namespace rutter::test
