#include "cli/options.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace rutter::cli {
namespace {

// ---- groups: --profile=N with the shape flags after it, --refPair=N with its two files

bool isShapeFlag(Flag f) {
  return f == Flag::k_minShapes || f == Flag::k_optShapes || f == Flag::k_maxShapes;
}

template <typename T>
void setOnce(const Given& g, std::vector<T>& into, std::vector<T> values, std::string_view where) {
  if (!into.empty()) throw UserError("--{} is given twice{}; give it once", info(g.flag).name, where);
  into = std::move(values);
}

void checkIndices(std::string_view flag, const std::set<int>& indices) {
  int next = 0;
  for (int i : indices) {
    if (i != next)
      throw UserError("--{}={}: there is no --{}={}; indices start at 0 and have no gaps", flag, i, flag, next);
    next++;
  }
}

// A missing set of shapes is taken from its neighbours, with a warning, input by input.
void complete(ProfileShapes& p, size_t index, std::vector<std::string>& warnings) {
  auto find = [](std::vector<NamedShape>& in, const std::string& name) -> NamedShape* {
    for (auto& s : in)
      if (s.name == name) return &s;
    return nullptr;
  };
  std::vector<std::string> names;
  for (auto* set : {&p.opt, &p.min, &p.max})
    for (const auto& s : *set)
      if (std::find(names.begin(), names.end(), s.name) == names.end()) names.push_back(s.name);
  struct Source {
    std::string_view name;
    std::vector<NamedShape>* set;
  };
  const Source min{"minShapes", &p.min}, opt{"optShapes", &p.opt}, max{"maxShapes", &p.max};
  auto fill = [&](const Source& to, const Source& first, const Source& second, const std::string& name) {
    if (find(*to.set, name)) return;
    for (const auto& from : {first, second})
      if (auto* s = find(*from.set, name)) {
        auto copy = *s;
        warnings.push_back(
            fmt::format("profile {} has no --{} for '{}'; it is taken from --{}", index, to.name, name, from.name));
        to.set->push_back(std::move(copy));
        return;
      }
  };
  for (const auto& n : names) {
    fill(opt, max, min, n);
    fill(min, opt, max, n);
    fill(max, opt, min, n);
  }
  // One order for all three.
  auto sorted = [&](std::vector<NamedShape>& set) {
    std::stable_sort(set.begin(), set.end(), [&](const auto& a, const auto& b) {
      return std::find(names.begin(), names.end(), a.name) < std::find(names.begin(), names.end(), b.name);
    });
  };
  sorted(p.min), sorted(p.opt), sorted(p.max);
  for (size_t i = 0; i < p.min.size(); i++) {
    const auto &lo = p.min[i].dims, &mid = p.opt[i].dims, &hi = p.max[i].dims;
    bool ok = lo.size() == mid.size() && mid.size() == hi.size();
    for (size_t d = 0; ok && d < lo.size(); d++) ok = lo[d] <= mid[d] && mid[d] <= hi[d];
    if (!ok)
      throw UserError(
          "profile {}, input '{}': min {}, opt {} and max {} are not in ascending order, dimension by dimension", index,
          p.min[i].name, printDims(lo), printDims(mid), printDims(hi));
  }
}

std::vector<ProfileShapes> readProfiles(const CommandLine& line, std::vector<std::string>& warnings) {
  std::map<int, ProfileShapes> profiles;
  std::set<int> indices;
  std::optional<int> current;
  bool loose = false;
  size_t last = 0;
  for (const auto& g : line.all()) {
    if (g.flag == Flag::k_profile) {
      current = static_cast<int>(parseInt("profile", *g.value));
      if (!indices.insert(*current).second) throw UserError("--profile={} is given twice", *current);
      profiles[*current];
      last = g.position;
    } else if (isShapeFlag(g.flag)) {
      if (current && g.position != last + 1)
        throw UserError("--{} does not stand directly after --profile={} and its shape flags", info(g.flag).name,
                        *current);
      loose = loose || !current;
      last = g.position;
      auto& p = profiles[current.value_or(0)];
      auto& set = g.flag == Flag::k_minShapes ? p.min : g.flag == Flag::k_optShapes ? p.opt : p.max;
      setOnce(g, set, parseShapes(info(g.flag).name, *g.value),
              current ? fmt::format(" for profile {}", *current) : "");
    }
  }
  if (loose && !indices.empty())
    throw UserError("shape flags before the first --profile belong to no profile; write --profile=0 before them");
  checkIndices("profile", indices);
  std::vector<ProfileShapes> out;
  for (auto& [i, p] : profiles) {
    if (p == ProfileShapes{}) throw UserError("--profile={} has no shape flags after it", i);
    complete(p, out.size(), warnings);
    out.push_back(std::move(p));
  }
  return out;
}

std::vector<RefPair> readPairs(const CommandLine& line) {
  std::map<int, RefPair> pairs;
  RefPair loose;
  bool anyLoose = false;
  const auto& all = line.all();
  for (size_t i = 0; i < all.size(); i++) {
    const auto& g = all[i];
    if (g.flag == Flag::k_refPair) {
      int n = static_cast<int>(parseInt("refPair", *g.value));
      if (pairs.count(n)) throw UserError("--refPair={} is given twice", n);
      RefPair p;
      for (size_t k = 1; k <= 2; k++) {
        const Given* next = i + k < all.size() ? &all[i + k] : nullptr;
        if (next && next->flag == Flag::k_loadInputs)
          setOnce(*next, p.inputs, parseFiles("loadInputs", *next->value), " in one pair");
        else if (next && next->flag == Flag::k_loadRefOutputs)
          setOnce(*next, p.refOutputs, parseFiles("loadRefOutputs", *next->value), " in one pair");
        else
          throw UserError(
              "--refPair={}: its --loadInputs and --loadRefOutputs must be the two arguments right after it", n);
      }
      pairs[n] = std::move(p);
      i += 2;
    } else if (g.flag == Flag::k_loadInputs) {
      setOnce(g, loose.inputs, parseFiles("loadInputs", *g.value), "");
      anyLoose = true;
    } else if (g.flag == Flag::k_loadRefOutputs) {
      setOnce(g, loose.refOutputs, parseFiles("loadRefOutputs", *g.value), "");
      anyLoose = true;
    }
  }
  if (anyLoose && !pairs.empty())
    throw UserError("--loadInputs and --loadRefOutputs outside a pair cannot stand beside --refPair");
  if (pairs.size() == 1) throw UserError("--refPair: give at least two pairs; one pair needs no --refPair");
  std::set<int> indices;
  for (auto& [n, p] : pairs) indices.insert(n);
  checkIndices("refPair", indices);
  std::vector<RefPair> out;
  for (auto& [n, p] : pairs) out.push_back(std::move(p));
  if (anyLoose) {
    if (loose.inputs.empty())
      throw UserError("--loadRefOutputs needs --loadInputs: outputs are compared for known inputs");
    out.push_back(std::move(loose));
  }
  return out;
}

// ---- single flags

std::vector<int> readCpus(const std::string& text) {
  auto bad = [&] { return UserError("--cpuMask={}: write a hexadecimal mask like 0xff, or a list like 0-3,8", text); };
  std::vector<int> out;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    auto digits = text.substr(2);
    if (digits.empty() || digits.size() > 1024) throw bad();
    for (size_t i = 0; i < digits.size(); i++) {
      char c = digits[digits.size() - 1 - i];
      if (!std::isxdigit(static_cast<unsigned char>(c))) throw bad();
      int v = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
      for (int b = 0; b < 4; b++)
        if (v >> b & 1) out.push_back(static_cast<int>(4 * i) + b);
    }
  } else {
    std::set<int> cpus;
    for (const auto& item : parseList("cpuMask", text)) {
      auto dash = item.find('-');
      auto number = [&](const std::string& s) {
        if (s.empty() || s.size() > 4 ||
            !std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); }))
          throw bad();
        return std::stoi(s);
      };
      int from = number(item.substr(0, dash)), to = dash == item.npos ? from : number(item.substr(dash + 1));
      if (to < from) throw bad();
      for (int c = from; c <= to; c++) cpus.insert(c);
    }
    out.assign(cpus.begin(), cpus.end());
  }
  if (out.empty()) throw UserError("--cpuMask={}: names no core", text);
  return out;
}

