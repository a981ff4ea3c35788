// What a build costs, and what a candidate costs after it:
//   bench_build MODEL [--shape=name:1x3x320x320]... [--threads=N] [--isa=I] [--candidates=N] [--slowest=N]
//   [--folder=DIR]
// Prints the steps of a whole build, its peak memory (in a process of its own) beside 3x weights + 500 MB, candidates
// that change one knob in one layer with their share of a whole build, and loading with every check.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "compiler/compile.h"
#include "runtime/engine_split.h"

using namespace rutter;
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
passes::ShapeRange parseShape(const std::string& s) {
  std::vector<int64_t> v;
  for (size_t at = 0; at < s.size();) {
    size_t x = std::min(s.find('x', at), s.size());
    v.push_back(std::stoll(s.substr(at, x - at)));
    at = x + 1;
  }
  return passes::ShapeRange::fixed(v);
}

struct Steps {
  double decide = 0, emit = 0, link = 0, assemble = 0, write = 0, load = 0;
  int compiled = 0;
  double build() const { return decide + emit + link + assemble + write; }
};
constexpr const char* kColumns = "{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8}  {}\n";
void print(const Steps& s, const std::string& what) {
  auto ms = [](double t) { return fmt::format("{:.1f}", t * 1e3); };
  fmt::print(kColumns, ms(s.decide), ms(s.emit), ms(s.link), ms(s.assemble), ms(s.write), ms(s.load), ms(s.build()),
             s.compiled, what);
}

struct Setup {
  frontend::Model model;
  compiler::BuildOptions options;
  std::string file;
};

// Candidates refer to weights of the default's file, as in a search; without a base the whole engine is written.
Steps build(const Setup& s, const knobs::Route& route, compiler::KernelCache& cache, bool load,
            runtime::WeightIndex* makeBase = nullptr, const runtime::WeightIndex* base = nullptr) {
  compiler::BuildOptions o = s.options;
  o.route = route;
  Steps t;
  double t0 = now();
  compiler::Decided d = compiler::decideModel(s.model, o);
  double t1 = now();
  t.decide = t1 - t0;
  compiler::BuildResult r = compiler::buildEngine(s.model, o, std::move(d), cache);
  t.emit = r.emitSeconds;
  t.link = r.linkSeconds;
  t.assemble = r.assembleSeconds;
  t.compiled = r.kernelsCompiled;
  double t2 = now();
  const std::string file = base ? s.file + ".candidate" : s.file;
  if (base)
    runtime::writeSplitEngine(r.parts, *base, file);
  else
    runtime::writeEngineFile(r.parts, file, false);
  double t3 = now();
  t.write = t3 - t2;
  if (makeBase) *makeBase = runtime::WeightIndex(r.parts, file);
  if (load) {
    double t4 = now();
    runtime::loadEngineFiles(runtime::openEngineFiles(file));
    t.load = now() - t4;
  }
  if (base) unlink(file.c_str());
  return t;
}

// One knob of one layer, for the layers with the most work: every value that decides another engine, in turn.
std::vector<knobs::Route> singleChanges(const Setup& s, const compiler::Decided& d, size_t count) {
  const auto& registry = knobs::Registry::builtin();
  std::vector<const codegen::Layer*> layers;
  for (const codegen::Layer& l : d.decision.layers)
    if (l.tactic && !l.group.origins.empty()) layers.push_back(&l);
  std::stable_sort(layers.begin(), layers.end(),
                   [](auto* a, auto* b) { return a->lowered.problem.flops() > b->lowered.problem.flops(); });
  std::vector<knobs::Route> routes;
  std::set<Hash128> seen{d.decision.hash};
  for (size_t k = 0; k < registry.knobs().size() && routes.size() < count; k++)
    for (size_t i = 0; i < layers.size() && routes.size() < count; i++) {
      // Another layer for every knob: what the hottest would show alone is one case only.
      const codegen::Layer& l = *layers[(i + k) % std::min<size_t>(layers.size(), 8)];
      if (i >= 8) break;
      const knobs::KnobInfo& knob = registry.knobs()[k];
      if (!l.reads.count(knob.id) || !knob.bounded()) continue;
      bool found = false;
      for (const std::string& v : knob.values) {
        if (v == knob.defaultValue || found) continue;
        const std::string& scope = l.group.origins[std::min(l.group.anchorOrigin, l.group.origins.size() - 1)];
        knobs::Route route(std::vector<knobs::Assignment>{{knob.id, v, scope, 0}}, registry);
        compiler::BuildOptions o = s.options;
        o.route = route;
        if (!seen.insert(compiler::decideModel(s.model, o).decision.hash).second) continue;
        routes.push_back(std::move(route));
        found = true;
      }
      if (found) break;
    }
  return routes;
}

