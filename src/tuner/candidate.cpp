#include "tuner/candidate.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "tuner/accuracy.h"
#include "tuner/journal.h"
#include "tuner/make_inputs.h"

namespace rutter::tuner {
namespace {

// Two patterns, so that an output that is never written cannot equal the right answer both times.
constexpr uint8_t kPoison[2] = {0xcb, 0x34};

const ir::Tensor* find(const Tensors& t, const std::string& name) {
  for (const auto& [n, x] : t)
    if (n == name) return &x;
  return nullptr;
}

Accuracy judge(const JudgeOptions& how, const Tensors& y, const Tensors* d, const Tensors& o, int set,
               Accuracy so = {}) {
  for (const auto& [name, truth] : o) {
    const ir::Tensor* out = find(y, name);
    if (!out) throw UserError("reference output '{}' is no output of the engine", name);
    so.add(name, set, how, *out, d ? find(*d, name) : nullptr, truth);
  }
  return so;
}

int64_t peakBytes() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return int64_t(u.ru_maxrss) * 1024;
}

bool sameBits(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (!bitEqual(a[i].second, b[i].second)) return false;
  return true;
}

// Raised whenever some operator's reference answers change.
constexpr int kOracleVersion = 1;
constexpr size_t kOracleFiles = 64;  // kept, the newest

void dropOldAnswers(const std::string& folder) {
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  for (const auto& e : std::filesystem::directory_iterator(folder, error))
    if (e.path().extension() == ".oracle") files.emplace_back(e.last_write_time(error), e.path());
  std::sort(files.rbegin(), files.rend());
  for (size_t i = kOracleFiles; i < files.size(); i++) std::filesystem::remove(files[i].second, error);
}

// The oracle is slow and one version's answers never change: they are kept by what they depend on.
Tensors oracleOutputs(Backend& backend, int set, const std::string& folder) {
  const Json about = backend.describe();
  const std::string model = about.value("model_hash", "");
  std::string path;
  if (!folder.empty() && !model.empty())
    path = fmt::format("{}/{}.oracle", folder,
                       hashBytes(fmt::format("{} {} {}", kOracleVersion, about.value("stack", Json()).dump(), model) +
                                 packTensors(backend.inputs()[size_t(set)]))
                           .hex());
  if (!path.empty() && ::access(path.c_str(), R_OK) == 0) {
    try {
      return unpackTensors(readWholeFile(path));
    } catch (const UserError&) {
      // torn: made again below
    }
  }
  Tensors out = backend.oracle(set);
  if (!path.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    try {
      replaceFile(path, packTensors(out));
      dropOldAnswers(folder);
    } catch (const DeviceError&) {
      // a cache only
    }
  }
  return out;
}

// Outputs that are not finite compare with nothing: inputs are made up in other ways until the oracle's are. What the
// engine makes of them is no matter here, or its mistakes would be taken for the inputs'.
void findFiniteInputs(Backend& backend, const std::string& oracleCache, Reference& reference, const Say& say) {
  std::string culprit;
  std::optional<std::string> failure;
  bool drawn = false;
  for (int way = 0; way < kInputWays; way++) {
    if (way > 0 && !backend.otherInputs(way)) continue;
    drawn |= way % kDraws > 0;
    std::string bad;
    reference.truth = backend.references();
    try {
      for (size_t s = reference.truth.size(); s < backend.inputs().size() && bad.empty(); s++) {
        reference.truth.push_back(oracleOutputs(backend, int(s), oracleCache));
        for (const auto& [name, t] : reference.truth.back())
          if (!allFinite(t)) bad = name;
        say("oracle", {{"inputs", way}});
      }
    } catch (const UserError& e) {  // the model cannot run on them
      if (!failure) failure = e.what();
      continue;
    }
    reference.attempt = way;
    if (bad.empty()) return;
    culprit = bad;
  }
  if (failure) throw UserError("{}", *failure);
  throw UserError("output '{}' is not finite on {}, so nothing can be compared; give real inputs with --loadInputs",
                  culprit, drawn ? "any made-up inputs (random, near zero, positive, ones)" : "these inputs");
}

}  // namespace