std::vector<std::string> readFormats(std::string_view flag, const std::string& text) {
  static const std::set<std::string> kLater = {"chw2", "chw4",  "chw16",  "chw32",      "hwc8",    "hwc16",
                                               "dhwc", "dhwc8", "cdhw32", "dla_linear", "dla_hwc4"};
  static const std::set<std::string> kTypes = {"fp32", "fp16", "bf16", "int32", "int64", "int8", "uint8", "bool"};
  std::vector<std::string> out;
  for (auto item : parseList(flag, text)) {
    for (auto& c : item) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    auto colon = item.find(':');
    auto layout = colon == item.npos ? item : item.substr(colon + 1);
    if (colon != item.npos && !kTypes.count(item.substr(0, colon)))
      throw UserError("--{}={}: '{}' is no type; there are {}", flag, text, item.substr(0, colon),
                      joinOr(std::vector<std::string>(kTypes.begin(), kTypes.end())));
    if (kLater.count(layout) || layout.find('+') != layout.npos)
      throw UserError("--{}={}: the layout '{}' is not supported yet; there are chw and hwc", flag, text, layout);
    if (layout != "chw" && layout != "hwc")
      throw UserError("--{}={}: '{}' is no layout; there are chw and hwc", flag, text, layout);
    out.push_back(item);
  }
  return out;
}

