#include "tuner/remote_strategy.h"

#include <map>

#include "tuner/wire.h"

namespace rutter::tuner {
namespace {

// Known routes cost nothing to answer: a strategy that asks for nothing else would go on for ever.
constexpr int kRepeats = 1000;

class RemoteStrategy : public Strategy {
 public:
  RemoteStrategy(std::string name, std::function<std::optional<Json>()> ask, std::function<void(const Json&)> tell)
      : name_(std::move(name)), ask_(std::move(ask)), tell_(std::move(tell)) {}
  const char* name() const override { return name_.c_str(); }

  std::optional<Ask> ask() override {
    for (int repeats = 0; !ended_; repeats++) {
      const std::optional<Json> answer = ask_();
      if (!answer || answer->at("route").is_null()) break;
      current_ = answer->at("route");
      auto known = told_.find(current_);
      if (known == told_.end()) return Ask{current_, 1};
      if (repeats >= kRepeats) {
        events_.push_back(
            {{"event", "repeats"}, {"text", name_ + ": only routes that were tried already; the search ends"}});
        break;
      }
      tell_(known->second);
    }
    ended_ = true;
    return std::nullopt;
  }

  void tell(const Tell& t) override {
    CandidateInfo c;
    c.route = current_;
    c.status = t.status;
    c.error = t.error;
    c.milliseconds = t.ms;
    c.ranking = rankingOf(t.logRatios);
    tell_(told_[current_] = toJson(c));
  }

 private:
  std::string name_, current_;
  std::function<std::optional<Json>()> ask_;
  std::function<void(const Json&)> tell_;
  std::map<std::string, Json> told_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Strategy> makeRemoteStrategy(std::string name, std::function<std::optional<Json>()> ask,
                                             std::function<void(const Json&)> tell) {
  return std::make_unique<RemoteStrategy>(std::move(name), std::move(ask), std::move(tell));
}

}  // namespace rutter::tuner
