// The host's side: starts the supervisor, asks and listens.
#include "tuner/tune.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "tuner/cache.h"
#include "tuner/frames.h"
#include "tuner/process.h"
#include "tuner/wire.h"

namespace rutter::tuner {
namespace {

void dispatch(const Json& j, TuneListener& listener, HostStrategy* strategy, int fd) {
  const std::string event = j.at("event");
  const Json& body = j.at("body");
  if (event == "begin") listener.onBegin(body.at("iter"), body.at("route"));
  if (event == "end") listener.onEnd(infoFromJson(body));
  if (event == "progress") listener.onProgress(progressFromJson(body));
  if (event == "ask") {
    const std::optional<std::string> route = strategy ? strategy->ask() : std::nullopt;
    sendFrame(fd, FrameType::kAnswer, {{"route", route ? Json(*route) : Json(nullptr)}});
  }
  if (event == "tell" && strategy) strategy->tell(infoFromJson(body));
  if (event == "message") listener.onMessage(body.at("severity"), body.at("text"));
}

// " (killed by signal 9 (killed))", "" if it cannot be told.
std::string howItEnded(Process& p) {
  int status = 0;
  for (int i = 0; i < 100; i++, usleep(10000)) {
    if (waitpid(p.pid, &status, WNOHANG) != p.pid) continue;
    p.pid = -1;
    if (WIFSIGNALED(status)) return fmt::format(" (killed by {})", signalText(WTERMSIG(status)));
    return fmt::format(" (exit status {})", WEXITSTATUS(status));
  }
  return "";
}

void check(const TuneOptions& o) {
  if (o.model.path.empty() && o.model.bytes.empty()) throw UserError("tuning needs a model");
  if (o.cacheFile.empty()) throw UserError("tuning needs a cache file");
  if (o.saveAllEngines && o.saveEngine.empty()) throw UserError("--saveAllEngines needs --saveEngine");
  if (o.search != SearchKind::kTune && o.expression.empty() && !o.resume) throw UserError("tuning needs an expression");
  if (!(o.accuracy.threshold >= 0) || !(o.accuracy.atol >= 0) || !(o.accuracy.rtol >= 0))
    throw UserError("accuracy threshold and tolerances must not be negative");
  bool references = false;
  for (const IoPair& p : o.pairs) references |= !p.refOutputs.empty();
  if (references && !(o.accuracy.threshold > 0)) throw UserError("--loadRefOutputs needs --accuracyThreshold above 0");
  // Beside a link is another place than where it leads.
  std::vector<std::string> written = {o.cacheFile, o.cacheFile + ".journal"};
  if (!o.saveEngine.empty()) written.push_back(o.saveEngine);
  if (o.saveAllEngines) written.push_back(o.saveEngine + ".iter0");
  for (const std::string& path : written) {
    if (const std::string why = whyUnwritable(path); !why.empty()) throw UserError("cannot write {}: {}", path, why);
  }
  if (const char* what = notAFile(o.saveEngine); *what)
    throw UserError("cannot write {}: it is {}; the winner of a search is read again, so it needs a file", o.saveEngine,
                    what);
  checkRecordFiles(o.cacheFile);
}

}  // namespace

TuneResult tune(const TuneOptions& options, TuneListener& listener, const std::atomic<int>* stop,
                HostStrategy* strategy) {
  check(options);
  if ((options.search == SearchKind::kUser) != (strategy != nullptr))
    throw UserError("a search by a strategy of one's own needs one, and others take none");
  const std::string program = options.workerProgram.empty() ? findWorkerProgram() : options.workerProgram;
  Process supervisor = spawnFromHost(program, {"supervisor"});
  struct End {
    Process& p;
    // The supervisor ends by itself when it has answered or when we are gone; its workers die with it.
    ~End() {
      if (p.fd >= 0) ::close(p.fd);
      if (p.pid <= 0) return;
      for (int i = 0; i < 500; i++) {
        if (waitpid(p.pid, nullptr, WNOHANG) != 0) return;
        usleep(10000);
      }
      ::kill(p.pid, SIGKILL);
      waitpid(p.pid, nullptr, 0);
    }
  } end{supervisor};

  sendFrame(supervisor.fd, FrameType::kHello, {{"options", toJson(options)}}, options.model.bytes);
  int told = 0;
  bool begun = false;  // candidates, be they recorded
  while (true) {
    if (const int level = stop ? stop->load() : 0; level > told) {
      told = level;
      if (level == 1)
        listener.onMessage(int(Severity::kInfo),
                           begun ? "stopping: the best so far is confirmed; stop again to end at once"
                           : options.resume
                               ? "stopping: the best that is recorded is confirmed; stop again to end at once"
                               : "stopping: no candidate has been tried yet, so there is nothing to confirm");
      sendFrame(supervisor.fd, FrameType::kStop, {{"level", level}});
    }
    Frame f;
    switch (receiveFrame(supervisor.fd, 0.05, f)) {
      case Wait::kTimeout:
        continue;
      case Wait::kClosed:
        throw DeviceError(
            "the tuner's supervisor ended unexpectedly{}; nothing is lost: run again with --continue "
            "--tuningCacheFile={}",
            howItEnded(supervisor), options.cacheFile);
      case Wait::kFrame:
        break;
    }
    if (f.type == FrameType::kEvent) {
      const std::string event = f.body.at("event");
      begun |= event == "begin";
      if (event == "progress") {
        const std::string phase = f.body.at("body").at("phase");
        begun |= phase != "baseline" && phase != "kernels";
      }
      dispatch(f.body, listener, strategy, supervisor.fd);
    }
    if (f.type == FrameType::kError) rethrowError(f.body);
    if (f.type == FrameType::kEnd) return resultFromJson(f.body);
  }
}

}  // namespace rutter::tuner
