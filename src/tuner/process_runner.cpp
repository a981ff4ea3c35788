#include "tuner/process_runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "tuner/frames.h"
#include "tuner/journal.h"

namespace rutter::tuner {
namespace {

constexpr int kWorkerCandidates = 200;
constexpr double kWorkerGrowth = 1.5;
// Preparing a model and its oracle may take long; a user's own limits are for candidates.
constexpr double kPrepareSeconds = 1800;

}  // namespace

ProcessRunner::ProcessRunner(RunnerOptions options, std::unique_ptr<Backend> checker, std::function<bool(Work)> hurry,
                             int listenTo)
    : o_(std::move(options)), checker_(std::move(checker)), hurry_(std::move(hurry)), listenTo_(listenTo) {}

ProcessRunner::~ProcessRunner() {
  destroy(worker_);
}

void ProcessRunner::begin(Work work) {
  if (work == Work::kWinner && work_ != work) winnerSince_ = monotonicSeconds();
  work_ = work;
}

// A name that is shorter is worth a share of the budget, or what building it takes, beside a worker that is prepared.
bool ProcessRunner::hurried() const {
  if (hurry_(work_)) return true;
  if (work_ != Work::kWinner || o_.winnerSeconds <= 0) return false;
  const double build = prepareSeconds_ + baseline_.buildMs / 1000 + baseline_.runSeconds;
  return monotonicSeconds() - winnerSince_ > std::max(o_.winnerSeconds, 5 + 2 * build);
}

const Json& ProcessRunner::about() {
  if (worker_.pid > 0) return about_;
  SteadyClock clock;
  double from = 0;
  const Answer a = onceMore([&] {
    from = clock.now();
    worker_ = spawnWorker(o_.program, {"worker"}, o_.folder + "/log");
    candidates_ = 0;
    return request(FrameType::kHello,
                   {{"options", o_.options}, {"judge", toJson(o_.judge)}, {"folder", o_.folder}, {"oracle", o_.oracle}},
                   kPrepareSeconds);
  });
  if (a.status == Status::kInterrupted) throw InterruptedError("the default engine");
  if (a.status != Status::kOk) throw DeviceError("building the default engine: {}", a.text);
  about_ = a.body;
  firstSize_ = about_.value("rss", int64_t(0));
  prepareSeconds_ = clock.now() - from;
  return about_;
}

ProcessRunner::Answer ProcessRunner::request(FrameType type, Json body, double seconds) {
  SteadyClock clock;
  const double deadline = clock.now() + seconds;
  bool asked = false;
  Answer a;
  try {
    sendFrame(worker_.fd, type, std::move(body));
    while (true) {
      if (hurried() && !asked) {
        asked = true;
        sendFrame(worker_.fd, FrameType::kStop);
        // A worker that is preparing or deciding does not listen: it is not waited for.
        if (type != FrameType::kBuild && type != FrameType::kTime) {
          destroy(worker_);
          return {Status::kInterrupted, "interrupted", {}};
        }
      }
      Frame f;
      const Wait got = receiveFrame(worker_.fd, 0.1, f, asked ? -1 : listenTo_);
      if (got == Wait::kFrame && f.type == FrameType::kError) rethrowError(f.body);
      if (got == Wait::kFrame) {
        a.body = std::move(f.body);
        return a;
      }
      if (got == Wait::kClosed) {
        destroy(worker_);
        return {Status::kCrashed, "the worker died", {}};
      }
      if (clock.now() > deadline) {
        destroy(worker_);
        return {Status::kHung, fmt::format("the worker gave no answer for {:.3g} s", seconds), {}};
      }
    }
  } catch (const DiskFullError& e) {  // no fault of a candidate
    throw DiskFullError("{}, or choose another folder for the search (--tempdir)", e.what());
  } catch (const DeviceError& e) {
    if (worker_.pid <= 0) throw;
    Frame f;  // what it said before it died
    try {
      while (receiveFrame(worker_.fd, 0, f) == Wait::kFrame)
        if (f.type == FrameType::kError) break;
    } catch (const DeviceError&) {
      // closed: it said nothing
    }
    destroy(worker_);
    if (f.type == FrameType::kError) rethrowError(f.body);
    return {Status::kCrashed, e.what(), {}};
  }
}

// A build runs in a child of the worker: if that dies it is most likely not the build's doing.
ProcessRunner::Answer ProcessRunner::requestBuild(const Json& task, double seconds) {
  return onceMore([&] {
    about();
    return request(FrameType::kBuild, task, seconds);
  });
}

Limits ProcessRunner::limits() const {
  Limits l;
  const double run = baseline_.ms.value_or(100) / 1000;
  l.build = o_.buildTimeOut > 0 ? o_.buildTimeOut : 20 + 20 * baseline_.buildMs / 1000;
  l.start = o_.runTimeOut > 0 ? o_.runTimeOut : 20 + 20 * baseline_.runSeconds;
  l.run = o_.runTimeOut > 0 ? o_.runTimeOut : 10 + 1000 * run;  // a sign of life comes after each round of some 16 runs
  // A candidate shares the worker's memory and may need several times the default's own.
  l.memory = std::max<int64_t>(firstSize_ * 4, firstSize_ + (int64_t(2) << 30));
  const int64_t machine = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  l.memory = std::min(l.memory, machine / 10 * 8);
  return l;
}

BaselineRecord ProcessRunner::baseline() {
  begin(Work::kPrepare);
  measureBaseline();
  if (haveBaseline_ && o_.timeKernels > 0) timeKernels();
  return baseline_;
}

void ProcessRunner::measureBaseline() {
  const Limits l{kPrepareSeconds, kPrepareSeconds, 300, 0};
  baseline_ = onceMore([&] {  // nothing goes on without it
    const Answer a = requestBuild({{"baseline", true}, {"limits", toJson(l)}}, 3 * kPrepareSeconds);
    if (a.status == Status::kOk) return baselineFromJson(a.body);
    BaselineRecord none;
    none.status = a.status;
    none.error = a.text;
    return none;
  });
  haveBaseline_ = baseline_.status == Status::kOk || baseline_.status == Status::kInaccurate;
}

// A start for the search, which does without if anything goes wrong: a layer gets its share of the time.
void ProcessRunner::timeKernels() {
  double total = 0;
  for (const LayerTime& l : baseline_.layers) total += l.ms;
  std::map<std::string, double> seconds;
  for (const LayerTime& l : baseline_.layers)
    if (!l.origins.empty() && total > 0) seconds[l.origins.front()] += o_.timeKernels * l.ms / total;
  o_.phase("kernels");
  const double limit = 1.5 * o_.timeKernels + 5;
  try {
    const Answer a = request(FrameType::kTime, {{"seconds", seconds}, {"limit", limit}}, limit + 10);
    if (a.status == Status::kOk && a.body.value("status", "") == "ok") baseline_.timedRoute = a.body.value("route", "");
  } catch (const std::exception& e) {
    logWarning("kernels cannot be timed alone: {}", e.what());
  }
}

// After a restart the recorded baseline counts, but its engine and outputs are needed again: for what is being done, so
// that they may take as long as that.
void ProcessRunner::needBaseline() {
  if (haveBaseline_) {
    about();
    return;
  }
  const Work work = work_;
  if (work == Work::kWinner) begin(Work::kSave);  // what it takes to begin is not the winner's time
  measureBaseline();
  begin(work);
  if (baseline_.status == Status::kInterrupted) throw InterruptedError("the default engine");
  if (!haveBaseline_) throw UserError("the default route does not run any more: {}", baseline_.error);
}

Decision ProcessRunner::decide(const std::string& route, Purpose purpose) {
  begin(purpose == Purpose::kWinner ? Work::kWinner : Work::kCandidate);
  SteadyClock clock;
  double from = 0;
  const Answer a = onceMore([&]() -> Answer {
    try {
      about();  // a worker that is replaced prepares again
    } catch (const InterruptedError&) {
      return {Status::kInterrupted, "interrupted", {}};
    }
    from = clock.now();
    return request(FrameType::kDecide, {{"route", route}}, o_.decideSeconds);
  });
  if (a.status != Status::kOk) return {a.status, a.text + " while deciding", "", {}, {}, 0};
  using Strings = std::vector<std::string>;
  return {parseStatus(a.body.at("status")),
          a.body.at("error"),
          a.body.at("hash"),
          a.body.at("knobs_read").get<Strings>(),
          a.body.at("no_effect").get<Strings>(),
          clock.now() - from};
}

uint64_t ProcessRunner::luck(const std::string& what) const {
  return hashBytes(fmt::format("{} {}", o_.seed, what)).lo;
}

std::string ProcessRunner::enginePath(int64_t iter) const {
  return iter < 0 ? o_.folder + "/default.engine" : fmt::format("{}/{}.engine", o_.folder, iter);
}

CandidateRecord ProcessRunner::candidate(int64_t iter, const std::string& route, double promise) {
  for (int64_t loser : losers_) ::unlink(enginePath(loser).c_str());
  losers_.clear();
  begin(Work::kCandidate);
  return build(iter, route, promise);
}

CandidateRecord ProcessRunner::rebuild(int64_t iter, const std::string& route) {
  begin(Work::kWinner);
  return build(iter, route, 1e9);
}

CandidateRecord ProcessRunner::build(int64_t iter, const std::string& route, double promise) {
  try {
    needBaseline();
  } catch (const InterruptedError&) {
    CandidateRecord r;
    r.status = Status::kInterrupted;
    return r;
  }
  const Limits l = limits();
  const Json task = {
      {"iter", iter}, {"route", route}, {"luck", luck(route)}, {"promise", promise}, {"limits", toJson(l)}};
  Answer a;
  try {
    a = requestBuild(task, l.build + l.start + 20 * l.run + 60);
  } catch (const InterruptedError&) {
    a = {Status::kInterrupted, "interrupted", {}};
  }
  CandidateRecord r;
  if (a.status == Status::kOk) {
    r = candidateFromJson(a.body);
  } else {
    r.status = a.status;
    r.error = a.text;
  }
  r.iter = iter;
  r.route = route;
  // What is slower than the default will not be asked for again.
  if (!o_.keepAll && !r.logRatios.empty() && median(r.logRatios) <= 0) losers_.push_back(iter);
  const int64_t size = a.body.is_object() ? a.body.value("rss", int64_t(0)) : 0;
  if (++candidates_ >= kWorkerCandidates || (firstSize_ > 0 && double(size) > kWorkerGrowth * double(firstSize_)))
    destroy(worker_);
  return r;
}

void ProcessRunner::needEngine(int64_t iter, const std::string& route) {
  const auto isThere = [&] { return ::access(enginePath(iter).c_str(), R_OK) == 0; };
  if (isThere()) return;  // no worker is needed
  needBaseline();
  if (iter < 0) {
    if (!isThere()) throw DeviceError("the default engine is gone from {}", o_.folder);
    return;
  }
  const CandidateRecord r = onceMore([&] { return build(iter, route, kNoPromise); });  // it has worked
  std::erase(losers_, iter);
  if (r.status == Status::kInterrupted) throw InterruptedError("an engine");
  if (r.status != Status::kOk)
    throw UserError("route '{}' was ok and is {} now: {}", route, statusName(r.status), r.error);
}

SampleRecord ProcessRunner::sample(int64_t iter, const std::string& route, const std::string& stage, int index) {
  SampleRecord r;
  begin(Work::kSample);
  try {
    needEngine(iter, route);
  } catch (const InterruptedError&) {
    r.status = Status::kInterrupted;
    return r;
  } catch (const UserError& e) {
    r.status = Status::kCrashed;
    r.error = e.what();
    return r;
  }
  Process p = spawnWorker(o_.program, {"measure"}, o_.folder + "/log");
  Watched w;
  try {
    JudgeOptions judge = o_.judge;
    judge.rank.maxRounds = sampleRounds(baseline_.ms.value_or(0) / 1000);
    sendFrame(p.fd, FrameType::kMeasure,
              {{"standard", enginePath(-1)},
               {"engine", enginePath(iter)},
               {"inputs", o_.folder + "/inputs"},
               {"judge", toJson(judge)},
               {"swap", index % 2 == 1},
               {"luck", luck(fmt::format("{} {} {}", route, stage, index))}});
    Limits l = limits();
    l.build = l.start;  // until it has read the engines
    l.memory = 0;
    w = watch(p.pid, p.fd, l, listenTo_, [this] { return hurried(); });
  } catch (const DeviceError& e) {
    w.status = Status::kCrashed;
    w.text = e.what();
  }
  destroy(p);
  if (w.end) return sampleFromJson(*w.end);
  r.status = w.error ? Status::kCrashed : w.status;
  r.error = w.error ? w.error->value("text", "") : w.text;
  return r;
}

std::string ProcessRunner::save(int64_t iter, const std::string& route, const std::string& path) {
  begin(Work::kSave);
  needEngine(iter, route);
  const std::string own = checker_->originOf(enginePath(iter)).route;
  RUTTER_CHECK(own == (iter < 0 ? "" : route), "engine {} is of route '{}', not '{}'", iter, own, route);
  const std::string bytes = checker_->wholeEngine(enginePath(iter));
  replaceFile(path, bytes);
  if (readWholeFile(path) != bytes) throw DeviceError("{} is not what was written to it", path);
  return checker_->hashOf(path);
}

std::string ProcessRunner::hashOf(const std::string& path) {
  try {
    return checker_->hashOf(path);
  } catch (const UserError&) {
    return "";
  }
}

// What a whole engine of this model was built of.
std::optional<EngineOrigin> ProcessRunner::ownOrigin(const std::string& path) {
  try {
    EngineOrigin o = checker_->originOf(path);
    const std::string model = about_.is_object() ? about_.value("model_hash", "") : "";
    if (o.modelHash.empty() || model.empty() || o.modelHash == model) return o;
  } catch (const UserError&) {  // none
  }
  return std::nullopt;
}

std::string ProcessRunner::routeOf(const std::string& path) {
  const std::optional<EngineOrigin> o = ownOrigin(path);
  return o ? o->route : "";
}

bool ProcessRunner::holds(const std::string& path, const CandidateRecord& c) {
  const std::optional<EngineOrigin> o = ownOrigin(path);
  if (!o || o->route != c.route) return false;
  if (!c.sameAs && !c.engineHash.empty()) return hashOf(path) == c.engineHash;
  return o->decision.empty() || c.decision.empty() || o->decision == c.decision;
}

void ProcessRunner::keepOnly(const std::vector<int64_t>& iters) {
  if (o_.keepAll) return;
  std::error_code error;
  for (const auto& e : std::filesystem::directory_iterator(o_.folder, error)) {
    const std::string name = e.path().filename().string();
    if (!name.ends_with(".engine") || name == "default.engine") continue;
    if (std::find(iters.begin(), iters.end(), std::strtoll(name.c_str(), nullptr, 10)) == iters.end())
      std::filesystem::remove(e.path(), error);
  }
}

}  // namespace rutter::tuner
