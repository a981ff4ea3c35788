#pragma once
// A synthetic world for the tuner: knobs, layers, the effect of values on layers, planted faults. Described by JSON, so
// that the test worker program can take it for a "model".
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "knobs/resolve.h"
#include "tuner/measure.h"
#include "tuner/search.h"

namespace rutter::tuner::test {

class World {
 public:
  /// {"knobs": {"-a": "1|2|3"}            (the first value is the default),
  ///  "layers": {"conv": {"ms": 4, "effects": {"-a=2": 0.8}, "pairs": {"-a=2 -b=1": 0.9}}},
  ///  "faults": {"-a=3": "crash_build"},  "process_sigma": 0.01, "run_sigma": 0.003, "build_s": 0.1, "seed": 1}
  explicit World(const Json& j) : json(j) {
    std::vector<knobs::KnobSpec> specs;
    for (const auto& [name, values] : j.at("knobs").items()) {
      const std::string v = values.get<std::string>();
      specs.push_back({knobs::Domain::kEnum, "", name.substr(1), v, 0, 0, v.substr(0, v.find('|')), knobs::Target::kCpu,
                       "exact", "A test knob."});
    }
    registry = std::make_shared<knobs::Registry>(std::move(specs));
    if (j.contains("faults"))
      for (const auto& [assignment, kind] : j["faults"].items()) faults[assignment] = kind.get<std::string>();
    processSigma = j.value("process_sigma", 0.0);
    runSigma = j.value("run_sigma", 0.0);
    buildSeconds = j.value("build_s", 0.1);
    seed = j.value("seed", uint64_t(1));
  }

  knobs::Route route(const std::string& text) const { return knobs::Route::parse(text, *registry); }

  /// Milliseconds of one run without noise.
  double ms(const std::string& text) const {
    double sum = 0;
    each(text, [&](const std::string&, const Json& layer, const std::vector<std::string>& values) {
      sum += time(layer, values);
    });
    return sum;
  }
  /// Hash of everything that a route decides. Values without any effect or fault decide nothing.
  std::string decision(const std::string& text) const {
    std::string all;
    each(text, [&](const std::string& name, const Json& layer, const std::vector<std::string>& values) {
      for (const std::string& v : values)
        if (faults.count(v) || (layer.contains("effects") && layer["effects"].contains(v))) all += name + v + ";";
    });
    return hashBytes(all).hex();
  }
  std::string fault(const std::string& text) const {
    std::string found;
    each(text, [&](const std::string&, const Json&, const std::vector<std::string>& values) {
      for (const std::string& v : values)
        if (auto it = faults.find(v); it != faults.end()) found = it->second;
    });
    return found;
  }
  std::vector<LayerTime> layers(const std::string& text) const {
    std::vector<LayerTime> out;
    each(text, [&](const std::string& name, const Json& layer, const std::vector<std::string>& values) {
      LayerTime t{name, {name}, {}, time(layer, values)};
      for (const knobs::KnobInfo& k : registry->knobs()) {
        bool read = false;
        if (layer.contains("effects"))
          for (const auto& [a, f] : layer["effects"].items()) read |= a.starts_with(k.name + "=");
        if (read) t.knobsRead.push_back(k.name);
      }
      out.push_back(std::move(t));
    });
    return out;
  }

  Json json;
  std::shared_ptr<knobs::Registry> registry;
  std::map<std::string, std::string> faults;
  double processSigma = 0, runSigma = 0, buildSeconds = 0.1;
  uint64_t seed = 1;

