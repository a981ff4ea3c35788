#include "distinct.h"

#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "build.h"
#include "cli/shapes.h"
#include "compiler/compile.h"

namespace rutter::cli {

Distinct countDistinct(const frontend::Model& model, const knobs::Expression& e, const Options& o, double seconds) {
  Distinct d;
  const double begin = monotonicSeconds();
  try {
    compiler::BuildOptions b;
    for (const auto& ranges : planShapes(modelInputs(*model.graph), o).profiles) {
      passes::Profile profile;
      for (const auto& [name, r] : ranges) profile[name] = {r.min, r.opt, r.max};
      b.profiles.push_back(std::move(profile));
    }
    b.target = o.build.target;
    b.isa = o.build.isa;
    b.threads = o.inference.cpuThreads;
    for (const auto& name : channelsLastTensors(*model.graph, o))
      for (const auto& v : model.graph->values())
        if (v->name == name) b.ioLayouts[name] = ir::Layout::channelsLast(v->type.rank());
    const bool full = o.tuning.search == "full";
    const uint64_t n = full ? e.fullCount().small().value_or(UINT64_MAX) : e.fastCount();
    std::set<Hash128> seen;
    for (uint64_t i = 0; i < n && monotonicSeconds() - begin < seconds; i++) {
      b.route = full ? e.full(i) : e.fast(i);
      seen.insert(compiler::decideModel(model, b).decision.hash);
      d.decided++;
    }
    d.engines = seen.size();
    d.complete = d.decided == n;
    d.untimed = o.build.optimizationLevel >= 4;
  } catch (const std::exception& error) {
    d.problem = error.what();
  }
  return d;
}

std::vector<std::string> distinctLines(const Distinct& d) {
  if (!d.problem.empty()) return {"distinct engines are not known: " + d.problem};
  // What a candidate takes beside its own kernels: loading, two input sets, some ten milliseconds of paired blocks.
  constexpr double kSecondsEach = 1.5;
  const auto about =
      fmt::format("about {:.0f} s at {:g} s a candidate", static_cast<double>(d.engines) * kSecondsEach, kSecondsEach);
  std::vector<std::string> lines{
      d.complete ? fmt::format("{} of {} routes are distinct engines for this model; {}", d.engines, d.decided, about)
                 : fmt::format("at least {} distinct engines among the first {} routes; {} for those", d.engines,
                               d.decided, about)};
  if (d.untimed)
    lines.push_back("counted by what heuristics decide: kernels that levels 4 and 5 time may make it more or fewer");
  return lines;
}

}  // namespace rutter::cli