// The kernels that take longest to emit.
void printSlowest(const Setup& s, const compiler::Decided& d, size_t count) {
  struct Kernel {
    double seconds;
    size_t bytes;
    std::string what;
  };
  std::vector<Kernel> kernels;
  std::set<Hash128> seen;
  for (const codegen::Layer& l : d.decision.layers) {
    if (!l.tactic || !seen.insert(l.kernelKey).second) continue;
    const double begin = now();
    const auto k = d.target->emit(l.lowered.problem, l.config, d.machine, "k");
    kernels.push_back({now() - begin, k.object.size(), l.group.name + " " + l.config.print()});
  }
  std::sort(kernels.begin(), kernels.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
  for (size_t i = 0; i < kernels.size() && i < count; i++)
    fmt::print("emit {:6.1f} ms, {:6} bytes: {}\n", kernels[i].seconds * 1e3, kernels[i].bytes, kernels[i].what);
}

int run(int argc, char** argv) {
  Setup s;
  std::string path, folder = "/tmp";
  size_t candidates = 12, slowest = 0;
  passes::Profile profile;
  s.options.threads = 2;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i], v = a.substr(a.find('=') + 1);
    if (a.starts_with("--shape=")) {
      size_t c = v.rfind(':');
      profile[v.substr(0, c)] = parseShape(v.substr(c + 1));
    } else if (a.starts_with("--threads=")) {
      s.options.threads = std::stoi(v);
    } else if (a.starts_with("--isa=")) {
      s.options.isa = v;
    } else if (a.starts_with("--candidates=")) {
      candidates = size_t(std::stoul(v));
    } else if (a.starts_with("--slowest=")) {
      slowest = size_t(std::stoul(v));
    } else if (a.starts_with("--folder=")) {
      folder = v;
    } else if (a.starts_with("--")) {
      throw UserError("unknown option {}", a);
    } else {
      path = a;
    }
  }
  if (path.empty()) throw UserError("no model given");
  s.options.profiles = {profile};
  s.file = fmt::format("{}/bench_build.{}.engine", folder, getpid());

  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    int failed = 1;
    try {
      s.model = frontend::importFile(path);
      compiler::KernelCache cache;
      build(s, {}, cache, false);
      failed = 0;
    } catch (const std::exception& e) {
      fmt::print(stderr, "bench_build: {}\n", e.what());
    }
    _exit(failed);
  }
  int status = 0;
  rusage used{};
  if (wait4(child, &status, 0, &used) != child || status != 0)
    throw UserError("the build in a process of its own failed");

  double t = now();
  s.model = frontend::importFile(path);
  fmt::print("parse {:.1f} ms; all times in ms\n", (now() - t) * 1e3);
  fmt::print(kColumns, "decide", "emit", "link", "assemble", "write", "load", "build", "kernels", "");
  compiler::KernelCache cache;
  runtime::WeightIndex base;
  const Steps whole = build(s, {}, cache, true, &base);
  print(whole, "whole build, nothing cached");
  print(build(s, {}, cache, true, nullptr, &base), "again as a candidate, everything cached");

  const compiler::Decided d = compiler::decideModel(s.model, s.options);
  if (slowest > 0) printSlowest(s, d, slowest);
  std::vector<double> shares;
  for (const knobs::Route& r : singleChanges(s, d, candidates)) {
    const Steps c = build(s, r, cache, true, nullptr, &base);
    shares.push_back(c.build() / whole.build());
    print(c, r.print());
  }
  if (!shares.empty())
    fmt::print("one knob of one layer: median {:.1f} %, most {:.1f} % of a whole build ({} candidates)\n",
               100 * median(shares), 100 * *std::max_element(shares.begin(), shares.end()), shares.size());

  build(s, {}, cache, false);
  std::vector<double> loads;
  int64_t weights = 0, bytes = 0;
  bool mapped = true;
  for (int i = 0; i < 15; i++) {
    double begin = now();
    auto blob = runtime::Blob::map(s.file);
    auto engine = runtime::Engine::load(blob);
    loads.push_back(now() - begin);
    weights = engine->weightsBytes();
    bytes = int64_t(blob->bytes().size());
    mapped &= engine->weights() >= blob->bytes().data() &&
              engine->weights() + weights <= blob->bytes().data() + blob->bytes().size();
  }
  unlink(s.file.c_str());
  const double peak = double(used.ru_maxrss) * 1024 / 1e6, limit = 3 * double(weights) / 1e6 + 500;
  fmt::print("peak memory of a build {:.0f} MB; 3x weights + 500 MB = {:.0f} MB\n", peak, limit);
  fmt::print("load and check {:.1f} MB: median {:.2f} ms, least {:.2f} ms, per 100 MB {:.2f} ms; weights {}\n",
             double(bytes) / 1e6, median(loads) * 1e3, *std::min_element(loads.begin(), loads.end()) * 1e3,
             median(loads) * 1e11 / double(bytes), mapped ? "lie in the mapping, not copied" : "COPIED");
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_build: {}\n", e.what());
    return 1;
  }
}
