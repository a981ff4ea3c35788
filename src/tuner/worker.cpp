#include "tuner/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "tuner/candidate.h"
#include "tuner/hook.h"
#include "tuner/journal.h"
#include "tuner/process.h"
#include "tuner/watch.h"

namespace rutter::tuner {
namespace {

constexpr int kSocket = 3;
// Seconds in which all kernels of the default, or those that a route adds, must have been timed.
constexpr double kPrepareTimes = 1500, kRouteTimes = 600;

pid_t numberInProc() {
  char text[32] = {};
  return readlink("/proc/self", text, sizeof text - 1) > 0 ? pid_t(atoi(text)) : 0;
}

// Runs `body` in a forked child that talks to this process; the child ends by _exit whatever happens.
Watched inChild(const Limits& limits, int supervisor, const std::function<void(int fd)>& body) {
  assertSingleThreaded();
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    throw DeviceError("socketpair: {}", strerror(errno));
  const pid_t me = getpid();
  hook("fork.before");
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    ::close(fds[0]), ::close(fds[1]);
    throw DeviceError("fork: {}", strerror(error));
  }
  if (pid == 0) {
    becomeChild(me);
    hook("child");
    ::close(fds[0]);
    ::close(supervisor);
    try {
      sendFrame(fds[1], FrameType::kHello, {{"proc", numberInProc()}});
      body(fds[1]);
    } catch (const std::exception& e) {
      try {
        sendException(fds[1], e);
      } catch (...) {
        // nobody listens any more
      }
    } catch (...) {
      // who watches sees an end without an answer
    }
    _exit(0);
  }
  setpgid(pid, pid);
  hook("fork.after");
  ::close(fds[1]);
  bool stop = false;
  Watched w = watch(pid, fds[0], limits, supervisor, [&] {
    Frame f;
    if (!stop) switch (receiveFrame(supervisor, 0, f)) {
        case Wait::kClosed:
          stop = true;
          break;
        case Wait::kFrame:
          stop = f.type == FrameType::kStop;
          break;
        case Wait::kTimeout:
          break;
      }
    return stop;
  });
  ::close(fds[0]);
  killDescendants();
  return w;
}

Say sayTo(int fd) {
  return [fd](const char* step, const Json& body) {
    const std::string s = step;
    sendFrame(fd, s == "built" ? FrameType::kBuilt : s == "loaded" ? FrameType::kLoaded : FrameType::kSamples, body);
  };
}

class Worker {
 public:
  Worker(int fd, std::unique_ptr<Backend> backend) : fd_(fd), backend_(std::move(backend)) {}

  void run() {
    Frame f;
    if (receiveFrame(fd_, -1, f) != Wait::kFrame) return;
    judge_ = judgeFromJson(f.body.at("judge"));
    folder_ = f.body.at("folder");
    oracle_ = f.body.at("oracle");
    backend_->prepare(f.body.at("options"));
    // A worker that replaces another has the inputs of the one before.
    if (::access((folder_ + "/draw").c_str(), R_OK) == 0)
      backend_->otherInputs(std::stoi(readWholeFile(folder_ + "/draw")));
    if (Watched w = measureTimes("", kPrepareTimes); w.status != Status::kOk)
      throw DeviceError("timing kernels for the default engine: {}", w.text);
    else if (w.error)
      rethrowError(*w.error);
    backend_->buildDefault();
    backend_->writeDefault(folder_ + "/default.engine");
    readReference();
    Json about = backend_->describe();
    about["rss"] = residentBytes(numberInProc());
    sendFrame(fd_, FrameType::kReady, about);
    while (receiveFrame(fd_, -1, f) == Wait::kFrame) {
      try {
        answer(f);
      } catch (const std::exception& e) {
        sendException(fd_, e);
      }
    }
  }