ModelOptions readModel(const CommandLine& line) {
  return {expandHome(line.text(Flag::k_onnx)), expandHome(line.text(Flag::k_loadEngine)),
          expandHome(line.text(Flag::k_saveEngine)), expandHome(line.text(Flag::k_check))};
}

int readInt(const CommandLine& line, Flag f, int fallback) {
  auto v = line.value(f);
  return v ? static_cast<int>(parseInt(info(f).name, *v)) : fallback;
}
double readSeconds(const CommandLine& line, Flag f, double fallback, double unit = 1) {
  auto v = line.value(f);
  return v ? parseTime(info(f).name, *v, unit) : fallback;
}
double readReal(const CommandLine& line, Flag f, double fallback) {
  auto v = line.value(f);
  return v ? parseReal(info(f).name, *v) : fallback;
}

BuildOptions readBuild(const CommandLine& line, std::vector<std::string>& warnings) {
  BuildOptions b;
  b.profiles = readProfiles(line, warnings);
  b.optimizationLevel = readInt(line, Flag::k_builderOptimizationLevel, b.optimizationLevel);
  b.timingCacheFile = expandHome(line.text(Flag::k_timingCacheFile));
  b.noBuilderCache = line.has(Flag::k_noBuilderCache);
  b.noCompilationCache = line.has(Flag::k_noCompilationCache);
  b.errorOnTimingCacheMiss = line.has(Flag::k_errorOnTimingCacheMiss);
  b.maxTactics = readInt(line, Flag::k_maxTactics, b.maxTactics);
  if (b.maxTactics == 0) throw UserError("--maxTactics=0: nothing could be chosen; give 1 or more, or -1 (automatic)");
  b.avgTiming = readInt(line, Flag::k_avgTiming, b.avgTiming);
  if (auto v = line.value(Flag::k_memPoolSize))
    for (const auto& pool : parseSizes("memPoolSize", *v, 1 << 20)) {
      static const std::set<std::string> kOther = {"dlaSRAM", "dlaLocalDRAM", "dlaGlobalDRAM", "tacticSharedMem"};
      if (pool.name == "workspace")
        b.workspaceBytes = pool.bytes;
      else if (kOther.count(pool.name))
        warnings.push_back(fmt::format("--memPoolSize: the pool {} is ignored: a CPU has none", pool.name));
      else
        throw UserError("--memPoolSize={}: there is no pool '{}'; there is workspace", *v, pool.name);
    }
  if (auto v = line.value(Flag::k_profilingVerbosity)) {
    b.profilingVerbosity = *v == "default" ? "layer_names_only" : *v == "verbose" ? "detailed" : *v;
    if (b.profilingVerbosity != *v)
      warnings.push_back(fmt::format("--profilingVerbosity={} is old; it is now {}", *v, b.profilingVerbosity));
  }
  if (auto v = line.value(Flag::k_inputIOFormats)) b.inputFormats = readFormats("inputIOFormats", *v);
  if (auto v = line.value(Flag::k_outputIOFormats)) b.outputFormats = readFormats("outputIOFormats", *v);
  b.route = line.value(Flag::k_setBuildRoute);
  b.strictRoutes = line.has(Flag::k_strictRoutes);
  b.isa = line.text(Flag::k_isa);
  if (auto v = line.value(Flag::k_target)) b.target = *v;
  if (b.target == "cuda") throw UserError("--target=cuda: this version has no CUDA target; use --target=cpu");
  b.tempdir = expandHome(line.text(Flag::k_tempdir));
  b.skipInference = line.has(Flag::k_skipInference);
  b.getPlanVersionOnly = line.has(Flag::k_getPlanVersionOnly);
  if (line.value(Flag::k_runtimePlatform) == "WindowsAMD64")
    throw UserError("--runtimePlatform=WindowsAMD64: engines run on the platform that built them");
  return b;
}

