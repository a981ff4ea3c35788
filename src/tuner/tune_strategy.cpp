// The friendly form. It begins with what is best for each layer's kernels alone. Layers are all but independent of each
// other, and a profile shows each: so one engine tries another value in every hot layer at once, and is judged layer by
// layer. What helped is put together now and then, looked at again, and kept where it helps again; the next round
// starts from there. When no single value is left that was not tried, two are tried together, as some are of use only
// beside each other.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "tuner/strategy.h"

namespace rutter::tuner {
namespace {

using knobs::Assignment;
using knobs::KnobInfo;

// A value for the whole model must gain this much (log ratio): less is within what placement alone does.
constexpr double kStep = 0.006;
constexpr size_t kWindow = 12;        // layers that are tried at once: each costs its kernel
constexpr double kWindowShare = 0.9;  // … the hottest are fewer if those take this share of the time
constexpr int kAssembleEvery = 10;
constexpr size_t kPairs = 64, kPairsAtOnce = 16;  // of a layer: in all, and until the next layers have their turn
constexpr size_t kWideForPairs = 12;              // of the values for the whole model

std::string layersText(size_t n) {
  return fmt::format("{} layer{}", n, n == 1 ? "" : "s");
}

// Values worth trying, without the default. A range is sampled at its ends and on the way, in powers of four.
std::vector<std::string> valuesOf(const KnobInfo& k, const HotSpace& space) {
  // A limit that all threads respect is none.
  const bool ofThreads = space.threads > 0 && k.name == "-threads:limit";
  const auto isWorth = [&](const std::string& v) {
    return v != k.defaultValue && (space.lossy || k.numericsOf(v) != knobs::Numerics::kLossy) &&
           !(ofThreads && std::atoi(v.c_str()) >= space.threads);
  };
  std::vector<std::string> values;
  if (k.bounded()) {
    std::copy_if(k.values.begin(), k.values.end(), std::back_inserter(values), isWorth);
    return values;
  }
  for (int64_t v = k.min;; v = std::min(k.max, v > 0 ? v * 4 : 1)) {
    if (const std::string text = std::to_string(v); isWorth(text)) values.push_back(text);
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
    if (it == heat.end() || it->second <= 0 || valuesOf(k, space).empty()) continue;
    out.push_back({&k, it->second});
  }
  std::stable_sort(out.begin(), out.end(), [](const Heat& a, const Heat& b) { return a.heat > b.heat; });
  return out;
}

// A knob that is read where a layer's kernel is chosen can be scoped to the layer. Others shape the graph around it.
bool isLocal(const KnobInfo& k) {
  return k.area != "fuse" && k.area != "graph" && k.area != "layout" && k.area != "memory";
}

// The middle of an ordered list first: its ends are the unlikely ones.
std::vector<std::string> middleOut(std::vector<std::string> v) {
  std::vector<std::string> out;
  for (size_t n = v.size(), i = 0; i < n; i++) {
    const size_t step = (i + 1) / 2, mid = n / 2;
    out.push_back(std::move(v[i % 2 ? mid - step : mid + step]));
  }
  return out;
}

class TuneStrategy : public Strategy {
 public:
  explicit TuneStrategy(HotSpace space) : space_(std::move(space)) {
    for (const LayerTime& l : space_.layers) {
      total_ += l.ms;
      if (l.origins.empty()) continue;
      for (const std::string& o : l.origins) home_.try_emplace(o, l.origins.front());
      auto it = std::find_if(layers_.begin(), layers_.end(), [&](auto& h) { return h.origin == l.origins.front(); });
      if (it == layers_.end()) it = layers_.insert(layers_.end(), Hot{l.origins.front(), 0, {}, {}, {}});
      it->ms += l.ms;
      it->knobs.insert(l.knobsRead.begin(), l.knobsRead.end());
    }
    std::stable_sort(layers_.begin(), layers_.end(), [](const Hot& a, const Hot& b) { return a.ms > b.ms; });
    std::map<std::string, int> readers;
    for (const Hot& h : layers_)
      for (const std::string& k : h.knobs) readers[k]++;
    for (Hot& h : layers_) addTrials(h, readers);
    addTimed();
    for (const Heat& h : heats(space_)) addWide(*h.knob, h.heat);
    std::stable_sort(wides_.begin(), wides_.end(), [](const Wide& a, const Wide& b) { return a.heat > b.heat; });
    moveWindow();
    event("hot", fmt::format("tune: {} at once, {} values for single layers, {} for the whole model",
                             layersText(end_ - begin_), trialsLeft(), wides_.size()));
    events_.back()["hottest"] = hotExpression(space_, 12);
  }
  const char* name() const override { return "tune"; }

