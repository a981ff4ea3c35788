// Builds an engine and times it: rutter_model MODEL [--shape=name:1x3x320x320]... [--route=R] [--threads=N] [--isa=I]
// [--runs=N] [--layers] [--check] [--save=F] [--dump[=PASS]] [--serve]. Layers are printed by time; --check compares
// with the oracle; --dump prints the graph as the passes get it and after each of them, --dump=PASS before and after
// that one, and builds nothing; --serve then reads numbers of runs from standard input and answers each with a line of
// milliseconds (bench/peers.py).
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <optional>
#include <random>

#include "compiler/compile.h"
#include "knobs/registry.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "runtime/context.h"
#include "runtime/engine.h"

using namespace rutter;
namespace {
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
std::vector<int64_t> parseShape(const std::string& s) {
  std::vector<int64_t> v;
  for (size_t at = 0; at < s.size();) {
    size_t x = s.find('x', at);
    if (x == std::string::npos) x = s.size();
    v.push_back(std::stoll(s.substr(at, x - at)));
    at = x + 1;
  }
  return v;
}
std::string text(const flatbuffers::String* s) {
  return s ? s->str() : "";
}  // empty strings are absent in a plan
ir::Tensor makeInput(const std::string& name, ir::DType t, const std::vector<int64_t>& shape, uint32_t seed) {
  ir::Tensor x(t, shape);
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> u(-1, 1);
  for (int64_t i = 0; i < x.size(); i++) {
    if (ir::isFloat(t))
      x.setDouble(i, u(rng));
    else if (name.find("mask") != std::string::npos)
      x.setInt(i, 1);
    else
      x.setInt(i, int64_t(rng() % 200));
  }
  return x;
}
// The graph through the passes; of one pass, if `only` names it.
void dump(const frontend::Model& model, compiler::BuildOptions o, const std::string& only) {
  const auto list = passes::pipeline();
  if (!only.empty() && std::none_of(list.begin(), list.end(), [&](auto& p) { return p.name == only; })) {
    std::vector<std::string> names;
    for (const auto& p : list) names.push_back(p.name);
    throw UserError("no pass is called '{}'; there are {}", only, fmt::join(names, ", "));
  }
  std::string before;
  o.dumpPass = [&](std::string_view pass, const ir::Graph& g) {
    std::string after = g.print();
    if (only.empty() || pass == only) {
      if (!only.empty()) fmt::print("== before {}\n{}", pass, before);
      if (after == before)
        fmt::print("== {} changes nothing\n", pass);
      else
        fmt::print("== {}{}\n{}", pass == "input" ? "" : "after ", pass, after);
    }
    before = std::move(after);
  };
  compiler::decideModel(model, o);
}
int run(int argc, char** argv) {
  std::string path, routeText, isa, save;
  int threads = 1, runs = 20;
  bool layers = false, check = false, serve = false;
  std::optional<std::string> dumped;
  passes::Profile profile;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i];
    auto value = [&] { return a.substr(a.find('=') + 1); };
    if (a.rfind("--shape=", 0) == 0) {
      std::string v = value();
      size_t c = v.rfind(':');
      profile[v.substr(0, c)] = passes::ShapeRange::fixed(parseShape(v.substr(c + 1)));
    } else if (a.rfind("--route=", 0) == 0)
      routeText = value();
    else if (a.rfind("--threads=", 0) == 0)
      threads = std::stoi(value());
    else if (a.rfind("--runs=", 0) == 0)
      runs = std::stoi(value());
    else if (a.rfind("--isa=", 0) == 0)
      isa = value();
    else if (a.rfind("--save=", 0) == 0)
      save = value();
    else if (a == "--dump")
      dumped = "";
    else if (a.rfind("--dump=", 0) == 0)
      dumped = value();
    else if (a == "--layers")
      layers = true;
    else if (a == "--check")
      check = true;
    else if (a == "--serve")
      serve = true;
    else
      path = a;
  }
  double t0 = now();
  auto model = frontend::importFile(path);
  double t1 = now();
  compiler::BuildOptions o;
  if (!routeText.empty()) o.route = knobs::Route::parse(routeText);
  o.profiles = {profile};
  o.threads = threads;
  o.isa = isa;
  if (dumped) return dump(model, o, *dumped), 0;
  compiler::KernelCache cache;
  auto built = compiler::buildEngine(model, o, cache);
  double t2 = now();
  std::string bytes = runtime::writeEngine(built.parts);
  if (!save.empty()) std::ofstream(save, std::ios::binary) << bytes;
  double t3 = now();
  auto engine = runtime::Engine::load(runtime::Blob::copy(bytes));
  double t4 = now();
  fmt::print(
      "import {:.3f} s, decide {:.3f} s, emit {:.3f} s, write {:.3f} s, load {:.4f} s; {} layers, {} kernels ({} "
      "compiled), {} reference nodes, engine {:.1f} MB, arena {:.1f} MB\n",
      t1 - t0, built.decideSeconds, built.emitSeconds, t3 - t2, t4 - t3, engine->plan().layers()->size(), built.kernels,
      built.kernelsCompiled, built.referenceNodes, double(bytes.size()) / 1e6, double(engine->arenaBytes()) / 1e6);
  for (auto& w : built.warnings) fmt::print("warning: {}\n", w);
  for (auto* l : *engine->plan().layers())
    if (l->tactic()->str() == "reference")
      fmt::print("reference: {} ({}): {}\n", l->name()->str(), l->type()->str(),
                 l->refusals() && l->refusals()->size() ? l->refusals()->Get(0)->str() : "");
  auto pool = std::make_shared<runtime::Pool>(runtime::PoolOptions{.threads = threads});
  runtime::Context ctx(engine, pool);
  std::vector<ir::Tensor> in, out;
  for (int i = 0; i < engine->ioCount(); i++) {
    if (i < engine->inputs()) {
      auto shape = engine->profileShape(i, 0, 1);
      ctx.setInputShape(i, shape);
      in.push_back(makeInput(engine->io(i).name()->str(), ir::DType(engine->io(i).dtype()), shape, 7 + uint32_t(i)));
      ctx.setAddress(i, in.back().mutableData());
    } else {
      out.emplace_back(ir::DType(engine->io(i).dtype()), ctx.shape(i));
      ctx.setAddress(i, out.back().mutableData());
    }
  }
  ctx.run();
  if (check) {
    auto g = model.graph->clone();
    passes::Profile fixed;
    for (int i = 0; i < engine->inputs(); i++)
      fixed[engine->io(i).name()->str()] = passes::ShapeRange::fixed(in[i].shape());
    passes::specialise(*g, fixed);
    auto want = ops::evalGraph(*g, in);
    for (size_t k = 0; k < want.size(); k++) {
      double e = 0, n = 0;
      bool bad = false;
      for (int64_t i = 0; i < want[k].size(); i++) {
        double a = out[k].getDouble(i), b = want[k].getDouble(i);
        bad |= std::isfinite(a) != std::isfinite(b);
        if (std::isfinite(a) && std::isfinite(b)) e += (a - b) * (a - b), n += b * b;
      }
      fmt::print("output {}: relative error {:.3g}{} (norm {:.3g})\n", k, std::sqrt(e / std::max(n, 1e-300)),
                 bad ? " NON-FINITE DIFFERS" : "", std::sqrt(n));
    }
  }
  std::vector<double> t;
  auto measure = [&](int n) {
    t.clear();
    for (int i = 0; i < n; i++) {
      double a = now();
      ctx.run();
      t.push_back((now() - a) * 1e3);
    }
  };
  if (serve) {
    fmt::print("ready\n");
    fflush(stdout);
    for (int n; std::cin >> n;) {
      measure(n);
      fmt::print("{:.5f}\n", fmt::join(t, " "));
      fflush(stdout);
    }
    return 0;
  }
  measure(runs);
  std::sort(t.begin(), t.end());
  if (!t.empty()) fmt::print("median {:.3f} ms, min {:.3f} ms, {} threads\n", t[t.size() / 2], t[0], threads);
  if (layers) {
    ctx.setProfiling(true);
    std::vector<double> sum(engine->plan().layers()->size());
    for (int i = 0; i < runs; i++) {
      ctx.run();
      for (size_t l = 0; l < sum.size(); l++) sum[l] += ctx.layerTimes()[l] / runs;
    }
    std::vector<size_t> order(sum.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sum[a] > sum[b]; });
    double total = std::accumulate(sum.begin(), sum.end(), 0.0);
    for (size_t l : order) {
      auto* x = engine->plan().layers()->Get(uint32_t(l));
      auto value = [&](int e) { return double(engine->plan().exprs()->Get(uint32_t(e))->value()); };
      fmt::print("{:8.4f} ms {:5.1f}% {:7.1f} GF/s {:6.1f} GB/s  {} [{}] {}\n", sum[l], 100 * sum[l] / total,
                 value(x->flops()) / sum[l] * 1e-6, value(x->bytes()) / sum[l] * 1e-6, text(x->name()), text(x->type()),
                 text(x->configuration()));
    }
  }
  return 0;
}
}  // namespace
int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "rutter_model: {}\n", e.what());
    return 1;
  }
}