TuningOptions readTuning(const CommandLine& line) {
  TuningOptions t;
  if (line.given(Flag::k_tune)) {
    auto v = line.value(Flag::k_tune);
    t.tuneSeconds = v ? parseTime("tune", *v, 1) : 60;
    if (*t.tuneSeconds <= 0) throw UserError("--tune={}: the budget must be above 0", *v);
  }
  t.expression = line.value(Flag::k_tuneBuildRoutes);
  t.expressionFile = line.value(Flag::k_tuneBuildRouteFile);
  if (auto v = line.value(Flag::k_tuningSearch)) t.search = *v;
  if (t.search != "fast" && t.search != "full" && t.search != "mixed")
    throw UserError("--tuningSearch={}: this strategy does not exist yet; there are fast, full and mixed", t.search);
  t.cacheFile = line.text(Flag::k_tuningCacheFile);
  t.timeOutSeconds = readSeconds(line, Flag::k_tuningTimeOut, -1);
  t.resume = line.has(Flag::k_continue);
  t.dryRun = line.has(Flag::k_dryRun);
  t.saveAllEngines = line.has(Flag::k_saveAllEngines);
  t.force = line.has(Flag::k_force);
  t.yes = line.has(Flag::k_yes);
  for (auto [flag, to] :
       {std::pair{Flag::k_buildTimeOut, &t.buildTimeOutSeconds}, {Flag::k_runTimeOut, &t.runTimeOutSeconds}}) {
    *to = readSeconds(line, flag, -1);
    if (line.given(flag) && *to <= 0) throw UserError("--{}={}: must be above 0", info(flag).name, line.text(flag));
  }
  t.minGainPercent = readReal(line, Flag::k_minGain, t.minGainPercent);
  t.seed = readInt(line, Flag::k_seed, 1);
  t.maxCandidates = readInt(line, Flag::k_maxCandidates, -1);
  return t;
}