  std::optional<Ask> ask() override {
    while (true) {
      if (!next_.empty()) {
        Proposal p = std::move(next_.front());
        next_.erase(next_.begin());
        if (std::optional<Ask> a = propose(std::move(p))) return a;
        continue;
      }
      if (asks_ >= nextAssembly_) {
        nextAssembly_ = asks_ + kAssembleEvery;
        assemble();
        continue;
      }
      // One value for the whole model after three engines that try many.
      const bool wide = wideAt_ < wides_.size() && (turn_++ % 4 == 3 || !trialsLeft());
      if (wide) {
        Proposal p;
        p.wide = wideAt_++;
        p.route = wides_[*p.wide].values;
        next_.push_back(std::move(p));
      } else if (trialsLeft()) {
        next_.push_back(spread());
      } else if (!nextRound()) {
        return std::nullopt;
      }
    }
  }

  void tell(const Tell& t) override {
    const Proposal p = std::exchange(current_, {});
    if (t.status != Status::kOk || t.logRatios.empty()) return divide(p);
    const double center = median(t.logRatios);
    if (t.logRatios.size() >= 5) best_ = std::max(best_, center);
    if (p.wide) {
      Wide& w = wides_[*p.wide];
      w.gain = center;
      if (t.logRatios.size() >= 5 && center > kStep && medianInterval(t.logRatios, 1.0 / 32).lo > 0)
        takeWide(w.values, center);
      return;
    }
    const std::map<std::string, double> saved = savings(t);
    bool lost = false, kept = false;
    for (const auto& [layer, trial] : p.trials) {
      Hot& h = layers_[layer];
      Trial& tried = h.trials[trial];
      auto it = saved.find(h.origin);
      // Without a profile the whole ratio is what there is: it speaks for one change only.
      const double now = it != saved.end() ? it->second : p.trials.size() == 1 ? total_ * (1 - std::exp(-center)) : 0;
      tried.gain = now - h.saved;
      if (!p.assembled) {
        if (tried.gain > worth(h, 0.03) && (!h.best || tried.gain > h.trials[*h.best].gain)) h.best = trial;
      } else if (tried.gain > worth(h, 0.015)) {
        for (const auto& [knob, value] : tried.values) put(h.have, {knob, value, h.origin, 0});
        h.saved = now;
        improved_ = kept = true;
      } else {
        lost = true;
      }
    }
    if (!p.assembled) return;
    // As it stands now: what did not help again is gone, what helps the whole model is there.
    if (kept && (lost || !wideRoute_.empty())) next_.push_back(plain());
  }

 private:
  struct Trial {
    std::vector<std::pair<knobs::KnobId, std::string>> values;
    double gain = 0;      // milliseconds, when it was tried last, against what its layer had then
    bool failed = false;  // alone, on top of what was found
  };
  struct Hot {
    std::string origin;
    double ms = 0;
    std::set<std::string> knobs;
    std::vector<Trial> trials;
    std::vector<Trial> pairs;      // to be tried when single values are through; the last one first
    std::vector<Assignment> have;  // found good
    double saved = 0;              // milliseconds against the default
    size_t at = 0;                 // next trial
    std::optional<size_t> best;    // of the trials since the last assembly
  };
  struct Wide {
    std::vector<Assignment> values;
    double heat;
    std::optional<double> gain;  // log ratio, if it was measured
  };
  struct Proposal {
    std::vector<Assignment> route;
    std::map<size_t, size_t> trials;  // layer -> trial that is new in it
    std::optional<size_t> wide;
    bool assembled = false;
  };