 private:
  static double time(const Json& layer, const std::vector<std::string>& values) {
    double t = layer.at("ms");
    for (const std::string& v : values)
      if (layer.contains("effects")) t *= layer["effects"].value(v, 1.0);
    if (layer.contains("pairs"))
      for (const auto& [pair, effect] : layer["pairs"].items()) {
        const size_t space = pair.find(' ');
        auto has = [&](const std::string& v) { return std::find(values.begin(), values.end(), v) != values.end(); };
        if (has(pair.substr(0, space)) && has(pair.substr(space + 1))) t *= effect.get<double>();
      }
    return t;
  }
  template <typename F>
  void each(const std::string& text, F&& f) const {
    const knobs::Route r = route(text);
    for (const auto& [name, layer] : json.at("layers").items()) {
      const knobs::LayerKnobs k(r, {name});
      std::vector<std::string> values;
      for (const knobs::KnobInfo& info : registry->knobs()) values.push_back(info.name + "=" + k.valueText(info.id));
      f(name, layer, values);
    }
  }
};

/// One layer, three knobs: -tile=16 gains 9 %, -fuse=off 5 %, the other values lose.
inline Json exampleWorld() {
  return {{"knobs", {{"-fuse", "on|off"}, {"-tile", "32|16|64"}, {"-unroll", "1|2"}}},
          {"layers",
           {{"l",
             {{"ms", 10},
              {"effects", {{"-unroll=2", 1.04}, {"-tile=16", 0.91}, {"-tile=64", 1.02}, {"-fuse=off", 0.95}}}}}}},
          {"run_sigma", 0.001},
          {"process_sigma", 0.004}};
}
inline const char kExample[] = "-fuse=[on|off] -tile=[16|32|64] -unroll=[1|2]";

/// Time that only moves when something is run.
/// On a binary grid, so that a duration does not depend on when it was measured.
struct SimClock : Clock {
  double t = 0;
  double now() override { return t; }
  void advance(double seconds) { t += std::ldexp(std::round(std::ldexp(seconds, 36)), -36); }
};

/// One engine in one process: its placement is a matter of luck, fixed as long as the process lives.
class SimEngine {
 public:
  SimEngine(const World& w, const std::string& route, SimClock& clock, uint64_t luck)
      : clock_(&clock), random_(luck), runSigma_(w.runSigma) {
    std::normal_distribution<double> placement(0, w.processSigma);
    seconds_ = w.ms(route) * 1e-3 * std::exp(placement(random_));
  }
  void run() {
    std::normal_distribution<double> noise(0, runSigma_);
    clock_->advance(seconds_ * std::exp(runSigma_ > 0 ? noise(random_) : 0));
  }

 private:
  SimClock* clock_;
  std::mt19937_64 random_;
  double runSigma_, seconds_;
};

/// Runs a world in this process, on its own clock. The same question always gets the same answer.
class SimRunner : public Runner {
 public:
  explicit SimRunner(const World& w) : world(w) {}

  BaselineRecord baseline() override {
    BaselineRecord b;
    b.decision = world.decision("");
    b.engineHash = "default";
    b.ms = world.ms("");
    b.layers = world.layers("");
    b.losses = std::map<std::string, double>{{"y", 0}};
    b.relativeError = 1e-7;
    b.buildMs = world.buildSeconds * 1000;
    b.runSeconds = 0.2;
    for (const auto& k : world.registry->knobs()) b.knobsRead.push_back(k.name);
    clock.advance(world.buildSeconds + b.runSeconds);
    if (world.fault("") == "inaccurate") b.status = Status::kInaccurate, b.error = "y: loss 1";
    return b;
  }
  Decision decide(const std::string& route, Purpose purpose) override {
    if (purpose == Purpose::kWinner) {
      if (fullDisk == 1) throw DiskFullError("no room");
      if (winnerCrashes > 0) return winnerCrashes--, Decision{Status::kCrashed, "the worker died", "", {}, {}, 0};
      if (winnerDecisions == 0) return {Status::kInterrupted, "interrupted", "", {}, {}, 0};
      winnerDecisions--;
      if (onWinnerDecision) onWinnerDecision(decidedForWinner++);
      clock.advance(winnerDecisionSeconds);
    } else if (clock.t > candidatesUntil) {
      return {Status::kInterrupted, "interrupted", "", {}, {}, 0};
    }
    clock.advance(0.005);
    if (world.fault(route) == "rejected") return {Status::kRejected, "needs an ISA", "", {}, {}, 0.005};
    return {Status::kOk, "", world.decision(route),
            {},          {}, 0.005 + (purpose == Purpose::kWinner ? winnerDecisionSeconds : 0)};
  }
  CandidateRecord candidate(int64_t, const std::string& route, double promise) override {
    built++;
    CandidateRecord r;
    r.route = route;
    clock.advance(world.buildSeconds);
    r.buildMs = world.buildSeconds * 1000;
    const std::string fault = world.fault(route);
    if (stopInside && built == stopInside) {
      r.status = Status::kInterrupted;
      return r;
    }
    if (fault == "crash") r.status = Status::kCrashed, r.error = "killed by signal 11";
    if (fault == "hang") r.status = Status::kHung, r.error = "hangs", clock.advance(5);
    if (fault == "inaccurate") {
      r.status = Status::kInaccurate;
      r.losses = std::map<std::string, double>{{"y", 1}};
    }
    if (r.status != Status::kOk) return r;
    r.losses = std::map<std::string, double>{{"y", 0}};
    r.engineHash = engineHash(route);
    const double drift = 1.3;  // of this process against the one that profiled the default
    for (const LayerTime& l : world.layers(route)) r.layerMs[l.name] = l.ms * drift;
    for (const LayerTime& l : world.layers("")) r.defaultLayerMs[l.name] = l.ms * drift;
    RankRule rule;
    rule.promise = promise;
    measure(route, "rank0", 0, rule, r.logRatios, r.ms);
    return r;
  }
  CandidateRecord rebuild(int64_t iter, const std::string& route) override {
    if (fullDisk == 2) throw DiskFullError("no room");
    CandidateRecord r = candidate(iter, route, 1e9);
    if (failingRebuilds > 0 && failingRebuilds-- > 0) r.status = Status::kCrashed;
    if (rebuilds == 0) r.status = Status::kInterrupted;
    rebuilds--;
    return r;
  }
  SampleRecord sample(int64_t, const std::string& route, const std::string& stage, int index) override {
    SampleRecord s;
    clock.advance(0.05);
    if (world.fault(route) == "crash_confirm" && stage.starts_with("confirm") && index == 3) {
      s.status = Status::kCrashed;
      s.error = "killed by signal 11";
      return s;
    }
    std::optional<double> ms;
    measure(route, stage, index, {3, 3, 1e9, 1e9}, s.logRatios, ms);
    s.ms = *ms;
    if (size_t(index) < defaultMs.size()) s.defaultMs = defaultMs[size_t(index)];
    samples++;
    return s;
  }
  std::string save(int64_t iter, const std::string& route, const std::string& path) override {
    if (interruptedSaves && path.find(".iter") != path.npos) throw InterruptedError("an engine");
    if (world.fault(route) == "gone") throw UserError("route '{}' was ok and is crashed now", route);
    saves++;
    if (fullDisk == 3 && path.find(".iter") != path.npos) throw DiskFullError("no room");
    saved[path] = {iter, route};
    clock.advance(0.05);
    return route;
  }
  std::string hashOf(const std::string& path) override {
    auto it = saved.find(path);
    return it == saved.end() ? "" : it->second.first < 0 ? "default" : engineHash(it->second.second);
  }
  std::string routeOf(const std::string& path) override {
    auto it = saved.find(path);
    return it == saved.end() ? "" : it->second.second;
  }
  bool holds(const std::string& path, const CandidateRecord& c) override {
    auto it = saved.find(path);
    return it != saved.end() && it->second.second == c.route;
  }

