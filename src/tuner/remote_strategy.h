#pragma once
// A strategy that lives in the host process, seen from the supervisor: questions and answers travel over frames.
#include <functional>
#include <memory>

#include "tuner/strategy.h"

namespace rutter::tuner {

/// `ask`: the host's answer ({"route": text or null}), or nothing if it is gone or wants to stop. `tell`: takes a
/// CandidateInfo as JSON. A strategy that only repeats itself is ended.
std::unique_ptr<Strategy> makeRemoteStrategy(std::string name, std::function<std::optional<Json>()> ask,
                                             std::function<void(const Json&)> tell);

}  // namespace rutter::tuner
