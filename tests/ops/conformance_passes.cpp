// Graph passes over the ONNX package's cases: what the oracle says of a case before the passes it says after them,
// under the default route and with every on/off knob of the passes turned over.
#include "knobs/registry.h"
#include "node_cases.h"
#include "onnx/import.h"
#include "passes/infer.h"
#include "passes/pass.h"

namespace rutter::ops::test {
namespace {

std::string flippedRoute() {
  std::string route;
  for (const auto& k : knobs::Registry::builtin().knobs())
    if (k.domain == knobs::Domain::kBool && (k.area == "graph" || k.area == "fuse" || k.area == "layout"))
      route += (route.empty() ? "" : " ") + k.name + (k.defaultValue == "off" ? "=on" : "=off");
  return route;
}

struct Unread {};  // the front end refuses the case: conformance.cpp reports or excludes it

std::string compare(const Json& c, const std::string& data, const knobs::Route& route) {
  frontend::Model model;
  try {
    model = frontend::importFile(folder() + "/models/" + c["name"].get<std::string>() + ".onnx");
  } catch (const UserError&) {
    throw Unread{};
  }
  for (const Json& set : c["sets"]) {
    auto g = model.graph->clone();
    std::vector<Tensor> inputs, before;
    if (!feed(*g, set, data, inputs).empty()) return "";
    try {
      passes::inferTypes(*g);
      before = evalGraph(*g, inputs);
    } catch (const UserError&) {
      return "";  // conformance.cpp reports or excludes it
    }
    passes::PassContext ctx(route);
    ctx.verify = true;
    passes::runPipeline(*g, ctx);
    auto after = evalGraph(*g, inputs);
    for (size_t i = 0; i < before.size(); i++)
      if (auto d = difference(after[i], before[i], 1e-5, 1e-6); !d.empty())
        return fmt::format("output {}: {}\n{}", i, d, g->print());
  }
  return "";
}

TEST(Conformance, PassesKeepTheAnswers) {
  std::ifstream cases(folder() + "/cases.jsonl");
  if (!cases) {
    if (std::getenv("CI")) FAIL() << "no cases in " << folder() << ": run scripts/node_tests.py";
    GTEST_SKIP() << "no cases in " << folder() << ": run scripts/node_tests.py (it needs the Python package onnx)";
  }
  std::string data = slurp(folder() + "/data.bin");
  auto plain = knobs::Route::parse(""), flipped = knobs::Route::parse(flippedRoute());
  int compared = 0;
  for (std::string line; std::getline(cases, line);) {
    Json c = Json::parse(line);
    if (c.contains("skip")) continue;
    for (const knobs::Route* route : {&plain, &flipped}) {
      std::string error;
      try {
        error = compare(c, data, *route);
        compared++;
      } catch (const Unread&) {
        break;
      } catch (const std::exception& e) {
        error = e.what();
      }
      if (!error.empty()) ADD_FAILURE() << c["name"] << " under '" << route->print() << "': " << error;
    }
  }
  fmt::print("{} comparisons\n", compared);
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace rutter::ops::test
