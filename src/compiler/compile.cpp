#include "compiler/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/ints.h"
#include "base/log.h"
#include "codegen/memory.h"
#include "compiler/assemble.h"
#include "compiler/kernel_timer.h"
#include "compiler/wishes.h"
#include "passes/pass.h"

namespace rutter::compiler {
namespace {
// One engine serves every profile: the shapes are decided for the union of their ranges, optimised for the first.
passes::Profile unite(const std::vector<passes::Profile>& profiles) {
  passes::Profile u = profiles.empty() ? passes::Profile{} : profiles[0];
  for (size_t i = 1; i < profiles.size(); i++)
    for (const auto& [name, r] : profiles[i]) {
      auto [it, fresh] = u.try_emplace(name, r);
      if (fresh) continue;
      if (it->second.min.size() != r.min.size())
        throw UserError("input '{}' has {} axes in profile 0 and {} in profile {}", name, it->second.min.size(),
                        r.min.size(), i);
      for (size_t a = 0; a < r.min.size(); a++) {
        it->second.min[a] = std::min(it->second.min[a], r.min[a]);
        it->second.max[a] = std::max(it->second.max[a], r.max[a]);
      }
    }
  return u;
}

// Runs task(0 … count - 1) on this thread and as many others as pay. `before` is called on this thread only; what it or
// a task throws comes out here, after the others have ended.
void inParallel(size_t count, int threads, const std::function<void(size_t done)>& before,
                const std::function<void(size_t)>& task) {
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  size_t failedAt = SIZE_MAX;
  std::exception_ptr failure;
  auto work = [&](bool here) {
    for (size_t i; !stop && (i = next++) < count; done++) {
      try {
        if (here) before(done);
        task(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (i < failedAt) failedAt = i, failure = std::current_exception();
        stop = true;
      }
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(size_t(std::max(threads, 1)), count); t++) {
    try {
      others.emplace_back(work, false);
    } catch (const std::system_error&) {
      break;  // no more threads here: slower, not wrong
    }
  }
  work(true);
  for (std::thread& t : others) t.join();
  if (failure) std::rethrow_exception(failure);
}

std::vector<std::string> allOrigins(const ir::Graph& g) {
  std::set<std::string> names;
  for (auto& n : g.top().nodes) names.insert(n->origins.begin(), n->origins.end());
  return {names.begin(), names.end()};
}

void decideByTime(Decided& d, std::unique_ptr<ir::Graph> graph, const BuildOptions& o, const KernelCache& kernels) {
  const auto times = o.timings ? o.timings : std::make_shared<TimingCache>();
  auto tick = [&](int measured) {
    if (o.progress) o.progress("Time tactics", measured, 0);
  };
  KernelTimer timer({o.optimizationLevel, o.maxTactics, o.avgTiming, o.errorOnTimingMiss, o.timingSeconds, tick},
                    *d.target, d.machine, *times, kernels);
  d.decision = codegen::decide(std::move(graph), o.route, *d.target, d.machine, &timer);
  d.timingHash = times->of(timer.used()).hash().hex();
  d.timesMeasured = timer.measured();
  std::vector<knobs::Assignment> all = o.route.assignments();
  for (const codegen::Layer& l : d.decision.layers) {
    if (auto it = timer.emitted().find(l.kernelKey); it != timer.emitted().end()) d.emitted.insert(*it);
    for (const knobs::Assignment& a : l.timed) {
      logVerbose("layer {}: {} by time", l.group.name, knobs::printAssignment(a, o.route.registry()));
      // Two kernels of one node cannot be told apart by a scope: the first one's choice counts for both.
      if (std::none_of(all.begin(), all.end(), [&](auto& x) { return x.knob == a.knob && x.scope == a.scope; }))
        all.push_back(a);
    }
  }
  d.timedRoute = knobs::Route(std::move(all), o.route.registry());
  logInfo("Level {}: {} kernels timed, {} times in the timing cache", o.optimizationLevel, timer.measured(),
          times->size());
}
}  // namespace

Decided decideModel(const frontend::Model& model, const BuildOptions& o, const KernelCache& kernels) {
  Decided d;
  d.target = &codegen::findTarget(o.target);
  d.machine = d.target->profile(o.isa, o.threads);
  auto graph = model.graph->clone();
  for (const auto* list : {&graph->top().inputs, &graph->top().outputs})
    for (const ir::Value* v : *list)
      if (v->type.dtype == ir::DType::kString)
        throw UserError("'{}' holds strings: inputs and outputs of an engine are numbers or booleans", v->name);
  std::vector<std::string> origins = allOrigins(*graph);
  passes::specialise(*graph, unite(o.profiles));
  passes::PassContext ctx(o.route);
  ctx.dump = o.dumpPass;
  ctx.verify = o.verify;
  ctx.ioLayouts = o.ioLayouts;
  passes::runPipeline(*graph, ctx);
  if (o.optimizationLevel >= 4) {
    decideByTime(d, std::move(graph), o, kernels);
  } else {
    d.decision = codegen::decide(std::move(graph), o.route, *d.target, d.machine);
  }

  const auto& registry = knobs::Registry::builtin();
  // Knobs that passes read belong to the layers whose origins they were read at.
  for (auto& [origin, ids] : ctx.reads) d.reads.insert(ids.begin(), ids.end());
  for (codegen::Layer& l : d.decision.layers) {
    std::set<knobs::KnobId> ids = l.reads;
    for (const std::string& origin : l.group.origins)
      if (auto it = ctx.reads.find(origin); it != ctx.reads.end()) ids.insert(it->second.begin(), it->second.end());
    d.reads.insert(ids.begin(), ids.end());
    l.knobsRead.clear();
    for (knobs::KnobId id : ids) l.knobsRead.push_back(registry[id].name);
    for (const auto& r : ctx.refusals)
      if (std::any_of(r.origins.begin(), r.origins.end(), [&](const std::string& origin) {
            return std::find(l.group.origins.begin(), l.group.origins.end(), origin) != l.group.origins.end();
          }))
        l.refusals.push_back(
            fmt::format("{}={}: {}", registry[r.refusal.knob].name, r.refusal.value, r.refusal.reason));
  }
  // Knobs of the whole engine change its memory plan, not its layers.
  const auto wide = knobs::LayerKnobs::modelWide(o.route);
  ByteWriter hash;
  hash.put(d.decision.hash.lo);
  hash.put(d.decision.hash.hi);
  for (knobs::KnobId id : modelWideKnobs()) {
    d.reads.insert(id);
    hash.put(wide.valueText(id));
  }
  d.decision.hash = hashBytes(hash.bytes());
  d.warnings = lostWishes(o.route, origins, d.decision, ctx);
  if (o.strictRoutes && !d.warnings.empty()) throw UserError("--strictRoutes: {}", d.warnings.front());
  return d;
}

BuildResult buildEngine(const frontend::Model& model, const BuildOptions& o, KernelCache& cache) {
  double t = monotonicSeconds();
  Decided d = decideModel(model, o, cache);
  double spent = monotonicSeconds() - t;
  BuildResult r = buildEngine(model, o, std::move(d), cache);
  r.decideSeconds = spent;
  return r;
}

BuildResult buildEngine(const frontend::Model& model, const BuildOptions& o, Decided decided, KernelCache& cache) {
  double t0 = monotonicSeconds();
  BuildResult r;
  r.warnings = decided.warnings;
  r.decisionHash = decided.decision.hash;
  const codegen::Target& target = *decided.target;

  for (const auto& [key, k] : decided.emitted) {
    if (!cache.find(key)) r.kernelsCompiled++;
    cache.add(key, k);
  }
  std::vector<std::shared_ptr<const codegen::KernelObject>> objects;  // one a distinct key, in order of first use
  std::map<Hash128, int> index;
  std::vector<std::pair<size_t, const codegen::Layer*>> missing;  // place in objects, layer
  for (const codegen::Layer& l : decided.decision.layers) {
    if (!l.tactic) {
      r.referenceNodes++;
      continue;
    }
    if (!index.try_emplace(l.kernelKey, int(objects.size())).second) continue;
    objects.push_back(cache.find(l.kernelKey));
    if (!objects.back()) missing.emplace_back(objects.size() - 1, &l);
  }
  inParallel(
      missing.size(), usableThreads(o.emitThreads),
      [&](size_t done) {
        if (o.progress) o.progress("Emit kernels", int(done), int(missing.size()));
      },
      [&](size_t i) {
        const codegen::Layer& l = *missing[i].second;
        auto k = std::make_shared<const codegen::KernelObject>(
            target.emit(l.lowered.problem, l.config, decided.machine, "k" + l.kernelKey.hex().substr(0, 24)));
        RUTTER_CHECK(k->symbols.size() == l.lowering.launches.size(), "{} emitted {} kernels for {} launches",
                     l.tactic->name(), k->symbols.size(), l.lowering.launches.size());
        objects[missing[i].first] = k;
        cache.add(l.kernelKey, std::move(k));
      });
  r.kernelsCompiled += int(missing.size());
  r.kernels = int(objects.size());
  std::vector<std::string_view> images;
  for (auto& k : objects) images.push_back(k->object);
  const double emitted = monotonicSeconds();
  if (o.progress) o.progress("Link", 0, 1);
  if (!images.empty()) r.parts.code = target.link(images);
  const double linked = monotonicSeconds();
  if (o.progress) o.progress("Pack weights and plan memory", 0, 1);
  assemble(model, o, decided, objects, index, cache, r);
  r.emitSeconds = emitted - t0;
  r.linkSeconds = linked - emitted;
  r.assembleSeconds = monotonicSeconds() - linked;
  return r;
}

void keepDetail(runtime::EngineParts& parts, const std::string& verbosity) {
  const bool names = verbosity == "layer_names_only";
  if (!names && verbosity != "none" && verbosity != "detailed")
    throw UserError("'{}' is no detail of layer information: layer_names_only, detailed and none are", verbosity);
  parts.notes["profiling_verbosity"] = verbosity;
  if (verbosity == "detailed") return;
  auto& layers = parts.plan.layers;
  for (size_t i = 0; i < layers.size(); i++) {
    auto bare = std::make_unique<runtime::fb::LayerT>();
    bare->name = names ? layers[i]->name : fmt::format("layer {}", i);
    layers[i] = std::move(bare);
  }
}

int64_t workspaceBytes(const BuildResult& r, int threads) {
  int64_t scratch = 0;
  for (const auto& region : r.parts.plan.regions)
    for (const auto& i : region->code)
      if (const auto* l = i->action.AsLaunch()) scratch = std::max(scratch, roundUp(l->scratch, 64));
  return r.parts.plan.arena_bytes + scratch * usableThreads(threads);
}

}  // namespace rutter::compiler