 private:
  void answer(const Frame& f) {
    if (f.type == FrameType::kDecide) {
      Decision d;
      try {
        const Watched w = measureTimes(f.body.at("route"), kRouteTimes);
        if (w.error) rethrowError(*w.error);
        if (w.status != Status::kOk) {
          d.status = w.status;
          d.error = w.text + " while timing kernels";
          return decided(d);
        }
        d = backend_->decide(f.body.at("route"));
      } catch (const UserError& e) {
        d.status = Status::kRejected;
        d.error = e.what();
      }
      decided(d);
    }
    if (f.type == FrameType::kTime) timeKernels(f.body);
    if (f.type == FrameType::kBuild) {
      if (f.body.value("baseline", false))
        baseline(f.body);
      else
        candidate(f.body);
    }
  }

  void decided(const Decision& d) {
    sendFrame(fd_, FrameType::kDecided,
              {{"status", statusName(d.status)},
               {"error", d.error},
               {"hash", d.hash},
               {"knobs_read", d.knobsRead},
               {"no_effect", d.lostWishes}});
  }

  // Kernels run in a child; only their times come back.
  Watched measureTimes(const std::string& route, double seconds) {
    if (!backend_->decidesByTime()) return {};
    Watched w = inChild({seconds, seconds, seconds, 0}, fd_, [&](int fd) {
      if (std::string times = backend_->measureTimes(route); !times.empty())
        sendFrame(fd, FrameType::kKernels, Json::object(), std::move(times));
      sendFrame(fd, FrameType::kEnd);
    });
    if (w.end && !w.kernels.empty()) backend_->admitTimes(w.kernels);
    return w;
  }

  void timeKernels(const Json& task) {
    const double most = task.at("limit");
    Watched w = inChild({most, most, most, 0}, fd_, [&](int fd) {
      const auto seconds = task.at("seconds").get<std::map<std::string, double>>();
      sendFrame(fd, FrameType::kEnd, {{"status", "ok"}, {"route", backend_->timedRoute(seconds)}});
    });
    reply(w);
  }

  void baseline(const Json& task) {
    Watched w = inChild(limitsFromJson(task.at("limits")), fd_, [&](int fd) {
      Reference reference;
      const BaselineRecord r =
          runBaseline(*backend_, judge_, folder_ + "/default.engine", oracle_, reference, sayTo(fd));
      for (size_t s = 0; s < reference.truth.size(); s++) {
        replaceFile(fmt::format("{}/truth{}", folder_, s), packTensors(reference.truth[s]));
        replaceFile(fmt::format("{}/standard{}", folder_, s), packTensors(reference.standard[s]));
      }
      replaceFile(folder_ + "/inputs", packTensors(backend_->inputs()[0]));
      if (r.inputs > 0) replaceFile(folder_ + "/draw", std::to_string(r.inputs));
      sendFrame(fd, FrameType::kEnd, toJson(r));
    });
    if (w.end) {
      if (const int draw = w.end->value("inputs", 0); draw > 0) backend_->otherInputs(draw);
      readReference();
    }
    reply(w);
  }

  void candidate(const Json& task) {
    const int64_t iter = task.at("iter");
    const std::string route = task.at("route");
    Watched w = inChild(limitsFromJson(task.at("limits")), fd_, [&](int fd) {
      const std::string path = fmt::format("{}/{}.engine", folder_, iter);
      JudgeOptions judge = judge_;
      judge.rank.promise = task.at("promise");
      // Serialised and checksummed before any of the candidate's code runs.
      std::string kernels;
      const Say tell = sayTo(fd);
      const Say say = [&](const char* step, const Json& body) {
        if (std::string(step) == "built") kernels = backend_->newKernels();
        tell(step, body);
      };
      const CandidateRecord r =
          runCandidate(*backend_, judge, reference_, folder_ + "/default.engine", route, task.at("luck"), path, say);
      if (r.status == Status::kOk && !kernels.empty())
        sendFrame(fd, FrameType::kKernels, Json::object(), std::move(kernels));
      sendFrame(fd, FrameType::kEnd, toJson(r));
    });
    backend_->forgetDecision();
    // Nothing that a candidate's process says may end the search, but that there is no room for its engine: the next
    // one would fare no better.
    try {
      if (w.error && w.error->value("kind", "") != "disk") {
        const bool user = w.error->value("kind", "") == "user";
        w.end = Json{{"status", user ? "rejected" : "crashed"}, {"error_message", w.error->value("text", "")}};
        w.error.reset();
      }
      // Kernels of a candidate that did not end well are not trusted.
      if (w.end && w.end->value("status", "") == "ok" && !w.kernels.empty()) backend_->admitKernels(w.kernels);
    } catch (const std::exception& e) {
      w.error.reset();
      w.end = Json{{"status", "crashed"}, {"error_message", fmt::format("its process sent nonsense: {}", e.what())}};
    }
    if (w.error || !w.end || w.end->value("status", "") != "ok")
      ::unlink(fmt::format("{}/{}.engine", folder_, iter).c_str());
    reply(w);
  }