std::string packTensors(const Tensors& tensors) {
  ByteWriter w;
  w.put<uint64_t>(tensors.size());
  for (const auto& [name, t] : tensors) {
    w.put(name);
    w.put(t.dtype());
    w.put(t.shape());
    if (t.dtype() == ir::DType::kString) {
      for (int64_t i = 0; i < t.size(); i++) w.put(t.getString(i));
    } else {
      w.put(std::string_view(static_cast<const char*>(t.data()), size_t(t.bytes())));
    }
  }
  const Hash128 h = hashBytes(w.bytes());
  w.put(h.lo);
  return w.take();
}

Tensors unpackTensors(std::string_view bytes) {
  if (bytes.size() < 16) throw UserError("a tensor file that is too short");
  uint64_t want;
  std::memcpy(&want, bytes.data() + bytes.size() - 8, 8);
  bytes.remove_suffix(8);
  if (hashBytes(bytes).lo != want) throw UserError("a tensor file with a wrong checksum");
  ByteReader r(bytes);
  Tensors out;
  const uint64_t n = r.get<uint64_t>();
  for (uint64_t i = 0; i < n; i++) {
    std::string name(r.getString());
    const auto dtype = r.get<ir::DType>();
    std::vector<int64_t> shape(r.get<uint64_t>());
    for (int64_t& d : shape) d = r.get<int64_t>();
    if (dtype == ir::DType::kString) {
      std::vector<std::string> s(size_t(ir::elementCount(shape)));
      for (std::string& x : s) x = r.getString();
      out.emplace_back(std::move(name), ir::Tensor::ofStrings(shape, std::move(s)));
      continue;
    }
    ir::Tensor t(dtype, shape);
    const std::string_view data = r.getString();
    if (int64_t(data.size()) != t.bytes()) throw UserError("a tensor file that contradicts itself");
    if (!data.empty()) std::memcpy(t.mutableData(), data.data(), data.size());
    out.emplace_back(std::move(name), std::move(t));
  }
  return out;
}

Json toJson(const JudgeOptions& o) {
  return {{"algorithm", lossFlag(o.accuracy.algorithm)},
          {"threshold", o.accuracy.threshold},
          {"atol", o.accuracy.atol},
          {"rtol", o.accuracy.rtol},
          {"guard", o.guard},
          {"threads", o.threads},
          {"profile", o.profileLayers},
          {"min_runs", o.block.minRuns},
          {"block_s", o.block.blockSeconds},
          {"min_rounds", o.rank.minRounds},
          {"max_rounds", o.rank.maxRounds},
          {"hopeless", o.rank.hopeless},
          {"terrible", o.rank.terrible}};
}

JudgeOptions judgeFromJson(const Json& j) {
  JudgeOptions o;
  o.accuracy = {parseLoss(j.at("algorithm")), j.at("threshold"), j.at("atol"), j.at("rtol")};
  o.guard = j.at("guard");
  o.threads = j.at("threads");
  o.profileLayers = j.at("profile");
  o.block.minRuns = j.at("min_runs");
  o.block.blockSeconds = j.at("block_s");
  o.rank = {j.at("min_rounds"), j.at("max_rounds"), j.at("hopeless"), j.at("terrible")};
  return o;
}

void Accuracy::add(const std::string& output, int set, const JudgeOptions& how, const ir::Tensor& y,
                   const ir::Tensor* d, const ir::Tensor& o) {
  double l = INFINITY;
  std::string why;
  if (y.dtype() != o.dtype()) {
    why = fmt::format("is {}, the reference {}", ir::dtypeName(y.dtype()), ir::dtypeName(o.dtype()));
  } else {
    if (comparable(o.dtype()))
      l = loss(how.accuracy, y, o);
    else
      l = guard(y, o, o).ok ? 0 : INFINITY;
    const GuardVerdict v = d ? guard(y, *d, o) : guardDefault(y, o);
    relativeError = std::max(relativeError, v.relative);
    if (how.guard && !v.ok) why = v.reason;
    if (!how.guard && !(l < how.accuracy.threshold))
      why = fmt::format("{} loss {:.3g} is not below {:.3g}", lossFlag(how.accuracy.algorithm), l,
                        how.accuracy.threshold);
  }
  auto [it, fresh] = losses.try_emplace(output, l);
  if (!fresh) it->second = std::max(it->second, l);
  if (!why.empty() && ok) {
    ok = false;
    error = fmt::format("output '{}', input set {}: {}", output, set, why);
  }
}