  const World& world;
  SimClock clock;
  int built = 0, samples = 0, saves = 0;
  double candidatesUntil = 1e9;               ///< on the clock: decisions for candidates are interrupted after it
  int winnerDecisions = -1, rebuilds = -1;    ///< so many, then they are interrupted; below 0: all
  int failingRebuilds = 0;                    ///< so many crash
  double winnerDecisionSeconds = 0;           ///< what each takes
  std::function<void(int)> onWinnerDecision;  ///< told the how manieth, from 0
  int decidedForWinner = 0;
  int winnerCrashes = 0;          ///< so many decisions for winners crash
  int fullDisk = 0;               ///< 1: when deciding for a winner; 2: when building it; 3: for other engines than its
  std::vector<double> defaultMs;  ///< of samples, by their index
  bool interruptedSaves = false;  ///< of engines that are not the winner's
  int stopInside = 0;             ///< this build is interrupted
  std::map<std::string, std::pair<int64_t, std::string>> saved;

 private:
  // An engine holds its route.
  std::string engineHash(const std::string& route) const { return hashBytes(world.decision(route) + route).hex(); }
  void measure(const std::string& route, const std::string& stage, int index, RankRule rule,
               std::vector<double>& ratios, std::optional<double>& ms) {
    const std::string key = fmt::format("{} {} {} {}", world.seed, route, stage, index);
    const Hash128 h = hashBytes(key);
    SimEngine a(world, "", clock, h.lo), b(world, route, clock, h.hi);
    const PairSamples p = measurePair([&] { a.run(); }, [&] { b.run(); }, clock, {}, rule, index % 2);
    ratios = p.logRatios;
    ms = median(p.second) * 1000;
  }
};

struct SimPacer : Pacer {
  explicit SimPacer(SimClock& c, double used = 0) : clock(&c), used(used) {}
  double elapsed() override { return used + clock->t; }
  int stopLevel() override { return stop; }
  SimClock* clock;
  double used;
  int stop = 0;
};

}  // namespace rutter::tuner::test
