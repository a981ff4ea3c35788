// The supervisor: owns journal, cache, private folder and workers; runs the search; tells the host what happens.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/cpu.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/private_folder.h"
#include "tuner/accuracy.h"
#include "tuner/cache.h"
#include "tuner/frames.h"
#include "tuner/process_runner.h"
#include "tuner/remote_strategy.h"
#include "tuner/wire.h"
#include "tuner/worker.h"

namespace rutter::tuner {
namespace {

// Of a search's budget, and at most, for timing the hottest layers' kernels alone: their best is where --tune begins.
constexpr double kKernelSeconds = 60;
double kernelShare(double budget) {
  return budget < 120 ? 0.06 : 0.12;  // a short search has less to spare
}

std::string shellWord(const std::string& s) {
  if (!s.empty() && s.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%") ==
                        std::string::npos)
    return s;
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The host's stop frames, heard whenever somebody asks.
class Host {
 public:
  explicit Host(int fd) : fd_(fd) {}
  int stopLevel() {
    Frame f;
    while (level_ < 2) {
      const Wait w = receiveFrame(fd_, 0, f);
      if (w == Wait::kTimeout) break;
      if (w == Wait::kClosed)
        level_ = 2;  // the host is gone: what is known is in the journal
      else if (f.type == FrameType::kStop)
        level_ = std::max(level_, f.body.value("level", 1));
    }
    return level_;
  }
  // What the host's own strategy says next; nothing if it is gone or wants to stop.
  std::optional<Json> ask() {
    tell("ask", Json::object());
    Frame f;
    while (level_ == 0) {
      if (receiveFrame(fd_, -1, f) != Wait::kFrame)
        level_ = 2;
      else if (f.type == FrameType::kAnswer)
        return f.body;
      else if (f.type == FrameType::kStop)
        level_ = std::max(level_, f.body.value("level", 1));
    }
    return std::nullopt;
  }
  void tell(const char* what, Json body) {
    try {
      sendFrame(fd_, FrameType::kEvent, {{"event", what}, {"body", std::move(body)}});
    } catch (const DeviceError&) {
      level_ = 2;
    }
  }

 private:
  int fd_;
  int level_ = 0;
};

class HostListener : public TuneListener {
 public:
  explicit HostListener(Host& host) : host_(host) {}
  void onBegin(int64_t iter, const std::string& route) override {
    host_.tell("begin", {{"iter", iter}, {"route", route}});
  }
  void onEnd(const CandidateInfo& c) override { host_.tell("end", toJson(c)); }
  void onProgress(const Progress& p) override { host_.tell("progress", toJson(p)); }
  void onMessage(int severity, const std::string& text) override {
    host_.tell("message", {{"severity", severity}, {"text", text}});
  }

 private:
  Host& host_;
};

class WallPacer : public Pacer {
 public:
  WallPacer(Host& host, double used) : host_(host), start_(clock_.now() - used) {}
  double elapsed() override { return clock_.now() - start_; }
  int stopLevel() override { return host_.stopLevel(); }

 private:
  SteadyClock clock_;
  Host& host_;
  double start_;
};

Json shapesOf(const TuneOptions& o) {
  return {{"profiles", toJson(o)["profiles"]}, {"run", o.build.runShapes}};
}

// What else makes another default engine of the same model.
Json buildOf(const TuneOptions& o) {
  const int level = std::min(o.build.builderOptimizationLevel, 5);
  return {
      {"level", std::max(level, 3)}, {"isa", o.build.isa}, {"threads", o.build.threads}, {"formats", o.build.formats}};
}

Json headerOf(const TuneOptions& o, const Json& about, const Fingerprint& machine) {
  std::string line;
  for (const std::string& a : o.argv) line += (line.empty() ? "" : " ") + shellWord(a);
  Json files = Json::object();
  if (!o.model.path.empty()) files["onnx"] = o.model.path;
  if (!o.saveEngine.empty()) files["save_engine"] = o.saveEngine;
  if (!o.pairs.empty() && !o.pairs[0].inputs.empty()) files["inputs"] = o.pairs[0].inputs;
  if (!o.pairs.empty() && !o.pairs[0].refOutputs.empty()) files["ref_outputs"] = o.pairs[0].refOutputs;
  if (files.empty()) files = nullptr;
  return {
      {"type", "header"},
      {"tuner_version", std::string(knobs::kTunerVersion)},
      {"accuracy_algorithm", lossHeader(o.accuracy.algorithm)},
      {"accuracy_parameter", {{"atol", o.accuracy.atol}, {"rtol", o.accuracy.rtol}, {"epsilon", o.accuracy.threshold}}},
      {"searching_algorithm", searchName(o.search)},
      {"command_line", line},
      {"default_build_route", about.value("default_route", knobs::Registry::builtin().defaultRouteText())},
      {"tuning_expr", o.expression},
      {"files", files},
      {"argv", o.argv},
      {"schema", 1},
      {"model_hash", about.value("model_hash", "")},
      {"fingerprint", machine.facts},
      {"shapes", shapesOf(o)},
      {"build", buildOf(o)},
      {"seed", o.seed},
      {"started", timeStamp()},
      {"options", toJson(o)}};
}

// Equal but for what a number loses as a 32-bit float: trtexec writes 1e-5 as 9.999999747378752e-06.
bool alike(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    const double x = a, y = b;
    return std::abs(x - y) <= 1e-6 * std::max(std::abs(x), std::abs(y));
  }
  if (!a.is_object() || !b.is_object() || a.size() != b.size()) return a == b;
  return std::all_of(a.items().begin(), a.items().end(),
                     [&](const auto& i) { return b.contains(i.key()) && alike(i.value(), b[i.key()]); });
}

// Knobs that are not here, have another default here, or (`all`) are new here, by name; "" if none is.
std::string knobDifferences(const std::string& then, const std::string& now, bool all) {
  auto defaults = [](const std::string& route) {
    std::map<std::string, std::string> out;
    std::istringstream in(route);
    for (std::string a; in >> a;) out[a.substr(0, a.find('='))] = a.substr(std::min(a.size(), a.find('=') + 1));
    return out;
  };
  const auto was = defaults(then), is = defaults(now);
  std::vector<std::string> out;
  for (const auto& [knob, value] : was) {
    if (auto it = is.find(knob); it == is.end())
      out.push_back(knob + " does not exist here");
    else if (it->second != value)
      out.push_back(fmt::format("the default of {} was {} and is {}", knob, value, it->second));
  }
  for (const auto& [knob, value] : is)
    if (all && !was.count(knob)) out.push_back(knob + " did not exist then");
  constexpr size_t kNamed = 4;
  const size_t more = out.size() > kNamed ? out.size() - kNamed : 0;
  out.resize(out.size() - more);
  return fmt::format("{}{}", fmt::join(out, ", "), more ? fmt::format(" and {} more", more) : "");
}

// Everything that makes a recorded number mean something else here; each is named.
std::vector<std::string> headerDifferences(const Json& then, const Json& now) {
  std::vector<std::string> out;
  constexpr std::pair<const char*, const char*> kCompared[] = {{"schema", "another format of records"},
                                                               {"model_hash", "another model"},
                                                               {"tuner_version", "another version of the tuner"},
                                                               {"default_build_route", "other knobs or defaults"},
                                                               {"shapes", "other shapes"},
                                                               {"build", "another way to build"},
                                                               {"accuracy_algorithm", "another measure of accuracy"},
                                                               {"accuracy_parameter", "other limits of accuracy"}};
  for (const auto& [key, what] : kCompared) {
    if (!then.contains(key) || alike(then[key], now[key])) continue;  // trtexec's caches lack ours
    std::string said;
    if (std::string_view(key) == "default_build_route" && then[key].is_string()) {
      // What others wrote may leave out knobs that it had no use for.
      said = knobDifferences(then[key], now[key], then.contains("schema"));
      if (said.empty()) continue;
    } else {
      said = fmt::format("{}: {} then, {} now", key, then[key].dump(), now[key].dump());
    }
    out.push_back(fmt::format("{} ({})", what, said));
  }
  if (then.contains("fingerprint") && then["fingerprint"].is_object()) {
    Fingerprint was = Fingerprint::parse(then["fingerprint"].dump());
    const Fingerprint is = Fingerprint::parse(now["fingerprint"].dump());
    for (const char* said : {"model", "shapes"}) was.facts.erase(said);
    if (const std::vector<std::string> facts = was.differences(is); !facts.empty())
      out.push_back(fmt::format("another machine or build of Rutter ({})", fmt::join(facts, ", ")));
  }
  return out;
}

struct Opened {
  std::unique_ptr<Journal> journal;
  double used = 0;
  int epoch = 0;
  bool lostLines = false;
};

// A new journal that begins with `records`. What was there, cache included, is kept under other names.
std::unique_ptr<Journal> freshJournal(const TuneOptions& o, const std::vector<Json>& records, bool ofCache,
                                      TuneListener& listener) {
  auto say = [&](const std::string& text) { listener.onMessage(int(Severity::kInfo), text); };
  auto journal = Journal::create(o.cacheFile + ".journal");
  if (!journal->keptAs().empty()) say("the old journal is kept as " + journal->keptAs());
  // A cache that is all there is stays until the journal has it.
  if (ofCache) try {
      journal->appendAll(records);
    } catch (...) {
      ::unlink(journal->path().c_str());
      throw;
    }
  if (const std::string kept = keepOld(o.cacheFile); !kept.empty()) say("the old tuning cache is kept as " + kept);
  if (!ofCache) journal->appendAll(records);
  return journal;
}

// What is gone of a record that is gone on with; "" if it is whole.
std::string losses(const Journal& journal) {
  std::string out;
  if (const int n = journal.damaged())
    out =
        fmt::format("{} has damaged lines ({}), which are left out; what is missing is measured again if there is time",
                    journal.path(), n);
  if (journal.torn())
    out += fmt::format(
        "{}{} ends in the middle of a line, as a search that is killed while it writes leaves it: that line is left "
        "out, all before it counts",
        out.empty() ? "" : "; ", journal.path());
  return out;
}
std::string losses(const Cache& cache, const std::string& cacheFile) {
  return fmt::format(
      "the journal {0}.journal is missing or empty: what the cache {0} holds is taken over (candidates: {1}, "
      "unreadable lines: {2}); their times rank them, and whatever may win is measured again",
      cacheFile, cache.candidates.size(), cache.dropped);
}

// Runs what reads a record; a key of a wrong type, or one that is missing, is the record's fault.
template <typename F>
auto reading(const std::string& cacheFile, F&& f) {
  try {
    return f();
  } catch (const UserError& e) {
    throw UserError("cannot continue {}: {}; the record was altered", cacheFile, e.what());
  } catch (const Json::exception& e) {
    throw UserError("cannot continue {}: a value in its record is of a wrong type ({}); the record was altered",
                    cacheFile, e.what());
  }
}

// A journal to write to: new, or taken over. What cannot be gone on with stays as it is.
Opened openJournal(const TuneOptions& o, const Json& about, const Fingerprint& machine, TuneListener& listener) {
  auto warn = [&](const std::string& text) { listener.onMessage(int(Severity::kWarning), text); };
  const Json now = headerOf(o, about, machine);
  Opened out;
  std::vector<Json> taken;  // from the cache
  std::string lost;
  switch (o.resume ? recordSource(o.cacheFile) : RecordSource::kNone) {
    case RecordSource::kNone:  // one that was killed before its first record had been written is as good as none
      out.journal = freshJournal(o, {now}, false, listener);
      break;
    case RecordSource::kCache: {
      const Cache cache = parseCache(readWholeFile(o.cacheFile), o.cacheFile);
      taken = recordsOf(cache);
      taken.at(0)["lost_lines"] = true;  // from the first line on, whatever becomes of this session
      lost = losses(cache, o.cacheFile);
      break;
    }
    case RecordSource::kJournal:
      out.journal = Journal::open(o.cacheFile + ".journal");
      lost = losses(*out.journal);
      break;
  }
  const Json header = taken.empty() ? out.journal->records()[0] : taken[0];
  const std::string differences =
      reading(o.cacheFile, [&] { return fmt::format("{}", fmt::join(headerDifferences(header, now), "; ")); });
  if (!differences.empty()) {
    if (!o.force)
      throw UserError(
          "cannot continue {}: {}; --force measures everything again, and keeps the old record under another name",
          o.cacheFile, differences);
    warn(fmt::format("going on although things differ ({}): known routes are measured again", differences));
    out.journal.reset();
    out.journal = freshJournal(o, {now}, false, listener);
  } else {
    if (!lost.empty()) warn(lost);
    out.lostLines = !lost.empty();
    if (!taken.empty()) out.journal = freshJournal(o, taken, true, listener);
    const bool extends = reading(o.cacheFile, [&] {
      Json last = header;
      for (const Json& r : out.journal->records()) {
        out.lostLines |= r.value("lost_lines", false);
        if (r.value("type", "") == "session") {
          last = r;
          if (const int epoch = r.value("epoch", 0); epoch > out.epoch) {
            out.epoch = epoch;
            out.used = 0;  // what came before the extension was not its time
          }
        }
        out.used = std::max(out.used, r.value("t", 0.0));
      }
      return last.value("tuning_expr", "") != o.expression ||
             last.value("searching_algorithm", "") != searchName(o.search);
    });
    // An extension is a search of its own: its time counts from here.
    if (extends) out.epoch++;
    if (extends) out.used = 0;
  }
  out.journal->append({{"type", "session"},
                       {"epoch", out.epoch},
                       {"lost_lines", out.lostLines},
                       {"searching_algorithm", searchName(o.search)},
                       {"tuning_expr", o.expression},
                       {"budget", o.budgetSeconds},
                       {"started", timeStamp()},
                       {"t", out.used}});
  return out;
}

std::string temporaryParent(const TuneOptions& o) {
  if (!o.tempDir.empty()) return o.tempDir;
  const char* t = getenv("TMPDIR");
  return t && *t ? t : "/tmp";
}

std::string oracleFolder() {
  if (const char* c = getenv("XDG_CACHE_HOME"); c && *c) return std::string(c) + "/rutter/oracle";
  if (const char* h = getenv("HOME"); h && *h) return std::string(h) + "/.cache/rutter/oracle";
  return "";
}

TuneResult supervise(int fd, const Frame& hello, const std::string& program, const BackendFactory& makeBackend) {
  TuneOptions o = optionsFromJson(hello.body.at("options"));
  takeOverLastSearch(o);  // before anything looks at what is searched
  Host host(fd);
  HostListener listener(host);
  SteadyClock clock;
  const double begin = o.begun > 0 ? std::min(o.begun, clock.now()) : clock.now();
  PrivateFolder folder(temporaryParent(o), kFolderPrefix);

  if (o.build.builderOptimizationLevel >= 4 && o.build.timingCacheFile.empty())
    o.build.timingCacheFile = o.cacheFile + ".timing";
  RunnerOptions r;
  r.program = program;
  r.folder = folder.path();
  r.oracle = oracleFolder();
  r.options = toJson(o);
  if (!hello.blob.empty()) {
    replaceFile(folder.path() + "/model.onnx", hello.blob);
    r.options["model_bytes"] = folder.path() + "/model.onnx";
  }
  r.judge.accuracy = o.accuracy;
  r.judge.guard = !(o.accuracy.threshold > 0);
  r.judge.threads = o.build.threads;
  r.judge.profileLayers = o.search == SearchKind::kTune;
  // Most engines of --tune try something in many layers: their profiles count, their sum is seldom a winner.
  if (o.search == SearchKind::kTune) r.judge.rank.terrible = 0.1;
  r.seed = o.seed;
  r.buildTimeOut = o.buildTimeOut;
  r.runTimeOut = o.runTimeOut;
  r.keepAll = o.saveAllEngines;
  r.winnerSeconds = std::max(0.0, (kSampleShare - 1) * o.budgetSeconds);
  if (o.build.builderOptimizationLevel >= 4) r.decideSeconds = 700;  // kernels may have to be timed first

  if (o.search == SearchKind::kTune && o.build.builderOptimizationLevel < 4)
    r.timeKernels =
        o.budgetSeconds > 0 ? std::min(kernelShare(o.budgetSeconds) * o.budgetSeconds, kKernelSeconds) : kKernelSeconds;

  double used = 0;
  auto elapsed = [&] { return used + clock.now() - begin; };
  r.phase = [&](const char* what) {
    Progress p;
    p.phase = what;
    p.elapsedSeconds = elapsed();
    if (o.budgetSeconds > 0) p.etaSeconds = std::max(0.0, o.budgetSeconds - p.elapsedSeconds);
    listener.onProgress(p);
  };
  bool open = false;  // the record
  ProcessRunner runner(
      r, makeBackend(),
      [&](Work work) {
        const int stop = host.stopLevel();
        switch (work) {
          // What is recorded is named and saved, and that takes a worker.
          case Work::kPrepare:
            return stop > (o.resume && !open ? 1 : 0);
          // A candidate may not eat what is kept back for the confirmation.
          case Work::kCandidate:
            return stop > 0 || (o.budgetSeconds > 0 && elapsed() > kCandidateShare * o.budgetSeconds);
          case Work::kSample:
            return stop > 1 || (o.budgetSeconds > 0 && elapsed() > kSampleShare * o.budgetSeconds);
          // Has time of its own (winnerSeconds), which may begin when the budget ends.
          case Work::kWinner:
          case Work::kSave:
            return stop > 1;
        }
        return false;
      },
      fd);

  listener.onProgress({0, std::nullopt, "baseline", 0, std::nullopt, std::nullopt});
  const Json about = runner.about();
  Fingerprint machine = Fingerprint::ofMachine();
  for (const auto& [name, version] : about.at("stack").items()) machine.facts[name] = version.get<std::string>();
  Opened opened = openJournal(o, about, machine, listener);
  open = true;
  used = opened.used;
  if (o.pairs.size() > 1)
    listener.onMessage(
        int(Severity::kInfo),
        fmt::format("outputs are checked on all {} sets of inputs; time is measured on the first", o.pairs.size()));

  SearchConfig config;
  config.budgetSeconds = o.budgetSeconds;
  config.maxCandidates = o.maxCandidates;
  config.minGain = o.minGain;
  config.requireAccurateDefault = r.judge.guard;
  config.shorten = o.search == SearchKind::kTune ||  // other routes are the user's own words
                   about.value("test_shorten", false);
  config.epoch = opened.epoch;
  config.lostLines = opened.lostLines;
  config.saveEngine = o.saveEngine;
  config.saveAllEngines = o.saveAllEngines && !o.saveEngine.empty();
  config.cacheFile = o.cacheFile;
  config.dedupe = !about.value("test_no_dedupe", false);
  WallPacer pacer(host, used + clock.now() - begin);
  Search search = reading(o.cacheFile, [&] { return Search(config, runner, pacer, *opened.journal, listener); });
  const std::shared_ptr<const knobs::Registry> own = runner.registry();  // outlives strategies and expressions
  return search.run([&](const BaselineRecord& b) -> std::unique_ptr<Strategy> {
    if (o.search == SearchKind::kUser)
      return makeRemoteStrategy(
          o.expression,
          [&, own] {
            std::optional<Json> answer = host.ask();
            if (answer && answer->at("route").is_string()) try {
                (*answer)["route"] = knobs::Route::parse(answer->at("route").get<std::string>(), *own).print();
              } catch (const knobs::RouteError&) {
                // deciding it will say what is wrong
              }
            return answer;
          },
          [&](const Json& c) { host.tell("tell", c); });
    if (o.search != SearchKind::kTune) return makeSpecStrategy(o.search, knobs::Expression::parse(o.expression, *own));
    return makeTuneStrategy(
        {own.get(), b.layers, b.knobsRead, b.timedRoute, o.accuracy.threshold > 0, usableThreads(o.build.threads)});
  });
}

}  // namespace

int superviseMain(int fd, const std::string& program, const BackendFactory& makeBackend) {
  Frame hello;
  if (receiveFrame(fd, 60, hello) != Wait::kFrame) return 1;
  try {
    const TuneResult r = supervise(fd, hello, program, makeBackend);
    sendFrame(fd, FrameType::kEnd, toJson(r));
    return 0;
  } catch (const std::exception& e) {
    try {
      sendException(fd, e);
    } catch (const DeviceError&) {
      // the host is gone
    }
    return 1;
  }
}

}  // namespace rutter::tuner