  void event(const char* what, const std::string& text) {
    events_.push_back({{"event", what}, {"text", text}, {"phase", phase_}});
  }
  static void put(std::vector<Assignment>& route, Assignment a) {
    std::erase_if(route, [&](const Assignment& x) { return x.knob == a.knob && x.scope == a.scope; });
    route.push_back(std::move(a));
  }
  // Milliseconds that a change of a layer must gain.
  double worth(const Hot& h, double share) const { return std::max(share * h.ms, 0.0005 * total_); }

  // Knobs that few layers read first: they are about this kind of layer. One value of each in turn.
  void addTrials(Hot& h, const std::map<std::string, int>& readers) {
    std::vector<std::pair<int, std::vector<Trial>>> byKnob;
    for (const KnobInfo& k : space_.registry->knobs()) {
      if (!h.knobs.count(k.name) || !isLocal(k)) continue;
      std::vector<Trial> values;
      for (std::string& v : middleOut(valuesOf(k, space_))) values.push_back({{{k.id, std::move(v)}}});
      byKnob.emplace_back(readers.at(k.name), std::move(values));
    }
    std::stable_sort(byKnob.begin(), byKnob.end(), [](auto& a, auto& b) { return a.first < b.first; });
    for (size_t rank = 0, n = 1; n > 0; rank++) {
      n = 0;
      for (auto& [count, values] : byKnob)
        if (rank < values.size()) h.trials.push_back(values[rank]), n++;
    }
  }
  // The best of every layer's kernels alone, in one engine, is what the search begins with.
  void addTimed() {
    if (space_.timedRoute.empty()) return;
    const knobs::Route timed = knobs::Route::parse(space_.timedRoute, *space_.registry);
    Proposal p;
    p.assembled = true;
    for (size_t i = 0; i < layers_.size(); i++) {
      Trial t;
      for (const Assignment& a : timed.assignments())
        if (a.scope == layers_[i].origin) t.values.emplace_back(a.knob, a.value);
      if (t.values.empty()) continue;
      p.trials[i] = layers_[i].trials.size();
      layers_[i].trials.push_back(std::move(t));
    }
    if (p.trials.empty()) return;
    withTrials(p);
    event("timed", fmt::format("tune: by their kernels timed alone, {} could be faster", layersText(p.trials.size())));
    next_.push_back(std::move(p));
  }
  // Values of knobs that shape the graph first: no single layer tries those. The first value of each before the second.
  void addWide(const KnobInfo& knob, double heat) {
    int rank = 0;
    for (const std::string& v : valuesOf(knob, space_))
      wides_.push_back({{{knob.id, v, "", 0}}, (isLocal(knob) ? 0.3 : 1) * heat / ++rank, {}});
  }

  size_t trialsLeft() const {
    size_t n = 0;
    for (size_t i = begin_; i < end_; i++) n += layers_[i].trials.size() - layers_[i].at;
    return n;
  }
  // The next layers to try.
  void moveWindow() {
    begin_ = end_;
    double share = 0;
    for (const Hot& h : layers_) share += (&h < layers_.data() + begin_) ? h.ms : 0;
    while (end_ < layers_.size() && end_ - begin_ < kWindow &&
           (end_ == begin_ || begin_ > 0 || share < kWindowShare * total_))
      share += layers_[end_++].ms;
  }
  // … that have a value left; none: the window is empty.
  void nextWindow() {
    do moveWindow();
    while (begin_ < end_ && !trialsLeft());
  }
  bool nextRound() {
    assemble();
    if (!next_.empty()) return true;
    phase_++;
    if (improved_) {
      // Again from what was found, without what did clear harm; what helped most goes first.
      improved_ = false;
      for (size_t i = begin_; i < end_; i++) {
        Hot& h = layers_[i];
        std::erase_if(h.trials, [&](const Trial& t) { return has(h, t) || t.gain < -0.1 * h.ms; });
        std::stable_sort(h.trials.begin(), h.trials.end(), [](auto& a, auto& b) { return a.gain > b.gain; });
        h.at = 0;
      }
      event("phase", fmt::format("tune: round {}, from what was found so far", phase_));
    } else {
      nextWindow();
      if (begin_ == end_ && !nextPairs()) return false;
      if (begin_ == end_) return true;  // pairs for the whole model alone are left
      event("phase", fmt::format("tune: round {}, {}layers {} to {}", phase_, paired_ ? "two values together, " : "",
                                 begin_ + 1, end_));
    }
    return true;
  }

