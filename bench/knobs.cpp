// Which knobs pay on a model: each value of each knob alone against the default, in one process.
// rutter_knobs MODEL... [--shape=name:1x3x320x320]... [--knob=GLOB] [--threads=N] [--isa=I] [--rounds=N] [--runs=N]
// [--seconds=S: fewer runs a turn, so that a value takes about that long] (bench/knobs.py: all models)
// Both engines stay loaded and take turns in alternating order (default, candidate, candidate, default); the first run
// of a turn is dropped. Printed: default's time / candidate's time (above 1 is faster), an interval of 95 % over the
// rounds, and which layers read the knob. Ratios within one process rank; they do not prove (placement of memory alone
// moves kernels).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <random>

#include "compiler/assemble.h"
#include "compiler/compile.h"
#include "knobs/registry.h"
#include "runtime/context.h"
#include "runtime/engine.h"

using namespace rutter;
namespace {
struct Settings {
  std::vector<std::string> models;
  passes::Profile profile;
  std::string glob = "*", isa;
  int threads = 1, rounds = 9, runs = 5;
  double seconds = 0;
};

struct Loaded {
  compiler::BuildResult built;
  std::unique_ptr<runtime::Context> context;
  std::vector<ir::Tensor> tensors;
};
Loaded load(const frontend::Model& model, const Settings& s, const std::string& route, compiler::KernelCache& cache,
            std::shared_ptr<runtime::Pool> pool) {
  compiler::BuildOptions o;
  o.route = knobs::Route::parse(route);
  o.profiles = {s.profile};
  o.threads = s.threads;
  o.isa = s.isa;
  Loaded l;
  l.built = compiler::buildEngine(model, o, cache);
  auto engine = runtime::Engine::load(runtime::Blob::copy(runtime::writeEngine(l.built.parts)));
  l.context = std::make_unique<runtime::Context>(engine, std::move(pool));
  for (int i = 0; i < engine->ioCount(); i++) {
    bool input = i < engine->inputs();
    auto shape = input ? engine->profileShape(i, 0, 1) : std::vector<int64_t>();
    if (input)
      l.context->setInputShape(i, shape);
    else
      shape = l.context->shape(i);
    ir::Tensor t(ir::DType(engine->io(i).dtype()), shape);
    std::mt19937 rng(7 + uint32_t(i));
    std::uniform_real_distribution<double> u(-1, 1);
    for (int64_t k = 0; input && k < t.size(); k++) {
      if (ir::isFloat(t.dtype()))
        t.setDouble(k, u(rng));
      else
        t.setInt(k, int64_t(rng() % 2));
    }
    l.tensors.push_back(std::move(t));
  }
  for (int i = 0; i < engine->ioCount(); i++) l.context->setAddress(i, l.tensors[size_t(i)].mutableData());
  l.context->run();
  return l;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double turn(runtime::Context& c, int runs) {
  c.run();
  std::vector<double> t;
  for (int i = 0; i < runs; i++) {
    double a = now();
    c.run();
    t.push_back(now() - a);
  }
  std::nth_element(t.begin(), t.begin() + long(t.size() / 2), t.end());
  return t[t.size() / 2];
}
struct Ratio {
  double mean = 1, low = 1, high = 1;
};
Ratio compare(Loaded& base, Loaded& other, const Settings& s) {
  std::vector<double> logs;
  for (int i = 0; i < s.rounds; i++) {
    double a1 = turn(*base.context, s.runs), b1 = turn(*other.context, s.runs);
    double b2 = turn(*other.context, s.runs), a2 = turn(*base.context, s.runs);
    logs.push_back(0.5 * (std::log(a1 / b1) + std::log(a2 / b2)));
  }
  double n = double(logs.size()), mean = 0, var = 0;
  for (double x : logs) mean += x / n;
  for (double x : logs) var += (x - mean) * (x - mean) / std::max(1.0, n - 1);
  // Student's t, 97.5 %, by degrees of freedom (1 to 14; close to 2 beyond).
  constexpr double kStudent[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14};
  const size_t freedom = std::min(std::max<size_t>(logs.size(), 2) - 1, std::size(kStudent));
  double half = kStudent[freedom - 1] * std::sqrt(var / n);
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

void run(const std::string& path, Settings s) {
  auto model = frontend::importFile(path);
  auto pool = std::make_shared<runtime::Pool>(runtime::PoolOptions{.threads = s.threads});
  compiler::KernelCache cache;
  Loaded base = load(model, s, "", cache, pool);
  const double once = turn(*base.context, s.runs);
  if (s.seconds > 0) s.runs = std::clamp(int(s.seconds / (4 * s.rounds * once)) - 1, 1, 1000);
  fmt::print("{}: default {:.3f} ms, {} layers\n", path, 1e3 * once, base.built.parts.plan.layers.size());
  std::map<std::string, int> readers;
  for (const auto& l : base.built.parts.plan.layers)
    for (const std::string& k : l->knobs_read) readers[k]++;
  const auto& registry = knobs::Registry::builtin();
  for (knobs::KnobId id : compiler::modelWideKnobs()) readers[registry[id].name] = -1;
  for (const knobs::KnobInfo* k : registry.select(s.glob)) {
    auto r = readers.find(k->name);
    if (r == readers.end()) {
      fmt::print("{:<28} not read\n", k->name);
      continue;
    }
    const std::string by = r->second < 0 ? "the engine" : fmt::format("{} layers", r->second);
    for (const std::string& v : k->values) {
      if (v == k->defaultValue) continue;
      const std::string what = fmt::format("{}={}", k->name, v);
      try {
        Loaded other = load(model, s, what, cache, pool);
        if (other.built.decisionHash == base.built.decisionHash) {
          fmt::print("{:<28} same as the default; read by {}\n", what, by);
          continue;
        }
        Ratio q = compare(base, other, s);
        const char* verdict = q.low > 1 ? "faster" : q.high < 1 ? "slower" : "";
        fmt::print("{:<28} {:6.3f} [{:.3f} {:.3f}] {:<6} read by {}\n", what, q.mean, q.low, q.high, verdict, by);
      } catch (const UserError& e) {
        fmt::print("{:<28} {}\n", what, e.what());
      }
      std::fflush(stdout);
    }
  }
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i], v = a.substr(a.find('=') + 1);
    auto is = [&](const char* name) { return a.rfind(std::string("--") + name + "=", 0) == 0; };
    if (is("shape")) {
      size_t c = v.rfind(':');
      if (c == std::string::npos) throw UserError("--shape={}: write name:1x3x320x320", v);
      std::vector<int64_t> dims;
      for (size_t at = c + 1; at < v.size(); at = std::min(v.find('x', at), v.size() - 1) + 1)
        dims.push_back(std::stoll(v.substr(at)));
      s.profile[v.substr(0, c)] = passes::ShapeRange::fixed(dims);
    } else if (is("knob"))
      s.glob = v;
    else if (is("threads"))
      s.threads = std::stoi(v);
    else if (is("isa"))
      s.isa = v;
    else if (is("rounds"))
      s.rounds = std::max(2, std::stoi(v));
    else if (is("seconds"))
      s.seconds = std::stod(v);
    else if (is("runs"))
      s.runs = std::max(1, std::stoi(v));
    else if (a.rfind("--", 0) == 0)
      throw UserError("unknown option {}", a);
    else
      s.models.push_back(a);
  }
  if (s.models.empty()) throw UserError("no model; the options are at the head of bench/knobs.cpp");
  return s;
}
}  // namespace
int main(int argc, char** argv) {
  try {
    Settings s = parse(argc, argv);
    for (const std::string& m : s.models) run(m, s);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "rutter_knobs: {}\n", e.what());
    return 1;
  }
}