  void reply(const Watched& w) {
    if (w.error) return sendFrame(fd_, FrameType::kError, *w.error);
    Json j = w.end ? *w.end : Json{{"status", statusName(w.status)}, {"error_message", w.text}};
    j["rss"] = residentBytes(numberInProc());
    sendFrame(fd_, FrameType::kEnd, j);
  }

  void readReference() {
    reference_ = {};
    for (size_t s = 0; s < backend_->inputs().size(); s++) {
      const std::string truth = fmt::format("{}/truth{}", folder_, s),
                        standard = fmt::format("{}/standard{}", folder_, s);
      if (::access(truth.c_str(), R_OK) != 0) return;
      reference_.truth.push_back(unpackTensors(readWholeFile(truth)));
      reference_.standard.push_back(unpackTensors(readWholeFile(standard)));
    }
  }

  int fd_;
  std::unique_ptr<Backend> backend_;
  JudgeOptions judge_;
  std::string folder_, oracle_;
  Reference reference_;
};

// One fresh process for one measurement.
void measureOnce(int fd, Backend& backend) {
  Frame f;
  if (receiveFrame(fd, 30, f) != Wait::kFrame) return;
  hook("child");
  sendFrame(fd, FrameType::kHello, {{"proc", numberInProc()}});
  const Tensors inputs = unpackTensors(readWholeFile(f.body.at("inputs")));
  sendFrame(fd, FrameType::kBuilt);
  const SampleRecord r = runSample(backend, judgeFromJson(f.body.at("judge")), f.body.at("standard"),
                                   f.body.at("engine"), inputs, f.body.at("swap"), f.body.at("luck"), sayTo(fd));
  hook("answer.before");
  sendFrame(fd, FrameType::kEnd, toJson(r));
  hook("answer.after");
}

}  // namespace

int workerMain(int argc, char** argv, const BackendFactory& makeBackend) {
  const std::string mode = argc == 2 ? argv[1] : "";
  if (mode != "supervisor" && mode != "worker" && mode != "measure") {
    fprintf(stderr, "%s: builds and measures candidates for rutter's tuner, which starts it; it is of no use by hand\n",
            argc > 0 ? argv[0] : "rutter-worker");
    return 1;
  }
  if (fcntl(kSocket, F_GETFD) < 0) {
    fprintf(stderr, "%s %s: must be started by rutter's tuner (no socket at descriptor 3)\n", argv[0], argv[1]);
    return 1;
  }
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  signal(SIGXFSZ, SIG_IGN);  // beyond a limit of file sizes a write fails, as on a full disk, and that is said
  try {
    if (mode == "supervisor") {
      char self[4096] = {};
      if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
      return superviseMain(kSocket, self, makeBackend);
    }
    becomeWorker();
    std::unique_ptr<Backend> backend = makeBackend();
    if (mode == "measure")
      measureOnce(kSocket, *backend);
    else
      Worker(kSocket, std::move(backend)).run();
    fflush(nullptr);
    _exit(0);  // candidate code has run in a measuring process: its destructors are not to be trusted
  } catch (const std::exception& e) {
    try {
      sendException(kSocket, e);
    } catch (...) {
      // the supervisor is gone
    }
    fflush(nullptr);
    _exit(1);
  }
}

}  // namespace rutter::tuner
