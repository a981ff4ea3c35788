#pragma once
// Waiting for a process that may crash, hang, leak, lie or hold on to its socket.
#include <functional>
#include <optional>
#include <string>

#include "tuner/frames.h"

namespace rutter::tuner {

/// Seconds that may pass between two signs of life, by what the process is at; bytes that it may hold.
struct Limits {
  double build = 120, start = 60, run = 60;
  int64_t memory = 0;  ///< resident bytes, 0 = no limit
};
Json toJson(const Limits& l);
Limits limitsFromJson(const Json& j);

struct Watched {
  std::optional<Json> end;      ///< body of its kEnd
  std::optional<Json> error;    ///< body of its kError
  std::string kernels;          ///< blob of its kKernels
  Status status = Status::kOk;  ///< kCrashed, kHung or kInterrupted if there is no end
  std::string text;             ///< why
};
/// Reads frames of process `pid` until it ends; then kills its process group and reaps it. `interrupted` is asked at
/// least every 100 ms (and whenever `alsoReadable` has something); true ends the process.
Watched watch(pid_t pid, int fd, const Limits& limits, int alsoReadable, const std::function<bool()>& interrupted);

}  // namespace rutter::tuner
