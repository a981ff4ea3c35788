#include "tuner/watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "tuner/measure.h"
#include "tuner/process.h"

namespace rutter::tuner {
namespace {
// A child's code is not to be trusted with our memory: kernels and times are far smaller.
constexpr uint64_t kMostFromChild = 256u << 20;
}  // namespace

Json toJson(const Limits& l) {
  return {{"build", l.build}, {"start", l.start}, {"run", l.run}, {"memory", l.memory}};
}

Limits limitsFromJson(const Json& j) {
  return {j.at("build"), j.at("start"), j.at("run"), j.at("memory")};
}

Watched watch(pid_t pid, int fd, const Limits& limits, int alsoReadable, const std::function<bool()>& interrupted) {
  SteadyClock clock;
  Watched w;
  const char* doing = "building";
  double limit = limits.build, since = clock.now(), looked = 0;
  pid_t visible = 0;  // its number in /proc, which may differ from ours in a PID namespace
  bool reaped = false, closed = false;
  int status = 0;
  auto reap = [&](int flags) {
    if (reaped) return true;
    pid_t r;
    while ((r = waitpid(pid, &status, flags)) < 0 && errno == EINTR) {
    }
    return reaped = r == pid || (r < 0 && errno == ECHILD);
  };
  auto fail = [&](Status s, std::string text) {
    w.status = s;
    w.text = std::move(text);
  };
  while (true) {
    if (interrupted()) {
      fail(Status::kInterrupted, "interrupted");
      break;
    }
    if (limits.memory > 0 && visible > 0 && clock.now() - looked > 0.05) {
      looked = clock.now();
      if (residentBytes(visible) > limits.memory) {
        fail(Status::kCrashed, fmt::format("held more than {} MiB while {}", limits.memory >> 20, doing));
        break;
      }
    }
    Frame f;
    Wait got = Wait::kClosed;
    try {
      if (!closed)
        got = receiveFrame(fd, reaped ? 0 : 0.1, f, alsoReadable, {.maxBlob = kMostFromChild});
      else
        usleep(2000);
    } catch (const std::exception& e) {
      fail(Status::kCrashed, fmt::format("{} while {}", e.what(), doing));
      break;
    }
    if (got == Wait::kFrame) {
      since = clock.now();
      switch (f.type) {
        case FrameType::kHello:
          if (auto it = f.body.find("proc"); it != f.body.end() && it->is_number_integer()) visible = it->get<int>();
          break;
        case FrameType::kBuilt:
          doing = "loading", limit = limits.start;
          break;
        case FrameType::kLoaded:
          doing = "running", limit = limits.run;
          break;
        case FrameType::kKernels:
          w.kernels = std::move(f.blob);
          break;
        case FrameType::kEnd:
          w.end = std::move(f.body);
          break;
        case FrameType::kError:
          w.error = std::move(f.body);
          break;
        default:
          break;
      }
      if (w.end || w.error) break;
      continue;
    }
    if (got == Wait::kClosed) closed = true;
    // What it wrote before it died is read first.
    if (reaped && got != Wait::kFrame) {
      if (WIFSIGNALED(status))
        fail(Status::kCrashed, fmt::format("killed by {} while {}", signalText(WTERMSIG(status)), doing));
      else
        fail(Status::kCrashed, fmt::format("exited with status {} while {}", WEXITSTATUS(status), doing));
      break;
    }
    reap(WNOHANG);
    if (reaped) continue;
    if (clock.now() - since > limit) {
      fail(Status::kHung, fmt::format("no sign of life for {:.3g} s while {}", limit, doing));
      break;
    }
  }
  // A good end gets a moment to leave by itself; whatever it started goes with it.
  for (int i = 0; (w.end || w.error) && i < 200 && !reap(WNOHANG); i++) usleep(i < 20 ? 500 : 5000);
  ::kill(-pid, SIGKILL);
  if (!reaped) ::kill(pid, SIGKILL);
  reap(0);
  return w;
}

}  // namespace rutter::tuner
