// The friendly form: the knobs that the default engine's hottest layers read, judged layer by layer.
#include <algorithm>
#include <cmath>

#include "tuner/strategy.h"

namespace rutter::tuner {
namespace {

using knobs::Assignment;
using knobs::KnobInfo;

// A change must beat the incumbent by this much (log ratio): less is within what placement alone does.
constexpr double kStep = 0.006;

struct Move {
  std::vector<Assignment> route;
  double heat = 0;  // the share of time that it may change, less for a knob's later values
  int phase = 1;
  bool single = false;  // one value for the whole model
};

// Values worth trying, without the default. A range is sampled at its ends and on the way, in powers of four.
std::vector<std::string> valuesOf(const KnobInfo& k, bool lossy) {
  std::vector<std::string> values;
  if (k.bounded()) {
    for (const std::string& v : k.values)
      if (v != k.defaultValue && (lossy || k.numericsOf(v) != knobs::Numerics::kLossy)) values.push_back(v);
    return values;
  }
  for (int64_t v = k.min;; v = std::min(k.max, v > 0 ? v * 4 : 1)) {
    const std::string text = std::to_string(v);
    if (text != k.defaultValue && (lossy || k.numericsOf(text) != knobs::Numerics::kLossy)) values.push_back(text);
    if (v >= k.max || values.size() >= 6) break;
  }
  return values;
}

struct Heat {
  const KnobInfo* knob;
  double heat;
};
std::vector<Heat> heats(const HotSpace& space) {
  double total = 0;
  for (const LayerTime& l : space.layers) total += l.ms;
  std::map<std::string, double> heat;
  // Decisions about the whole model belong to no layer: a guess that puts them behind the knobs of the hot loops.
  for (const std::string& k : space.knobsRead) heat.try_emplace(k, 0.15);
  std::map<std::string, double> byLayers;
  for (const LayerTime& l : space.layers)
    for (const std::string& k : l.knobsRead) byLayers[k] += total > 0 ? l.ms / total : 0;
  for (const auto& [k, h] : byLayers) heat[k] = h;
  std::vector<Heat> out;
  for (const KnobInfo& k : space.registry->knobs()) {
    auto it = heat.find(k.name);
    if (it == heat.end() || it->second <= 0 || valuesOf(k, space.lossy).empty()) continue;
    out.push_back({&k, it->second});
  }
  std::stable_sort(out.begin(), out.end(), [](const Heat& a, const Heat& b) { return a.heat > b.heat; });
  return out;
}

void sortByHeat(std::vector<Move>& moves) {
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.heat > b.heat; });
}

class TuneStrategy : public Strategy {
 public:
  explicit TuneStrategy(HotSpace space) : space_(std::move(space)) {
    for (const LayerTime& l : space_.layers) {
      total_ += l.ms;
      if (l.origins.empty()) continue;
      ms_[l.origins.front()] += l.ms;
      for (const std::string& o : l.origins) home_.try_emplace(o, l.origins.front());
    }
    for (const Heat& h : heats(space_)) addMoves(*h.knob, h.heat);
    sortByHeat(queue_);
    event("hot", fmt::format("tune: {} knobs of the hot layers, {} values to try one by one", heats(space_).size(),
                             queue_.size()));
    events_.back()["hottest"] = hotExpression(space_, 12);
  }
  const char* name() const override { return "tune"; }

  std::optional<Ask> ask() override {
    while (true) {
      // Now and then what is known so far is put together, so that a short budget gets its share of it.
      if (phase_ == 1 && at_ >= nextAssembly_ && at_ < queue_.size()) {
        nextAssembly_ += kAssembleEvery;
        assemble(2, 2);
      }
      if (!assembled_.empty()) {
        Move m = std::move(assembled_.front());
        assembled_.erase(assembled_.begin());
        if (std::optional<Ask> a = propose(std::move(m))) return a;
        continue;
      }
      if (at_ < queue_.size()) {
        if (std::optional<Ask> a = propose(queue_[at_++])) return a;
        continue;
      }
      if (!nextPhase()) return std::nullopt;
    }
  }