InferenceOptions readInference(const CommandLine& line, std::vector<std::string>& warnings) {
  InferenceOptions i;
  if (auto v = line.value(Flag::k_shapes)) i.shapes = parseShapes("shapes", *v);
  i.pairs = readPairs(line);
  i.accuracyThreshold = readReal(line, Flag::k_accuracyThreshold, 0);
  if (auto v = line.value(Flag::k_accuracyAlgorithm)) i.accuracyAlgorithm = *v;
  i.atol = readReal(line, Flag::k_atol, i.atol);
  i.rtol = readReal(line, Flag::k_rtol, i.rtol);
  i.iterations = readInt(line, Flag::k_iterations, 10);
  i.warmUpMs = readSeconds(line, Flag::k_warmUp, 0.2, 1e-3) * 1e3;
  i.durationSeconds = readSeconds(line, Flag::k_duration, 3);
  if (i.durationSeconds < 0 && i.durationSeconds != -1)
    throw UserError("--duration={}: must be 0 or more, or -1 (until interrupted)", line.text(Flag::k_duration));
  i.sleepMs = readSeconds(line, Flag::k_sleepTime, 0, 1e-3) * 1e3;
  i.idleMs = readSeconds(line, Flag::k_idleTime, 0, 1e-3) * 1e3;
  if (line.given(Flag::k_streams)) {
    if (line.given(Flag::k_infStreams)) throw UserError("--streams is the old name of --infStreams; give one of them");
    warnings.push_back("--streams is old; it is now --infStreams");
  }
  i.streams = readInt(line, Flag::k_infStreams, readInt(line, Flag::k_streams, 1));
  if (line.given(Flag::k_threads)) {
    auto v = line.value(Flag::k_threads);
    if (!v || *v == "true")
      i.threadPerStream = true;
    else if (*v != "false")
      i.cpuThreads = static_cast<int>(parseInt("threads", *v, 1, 4096));
  }
  if (auto v = line.value(Flag::k_cpuMask)) i.cpus = readCpus(*v);
  i.timeDeserialize = line.has(Flag::k_timeDeserialize);
  i.useProfile = readInt(line, Flag::k_useProfile, 0);
  if (auto v = line.value(Flag::k_allocationStrategy)) i.allocationStrategy = *v;
  i.device = readInt(line, Flag::k_device, 0);
  if (i.device != 0) throw UserError("--device={}: the CPU is device 0", i.device);
  return i;
}

ReportingOptions readReporting(const CommandLine& line) {
  ReportingOptions r;
  r.verbose = line.has(Flag::k_verbose);
  r.json = line.has(Flag::k_json);
  r.avgRuns = readInt(line, Flag::k_avgRuns, 10);
  if (auto v = line.value(Flag::k_percentile)) r.percentiles = parsePercentiles("percentile", *v);
  r.dumpOutput = line.has(Flag::k_dumpOutput);
  r.dumpRawBindings = line.has(Flag::k_dumpRawBindingsToFile);
  r.dumpProfile = line.has(Flag::k_dumpProfile);
  r.dumpLayerInfo = line.has(Flag::k_dumpLayerInfo);
  r.dumpOptimizationProfile = line.has(Flag::k_dumpOptimizationProfile);
  r.exportOutput = line.text(Flag::k_exportOutput);
  r.exportProfile = line.text(Flag::k_exportProfile);
  r.exportLayerInfo = line.text(Flag::k_exportLayerInfo);
  r.exportTimes = line.text(Flag::k_exportTimes);
  return r;
}

}  // namespace

void checkConflicts(const CommandLine& line, const Options& o, std::vector<std::string>& warnings);

Options makeOptions(const CommandLine& line) {
  Options o;
  o.warnings = line.warnings();
  o.model = readModel(line);
  o.build = readBuild(line, o.warnings);
  o.tuning = readTuning(line);
  o.inference = readInference(line, o.warnings);
  o.reporting = readReporting(line);
  checkConflicts(line, o, o.warnings);
  return o;
}

}  // namespace rutter::cli
