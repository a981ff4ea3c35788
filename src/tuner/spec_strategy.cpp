#include <cmath>

#include "tuner/strategy.h"

namespace rutter::tuner {
namespace {

class FullStrategy : public Strategy {
 public:
  explicit FullStrategy(knobs::Expression e) : expression_(std::move(e)) { count_ = expression_.fullCount().small(); }
  const char* name() const override { return "full"; }
  std::optional<Ask> ask() override {
    if (count_ && next_ >= *count_) return std::nullopt;
    return Ask{expression_.full(next_++).print(), 1};
  }
  void tell(const Tell&) override {}
  std::optional<uint64_t> planned() const override { return count_; }

 private:
  knobs::Expression expression_;
  std::optional<uint64_t> count_;
  uint64_t next_ = 0;
};

// fast, and mixed: whose first phase is fast.
class FastStrategy : public Strategy {
 public:
  FastStrategy(knobs::Expression e, bool mixed) : expression_(std::move(e)), mixed_(mixed) {}
  const char* name() const override { return mixed_ ? "mixed" : "fast"; }

  std::optional<Ask> ask() override {
    if (next_ < expression_.fastCount()) return Ask{expression_.fast(next_++).print(), 1};
    if (!mixed_) return std::nullopt;
    if (!two_) beginPhaseTwo();
    std::optional<knobs::PhaseTwo::Item> item = two_->runs() ? two_->next() : std::nullopt;
    if (!item) return std::nullopt;
    return Ask{item->route.print(), 2};
  }

  void tell(const Tell& t) override {
    if (told_.size() < expression_.fastCount()) told_.push_back(t);
  }

  std::optional<uint64_t> planned() const override {
    if (!two_) return expression_.fastCount();
    const auto second = two_->count().small();
    if (!second) return std::nullopt;
    return expression_.fastCount() + (two_->runs() ? *second : 0);
  }

 private:
  // Positive: ok, accurate, and faster than the baseline beyond the noise of both.
  static bool faster(const Tell& t, const Tell& baseline) {
    if (t.status != Status::kOk || t.logRatios.size() < 5) return false;
    const double bar = baseline.logRatios.size() < 5 ? 0 : medianInterval(baseline.logRatios, 1.0 / 32).hi;
    std::vector<double> relative;
    for (double r : t.logRatios) relative.push_back(r - bar);
    return rankFaster(relative);
  }

  void beginPhaseTwo() {
    std::vector<knobs::Positive> positives;
    Json names = Json::array();
    const bool baselineOk = !told_.empty() && told_[0].status == Status::kOk && !told_[0].logRatios.empty();
    for (size_t i = 1; baselineOk && i < told_.size(); i++) {
      if (!faster(told_[i], told_[0])) continue;
      positives.push_back({i, std::exp(median(told_[i].logRatios) - median(told_[0].logRatios))});
      names.push_back({{"iter", i}, {"gain", positives.back().gain}});
    }
    two_.emplace(expression_, positives);
    Json varied = Json::array(), left = Json::array();
    for (size_t t : two_->varied()) varied.push_back(expression_.tokens()[t].text);
    for (size_t t : two_->leftOut()) left.push_back(expression_.tokens()[t].text);
    std::string text;
    if (!baselineOk)
      text = "mixed: the baseline failed or is inaccurate, so nothing is positive and there is no second phase";
    else if (!two_->runs())
      text = fmt::format("mixed: {} positive knob{}, no second phase (it needs two)", varied.size(),
                         varied.size() == 1 ? "" : "s");
    else
      text = fmt::format("mixed: second phase varies {} positive knobs together: {} more routes", varied.size(),
                         two_->count().print());
    if (!left.empty())
      text += fmt::format("; left out beyond the largest {}: {}", knobs::PhaseTwo::kMaxKnobs, left.dump());
    events_.push_back(
        {{"event", "phase2"}, {"text", text}, {"positives", names}, {"varied", varied}, {"left_out", left}});
  }

  knobs::Expression expression_;
  bool mixed_;
  size_t next_ = 0;
  std::vector<Tell> told_;
  std::optional<knobs::PhaseTwo> two_;
};

}  // namespace

std::unique_ptr<Strategy> makeSpecStrategy(SearchKind kind, knobs::Expression e) {
  RUTTER_CHECK(kind <= SearchKind::kMixed, "{} is no spec strategy", searchName(kind));
  if (kind == SearchKind::kFull) return std::make_unique<FullStrategy>(std::move(e));
  return std::make_unique<FastStrategy>(std::move(e), kind == SearchKind::kMixed);
}

}  // namespace rutter::tuner