BaselineRecord runBaseline(Backend& backend, const JudgeOptions& how, const std::string& standardPath,
                           const std::string& oracleCache, Reference& reference, const Say& say) {
  BaselineRecord r;
  const Json about = backend.describe();
  r.decision = about["default"].value("decision", "");
  r.buildMs = about["default"].value("build_ms", 0.0);
  r.knobsRead = about["default"].value("knobs_read", std::vector<std::string>{});
  r.machine = about.value("machine", "");
  r.engineHash = backend.hashOf(standardPath);
  say("built", {});
  findFiniteInputs(backend, oracleCache, reference, say);
  r.inputs = reference.attempt;
  const auto& inputs = backend.inputs();
  reference.standard.clear();
  const double begin = backend.clock().now();
  auto engine = backend.load(standardPath, how.threads, 0);
  say("loaded", {});
  Accuracy so;
  for (size_t s = 0; s < inputs.size(); s++) {
    engine->bind(inputs[s]);
    engine->poison(kPoison[0]);
    engine->run();
    Tensors y = engine->outputs();
    so = judge(how, y, nullptr, reference.truth[s], int(s), std::move(so));
    reference.standard.push_back(std::move(y));
  }
  r.losses = so.losses;
  r.relativeError = so.relativeError;
  if (!so.ok) {
    r.status = Status::kInaccurate;
    r.error = so.error;
  }
  engine->bind(inputs[0]);
  std::vector<double> runs;
  for (int block = 0; block < 3; block++) {
    measureBlock([&] { engine->run(); }, backend.clock(), how.block, &runs);
    say("samples", {});
  }
  r.ms = median(std::move(runs)) * 1000;
  r.layers = engine->profile(5);
  engine->poison(kPoison[1]);
  engine->run();
  if (!sameBits(engine->outputs(), reference.standard[0]))
    throw UserError(
        "the default engine gives other bits in a second run: an output is not written, or not reproducible");
  r.runSeconds = backend.clock().now() - begin;
  return r;
}

// Layers of both engines, in turns, since clocks drift. What disturbs a run makes it slower: the better turn counts.
static void profilePair(LoadedEngine& engine, LoadedEngine& standard, CandidateRecord& r) {
  auto turn = [](LoadedEngine& e, std::map<std::string, double>& best) {
    std::map<std::string, double> now;
    for (const LayerTime& l : e.profile(3))
      if (!l.origins.empty()) now[l.origins.front()] += l.ms;
    for (const auto& [origin, ms] : now) {
      auto [it, fresh] = best.try_emplace(origin, ms);
      if (!fresh) it->second = std::min(it->second, ms);
    }
  };
  for (int i = 0; i < 2; i++) {  // three runs each: the first refills caches, the median is a warm one
    turn(engine, r.layerMs);
    turn(standard, r.defaultLayerMs);
  }
}