  void tell(const Tell& t) override {
    if (t.status != Status::kOk || t.logRatios.empty()) return;
    const double center = median(t.logRatios);
    if (current_.single && incumbentAtAsk_.empty()) learn(current_.route[0], t, center);
    if (t.logRatios.size() < 5) return;
    if (center > best_ + kStep && medianInterval(t.logRatios, 1.0 / 32).lo > best_) {
      incumbent_ = current_.route;
      best_ = center;
      improved_ = true;
    }
  }

 private:
  static constexpr size_t kAssembleEvery = 12;
  struct Saved {  // by one value of one knob, against the default: milliseconds a layer
    std::map<std::string, double> byLayer;
    double sum = 0;
  };
  using Key = std::pair<knobs::KnobId, std::string>;  // knob, value

  void event(const char* what, const std::string& text) {
    events_.push_back({{"event", what}, {"text", text}, {"phase", phase_}});
  }

  void addMoves(const KnobInfo& knob, double heat) {
    int rank = 0;
    for (const std::string& v : valuesOf(knob, space_.lossy))
      queue_.push_back({{{knob.id, v, "", 0}}, heat / ++rank, 1, true});
  }

  std::optional<Ask> propose(Move m) {
    std::string route = knobs::Route(m.route, *space_.registry).print();
    if (route.empty() || !seen_.insert(route).second) return std::nullopt;
    incumbentAtAsk_ = m.phase == 1 ? std::vector<Assignment>{} : incumbent_;
    current_ = std::move(m);
    return Ask{std::move(route), current_.phase};
  }

  // One value for the whole model: what it saved in each layer. Time of a layer that it split or merged is counted at
  // the layer that its first origin belongs to in the default engine.
  void learn(const Assignment& a, const Tell& t, double center) {
    Saved& s = saved_[{a.knob, a.value}];
    s = {};
    if (t.layerMs.empty() || total_ <= 0) {
      s.sum = total_ * (1 - std::exp(-center));
      return;
    }
    std::map<std::string, double> now;
    auto whole = t.layerMs.find("");
    const double scale = whole != t.layerMs.end() && whole->second > 0 ? total_ / whole->second : 1;
    for (const auto& [origin, ms] : t.layerMs) {
      if (origin.empty()) continue;
      auto home = home_.find(origin);
      now[home == home_.end() ? origin : home->second] += ms * scale;
    }
    for (const auto& [layer, ms] : ms_) {
      const double saved = ms - (now.count(layer) ? now[layer] : 0);
      s.byLayer[layer] = saved;
      s.sum += saved;
    }
  }

  struct Pick {
    std::vector<Assignment> assignments;
    double saved = 0;
  };
  // The best use of one knob: one value for all, and others where they save clearly more.
  Pick pickFor(knobs::KnobId knob) const {
    const std::string& standard = (*space_.registry)[knob].defaultValue;
    std::vector<std::pair<std::string, const Saved*>> values;
    for (const auto& [key, s] : saved_)
      if (key.first == knob) values.emplace_back(key.second, &s);
    Pick pick;
    std::string all = standard;
    const Saved* base = nullptr;
    for (const auto& [value, s] : values)
      if (s->sum > pick.saved && s->sum > kLeast * total_) pick.saved = s->sum, all = value, base = s;
    if (base) pick.assignments.push_back({knob, all, "", 0});
    struct Exception {
      double more;
      Assignment a;
    };
    std::vector<Exception> exceptions;
    for (const auto& [layer, ms] : ms_) {
      const double have = base && base->byLayer.count(layer) ? base->byLayer.at(layer) : 0;
      double most = have;
      std::string value = all;
      if (0 > most) most = 0, value = standard;
      for (const auto& [v, s] : values)
        if (auto it = s->byLayer.find(layer); it != s->byLayer.end() && it->second > most) most = it->second, value = v;
      if (value == all || most - have < std::max(0.03 * ms, kLeast * total_)) continue;
      exceptions.push_back({most - have, {knob, value, layer, 0}});
    }
    std::stable_sort(exceptions.begin(), exceptions.end(), [](auto& a, auto& b) { return a.more > b.more; });
    if (exceptions.size() > kExceptions) exceptions.resize(kExceptions);
    for (Exception& e : exceptions) {
      pick.saved += e.more;
      pick.assignments.push_back(std::move(e.a));
    }
    return pick;
  }