  // Two values together, what did best alone first: some for these layers, then some for the next, and around.
  bool nextPairs() {
    if (!paired_) {
      for (Hot& h : layers_) addPairs(h);
      addWidePairs();
      paired_ = true;
    }
    const auto left = [](const Hot& h) { return !h.pairs.empty(); };
    if (std::none_of(layers_.begin(), layers_.end(), left) && wideAt_ == wides_.size()) return false;
    for (Hot& h : layers_) {
      h.trials.clear();
      h.at = 0;
      for (; h.trials.size() < kPairsAtOnce && left(h); h.pairs.pop_back())
        h.trials.push_back(std::move(h.pairs.back()));
    }
    end_ = 0;
    nextWindow();
    return true;
  }
  void addPairs(Hot& h) {
    std::vector<Trial> good;
    for (const Trial& t : h.trials) {
      const bool again =  // timed alone, and tried
          std::any_of(good.begin(), good.end(), [&](const Trial& g) { return g.values == t.values; });
      if (t.values.size() == 1 && !t.failed && t.gain > -0.3 * h.ms && !has(h, t) && !again) good.push_back(t);
    }
    std::stable_sort(good.begin(), good.end(), [](auto& a, auto& b) { return a.gain > b.gain; });
    for (size_t sum = 1; sum + 2 < 2 * good.size() && h.pairs.size() < kPairs; sum++)
      for (size_t i = 0; 2 * i < sum && h.pairs.size() < kPairs; i++)
        if (const size_t k = sum - i; k < good.size() && good[i].values[0].first != good[k].values[0].first)
          h.pairs.push_back({{good[i].values[0], good[k].values[0]}});
    std::reverse(h.pairs.begin(), h.pairs.end());
  }
  void addWidePairs() {
    std::vector<Wide> good;
    for (const Wide& w : wides_)
      if (w.gain && *w.gain > -0.1) good.push_back(w);
    std::stable_sort(good.begin(), good.end(), [](auto& a, auto& b) { return *a.gain > *b.gain; });
    good.resize(std::min(good.size(), kWideForPairs));
    for (size_t k = 1; k < good.size(); k++)
      for (size_t i = 0; i < k; i++)
        if (good[i].values[0].knob != good[k].values[0].knob)
          wides_.push_back({{good[i].values[0], good[k].values[0]}, 0, {}});
  }