CandidateRecord runCandidate(Backend& backend, const JudgeOptions& how, const Reference& reference,
                             const std::string& standardPath, const std::string& route, uint64_t luck,
                             const std::string& path, const Say& say) {
  CandidateRecord r;
  r.route = route;
  const double begin = backend.clock().now();
  double last = begin;
  auto step = [&](const char* name) {
    const double t = backend.clock().now();
    r.stepMs[name] = (t - last) * 1000;
    last = t;
  };
  try {
    Built b = backend.build(route, path);
    r.engineHash = b.hash;
    r.stepMs = std::move(b.stepMs);
  } catch (const UserError& e) {
    r.status = Status::kRejected;
    r.error = e.what();
    return r;
  }
  last = backend.clock().now();
  r.buildMs = (last - begin) * 1000;
  say("built", {{"build_ms", r.buildMs}});

  // The same loader, pool and inputs for both; which comes first and where the arenas lie is luck.
  std::unique_ptr<LoadedEngine> standard, engine;
  auto loadStandard = [&] { standard = backend.load(standardPath, how.threads, luck >> 1); };
  auto loadEngine = [&] { engine = backend.load(path, how.threads, luck >> 17); };
  if (luck & 1)
    loadStandard(), loadEngine();
  else
    loadEngine(), loadStandard();
  say("loaded", {});
  step("load");

  const auto& inputs = backend.inputs();
  auto check = [&](size_t set, Accuracy so, const Tensors& y) {
    return judge(how, y, &reference.standard[set], reference.truth[set], int(set), std::move(so));
  };
  Accuracy so;
  Tensors first;
  try {
    for (size_t s = inputs.size(); s-- > 0;) {  // set 0 last: it stays bound and is measured
      engine->bind(inputs[s]);
      engine->poison(kPoison[0]);
      engine->run();
      first = engine->outputs();
      so = check(s, std::move(so), first);
    }
    r.losses = so.losses;
    r.relativeError = so.relativeError;
    r.peakBytes = peakBytes();
    if (!so.ok) {
      r.status = Status::kInaccurate;
      r.error = so.error;
      return r;
    }
    standard->bind(inputs[0]);
    step("check");
    if (how.profileLayers) profilePair(*engine, *standard, r);
    step("profile");
    auto whole = [](const std::map<std::string, double>& layers) {
      double sum = 0;
      for (const auto& [origin, ms] : layers) sum += ms;
      return sum;
    };
    const double a = whole(r.defaultLayerMs), b = whole(r.layerMs);
    if (a > 0 && b > 0 && std::log(a / b) < how.rank.promise) {
      // The profile says already that it is not what is asked for.
      r.logRatios = {std::log(a / b)};
      r.ms = b;
    } else {
      const PairSamples p =
          measurePair([&] { standard->run(); }, [&] { engine->run(); }, backend.clock(), how.block, how.rank, luck & 2,
                      [&](const PairSamples& s) { say("samples", {{"rounds", s.logRatios.size()}}); });
      r.logRatios = p.logRatios;
      r.ms = median(p.second) * 1000;
    }
    step("rank");

    engine->poison(kPoison[1]);
    engine->run();
    const Tensors last = engine->outputs();
    standard->poison(kPoison[1]);
    standard->run();
    r.peakBytes = peakBytes();
    if (!sameBits(standard->outputs(), reference.standard[0])) {
      r.status = Status::kCrashed;
      r.error = "the default's outputs changed beside it: it writes where it should not";
    } else if (!sameBits(first, last)) {
      so = check(0, std::move(so), last);
      r.losses = so.losses;
      r.status = so.ok ? Status::kUnstable : Status::kInaccurate;
      r.error = so.ok ? "other bits in the last run than in the first" : "in the last run: " + so.error;
    }
    step("last_check");
  } catch (const UserError& e) {
    r.status = Status::kCrashed;
    r.error = fmt::format("failed while running: {}", e.what());
  }
  return r;
}

SampleRecord runSample(Backend& backend, const JudgeOptions& how, const std::string& standardBytes,
                       const std::string& engineBytes, const Tensors& inputs, bool swap, uint64_t luck,
                       const Say& say) {
  SampleRecord r;
  std::unique_ptr<LoadedEngine> standard, engine;
  auto loadStandard = [&] { standard = backend.load(standardBytes, how.threads, luck >> 1); };
  auto loadEngine = [&] { engine = backend.load(engineBytes, how.threads, luck >> 17); };
  if (swap)
    loadEngine(), loadStandard();
  else
    loadStandard(), loadEngine();
  say("loaded", {});
  try {
    Tensors before[2], after[2];
    LoadedEngine* both[2] = {standard.get(), engine.get()};
    for (int i = 0; i < 2; i++) {
      both[i]->bind(inputs);
      both[i]->poison(kPoison[0]);
      both[i]->run();
      before[i] = both[i]->outputs();
    }
    const PairSamples p = measurePair([&] { standard->run(); }, [&] { engine->run(); }, backend.clock(), how.block,
                                      {how.rank.maxRounds, how.rank.maxRounds, INFINITY, INFINITY}, swap,
                                      [&](const PairSamples&) { say("samples", {}); });
    r.logRatios = p.logRatios;
    r.defaultMs = median(p.first) * 1000;
    r.ms = median(p.second) * 1000;
    for (int i = 0; i < 2; i++) {
      both[i]->poison(kPoison[1]);
      both[i]->run();
      after[i] = both[i]->outputs();
      if (!sameBits(before[i], after[i])) {
        r.status = i ? Status::kUnstable : Status::kCrashed;
        r.error = i ? "other bits in the last run than in the first" : "the default's outputs changed beside it";
      }
    }
  } catch (const UserError& e) {
    r.status = Status::kCrashed;
    r.error = fmt::format("failed while running: {}", e.what());
  }
  return r;
}

}  // namespace rutter::tuner