  // Routes from the best use of the 1, 2, … most rewarding knobs.
  void assemble(int phase, size_t most) {
    std::vector<Pick> picks;
    std::set<knobs::KnobId> knobs;
    for (const auto& [key, s] : saved_) knobs.insert(key.first);
    for (knobs::KnobId k : knobs)
      if (Pick p = pickFor(k); !p.assignments.empty()) picks.push_back(std::move(p));
    std::stable_sort(picks.begin(), picks.end(), [](const Pick& a, const Pick& b) { return a.saved > b.saved; });
    std::vector<Assignment> route;
    for (size_t i = 0; i < picks.size() && i < 8; i++) {
      route.insert(route.end(), picks[i].assignments.begin(), picks[i].assignments.end());
      assembled_.push_back({route, 0, phase, false});
      if (i > 0) assembled_.push_back({picks[i].assignments, 0, phase, false});
    }
    // The fullest first: if it is the best, it is known early.
    std::stable_sort(assembled_.begin(), assembled_.end(),
                     [](const Move& a, const Move& b) { return a.route.size() > b.route.size(); });
    if (assembled_.size() > most) assembled_.resize(most);
  }

  // Changes to the best so far: each assignment dropped or given another value, and single values added.
  void changes() {
    for (size_t i = 0; i < incumbent_.size(); i++) {
      std::vector<Assignment> without = incumbent_;
      without.erase(without.begin() + long(i));
      queue_.push_back({without, 0.5, phase_, false});
      for (const std::string& v : valuesOf((*space_.registry)[incumbent_[i].knob], space_.lossy)) {
        if (v == incumbent_[i].value) continue;
        std::vector<Assignment> other = incumbent_;
        other[i].value = v;
        auto it = saved_.find({incumbent_[i].knob, v});
        queue_.push_back(
            {other, it == saved_.end() ? 0.1 : 0.3 + it->second.sum / std::max(total_, 1e-9), phase_, false});
      }
    }
    for (const auto& [key, s] : saved_) {
      const bool there =
          std::any_of(incumbent_.begin(), incumbent_.end(), [&](auto& a) { return a.knob == key.first; });
      if (there || s.sum < -0.1 * total_) continue;
      std::vector<Assignment> more = incumbent_;
      more.push_back({key.first, key.second, "", 0});
      queue_.push_back({more, 0.2 + s.sum / std::max(total_, 1e-9), phase_, false});
    }
    sortByHeat(queue_);
  }

  bool nextPhase() {
    queue_.clear();
    at_ = 0;
    phase_++;
    if (phase_ == 2) {
      assemble(2, 6);
      event("phase", fmt::format("tune: {} routes assembled from what helped which layer", assembled_.size()));
      return true;
    }
    if (phase_ > 3 && !improved_) return false;
    improved_ = false;
    changes();
    event("phase", fmt::format("tune: phase {}, {} changes to the best so far", phase_, queue_.size()));
    return !queue_.empty();
  }

  static constexpr double kLeast = 0.001;    // of the whole time: less is not worth an assignment
  static constexpr size_t kExceptions = 12;  // scoped assignments of one knob

  HotSpace space_;
  double total_ = 0;
  std::map<std::string, double> ms_;         // default engine: first origin -> ms
  std::map<std::string, std::string> home_;  // origin -> first origin of its layer
  std::map<Key, Saved> saved_;
  std::vector<Assignment> incumbent_, incumbentAtAsk_;
  double best_ = 0;
  int phase_ = 1;
  bool improved_ = false;
  std::vector<Move> queue_, assembled_;
  size_t at_ = 0, nextAssembly_ = kAssembleEvery;
  Move current_;
  std::set<std::string> seen_;
};

}  // namespace

std::unique_ptr<Strategy> makeTuneStrategy(HotSpace space) {
  return std::make_unique<TuneStrategy>(std::move(space));
}

std::string hotExpression(const HotSpace& space, size_t knobs) {
  std::string text;
  for (const Heat& h : heats(space)) {
    if (knobs-- == 0) break;
    std::string values = h.knob->defaultValue;
    for (const std::string& v : valuesOf(*h.knob, space.lossy)) values += "|" + v;
    text += fmt::format("{}{}=[{}]", text.empty() ? "" : " ", h.knob->name, values);
  }
  return text;
}

}  // namespace rutter::tuner