  static bool has(const Hot& h, const Trial& t) {
    return std::all_of(t.values.begin(), t.values.end(), [&](const auto& x) {
      return std::any_of(h.have.begin(), h.have.end(),
                         [&](const Assignment& a) { return a.knob == x.first && a.value == x.second; });
    });
  }
  // What was found, for all layers.
  std::vector<Assignment> found() const {
    std::vector<Assignment> route;
    for (const Hot& h : layers_) route.insert(route.end(), h.have.begin(), h.have.end());
    return route;
  }
  Proposal plain() const {
    Proposal p;
    p.route = wideRoute_;
    for (const Assignment& a : found()) p.route.push_back(a);
    return p;
  }
  // The next value of every layer in the window, on top of what was found.
  Proposal spread() {
    Proposal p;
    p.route = found();
    for (size_t i = begin_; i < end_; i++) {
      Hot& h = layers_[i];
      while (h.at < h.trials.size() && has(h, h.trials[h.at])) h.at++;
      if (h.at < h.trials.size()) p.trials[i] = h.at++;
    }
    withTrials(p);
    return p;
  }
  void withTrials(Proposal& p) const {
    for (const auto& [layer, trial] : p.trials) {
      for (const auto& [knob, value] : layers_[layer].trials[trial].values)
        put(p.route, {knob, value, layers_[layer].origin, 0});
    }
  }
  // The best of the trials in every layer, together.
  void assemble() {
    Proposal p;
    p.route = found();
    p.assembled = true;
    for (size_t i = 0; i < layers_.size(); i++)
      if (std::optional<size_t> best = std::exchange(layers_[i].best, std::nullopt)) p.trials[i] = *best;
    if (p.trials.empty()) return;
    withTrials(p);
    next_.push_back(std::move(p));
  }
  // One change of many made it fail: found by halves.
  void divide(const Proposal& p) {
    if (p.trials.size() == 1) layers_[p.trials.begin()->first].trials[p.trials.begin()->second].failed = true;
    if (p.trials.size() < 2) return;
    Proposal half[2];
    size_t n = 0;
    for (const auto& t : p.trials) half[n++ < p.trials.size() / 2 ? 0 : 1].trials.insert(t);
    for (Proposal& h : half) {
      h.route = found();
      h.assembled = p.assembled;
      withTrials(h);
      next_.push_back(std::move(h));
    }
  }
  void takeWide(const std::vector<Assignment>& values, double gain) {
    auto better = [&](const Assignment& a) {
      return std::any_of(wideRoute_.begin(), wideRoute_.end(), [&](auto& x) { return x.knob == a.knob; }) &&
             wideGain_[a.knob] >= gain;
    };
    if (std::any_of(values.begin(), values.end(), better)) return;
    for (const Assignment& a : values) {
      put(wideRoute_, a);
      wideGain_[a.knob] = gain;
    }
    if (wideRoute_.size() > 1 || !found().empty()) next_.push_back(plain());
  }

  std::optional<Ask> propose(Proposal p) {
    std::string route = knobs::Route(p.route, *space_.registry).print();
    if (route.empty() || !seen_.insert(route).second) return std::nullopt;
    asks_++;
    // Of an engine that tries something everywhere the profile counts, unless it is the best anyway.
    const double promise = p.wide ? -0.05 : p.trials.empty() || p.assembled ? kNoPromise : std::max(kStep, best_);
    current_ = std::move(p);
    return Ask{std::move(route), phase_, promise};
  }

  // Milliseconds that the candidate saved in each layer of the default engine. Time of a layer that it split or merged
  // counts at the layer that its first origin belongs to there.
  std::map<std::string, double> savings(const Tell& t) const {
    std::map<std::string, double> saved;
    double standard = 0;
    for (const auto& [origin, ms] : t.defaultLayerMs) standard += ms;
    if (t.layerMs.empty() || standard <= 0) return saved;
    const double scale = total_ / standard;  // clocks drift between processes
    for (const auto& [origin, ms] : t.defaultLayerMs) saved[origin] += ms * scale;
    for (const auto& [origin, ms] : t.layerMs) {
      auto home = home_.find(origin);
      saved[home == home_.end() ? origin : home->second] -= ms * scale;
    }
    return saved;
  }

  HotSpace space_;
  double total_ = 0, best_ = 0;
  std::vector<Hot> layers_;                  // hottest first
  std::map<std::string, std::string> home_;  // origin -> first origin of its layer in the default engine
  std::vector<Wide> wides_;
  size_t wideAt_ = 0, begin_ = 0, end_ = 0;  // layers_[begin_, end_) are being tried
  std::vector<Assignment> wideRoute_;        // values for the whole model that helped
  std::map<knobs::KnobId, double> wideGain_;
  std::vector<Proposal> next_;
  Proposal current_;
  int phase_ = 1, asks_ = 0, nextAssembly_ = kAssembleEvery, turn_ = 0;
  bool improved_ = false, paired_ = false;
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
    for (const std::string& v : valuesOf(*h.knob, space)) values += "|" + v;
    text += fmt::format("{}{}=[{}]", text.empty() ? "" : " ", h.knob->name, values);
  }
  return text;
}

}  // namespace rutter::tuner
