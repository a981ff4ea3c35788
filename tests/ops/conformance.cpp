// The ONNX package's own cases for single operators (scripts/node_tests.py writes them), through front end, shape rules
// and oracle. A case passes, or fails the test, or is excluded: because it has values that are not dense tensors,
// because an operator is not supported, or because conformance_exclusions.txt lists it with a reason. What is listed
// must fail.
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "net.h"
#include "node_cases.h"
#include "onnx/import.h"
#include "passes/infer.h"

namespace rutter::ops::test {
namespace {
struct Exclusion {
  std::string pattern, reason;
  int used = 0;
};
std::vector<Exclusion> exclusions() {
  std::ifstream f(RUTTER_SOURCE_DIR "/tests/ops/conformance_exclusions.txt");
  std::vector<Exclusion> list;
  for (std::string line; std::getline(f, line);) {
    auto colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    list.push_back({line.substr(0, colon), line.substr(colon + 2)});
  }
  return list;
}

// The shape rules once more, on an axis at a time with a symbol in place of its extent: evaluated at that extent they
// must give the oracle's shapes, and every condition that they put on it must hold there. Rules may refuse a symbol;
// `checked` counts those that do not.
std::string symbolicShapes(const ir::Graph& model, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& outputs, int& checked) {
  for (size_t k = 0; k < inputs.size(); k++)
    for (size_t a = 0; a < inputs[k].shape().size(); a++) {
      int64_t extent = inputs[k].shape()[a];
      if (extent < 2) continue;  // a symbol is no axis that is broadcast: that is the one condition that 1 would break
      auto g = model.clone();
      for (size_t i = 0; i < inputs.size(); i++) {
        ir::Value* v = g->top().inputs[i];
        v->type = ir::Type::tensor(inputs[i].dtype(), ir::toDims(inputs[i].shape()));
        if (i != k && inputs[i].rank() <= 1 && inputs[i].size() <= 64) v->constant = inputs[i];
      }
      g->top().inputs[k]->type.dims[a] = Dim::symbol("N");
      g->symbols["N"] = {1, std::max<int64_t>(100, extent), extent};
      try {
        passes::inferTypes(*g);
      } catch (const UserError&) {
        continue;
      }
      checked++;
      std::map<std::string, int64_t> at = {{"N", extent}};
      std::string where = fmt::format("input {}, axis {} symbolic: ", k, a);
      for (size_t i = 0; i < outputs.size(); i++) {
        Ints shape;
        for (const Dim& d : g->top().outputs[i]->type.dims) shape.push_back(d.evaluate(at));
        if (shape != outputs[i].shape())
          return where + fmt::format("output {} is {}, which makes [{}] instead of [{}]", i,
                                     g->top().outputs[i]->type.text(), fmt::join(shape, ","),
                                     fmt::join(outputs[i].shape(), ","));
      }
      for (const ir::Constraint& c : g->constraints) {
        int64_t x = c.a.evaluate(at), y = c.b.evaluate(at);
        bool holds = c.kind == ir::Constraint::Kind::kEqual       ? x == y
                     : c.kind == ir::Constraint::Kind::kDivisible ? y && x % y == 0
                                                                  : x >= y;
        if (!holds) return where + fmt::format("{} and {} break the condition '{}'", x, y, c.where);
      }
    }
  return "";
}

// "" if all sets agree; throws frontend::UnsupportedOperators.
std::string runCase(const Json& c, const std::string& data, int& symbolic) {
  try {
    auto model = frontend::importFile(folder() + "/models/" + c["name"].get<std::string>() + ".onnx");
    for (const Json& set : c["sets"]) {
      auto g = model.graph->clone();
      std::vector<Tensor> inputs;
      if (auto error = feed(*g, set, data, inputs); !error.empty()) return error;
      passes::inferTypes(*g);
      auto got = evalGraph(*g, inputs);
      if (auto e = symbolicShapes(*model.graph, inputs, got, symbolic); !e.empty()) return e;
      for (size_t i = 0; i < got.size(); i++) {
        if (set["outputs"][i].is_null()) continue;
        const ir::Type& t = g->top().outputs[i]->type;
        Tensor inferred(t.dtype, ir::constants(t.dims).value_or(Ints{}));
        if (inferred.dtype() != got[i].dtype() || inferred.shape() != got[i].shape())
          return fmt::format("output {}: the shape rule says {}, the oracle made {}[{}]", i, t.text(),
                             ir::dtypeName(got[i].dtype()), fmt::join(got[i].shape(), ","));
        if (auto d = difference(got[i], tensorOf(set["outputs"][i], data), c["rtol"], c["atol"]); !d.empty())
          return fmt::format("output {}: {}", i, d);
      }
    }
    return "";
  } catch (const frontend::UnsupportedOperators&) {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(Conformance, NodeTests) {
  std::ifstream cases(folder() + "/cases.jsonl");
  if (!cases) {
    if (std::getenv("CI")) FAIL() << "no cases in " << folder() << ": run scripts/node_tests.py";
    GTEST_SKIP() << "no cases in " << folder() << ": run scripts/node_tests.py (it needs the Python package onnx)";
  }
  std::string data = slurp(folder() + "/data.bin");
  auto listed = exclusions();
  std::map<std::string, int> types, operators;
  int passed = 0, failed = 0, excluded = 0, symbolic = 0;
  for (std::string line; std::getline(cases, line);) {
    Json c = Json::parse(line);
    std::string name = c["name"];
    if (c.contains("skip")) {
      types[c["skip"]]++;
      continue;
    }
    try {
      std::string error = runCase(c, data, symbolic);
      auto why = std::find_if(listed.begin(), listed.end(),
                              [&](const Exclusion& e) { return !fnmatch(e.pattern.c_str(), name.c_str(), 0); });
      if (why == listed.end()) {
        error.empty() ? passed++ : failed++;
        if (!error.empty()) ADD_FAILURE() << name << ": " << error;
      } else if (error.empty()) {
        passed++;  // a pattern may cover more than what fails
      } else {
        excluded++;
        why->used++;
      }
    } catch (const frontend::UnsupportedOperators& e) {
      std::set<std::string> ops;
      for (const auto& n : e.nodes) ops.insert(n.domain.empty() ? n.op : n.domain + "." + n.op);
      operators[fmt::format("{}", fmt::join(ops, "+"))]++;
    }
  }
  int byType = 0, byOperator = 0;
  for (const auto& [t, n] : types) byType += n;
  for (const auto& [o, n] : operators) byOperator += n;
  fmt::print(
      "node tests: {} passed, {} failed, {} excluded ({} listed, {} with values of other kinds, {} with unsupported "
      "operators)\n",
      passed, failed, excluded + byType + byOperator, excluded, byType, byOperator);
  fmt::print("  {} axes of theirs also with a symbol for the extent\n", symbolic);
  EXPECT_GT(symbolic, 1000);
  for (const Exclusion& e : listed) {
    fmt::print("  {} ({}): {}\n", e.pattern, e.used, e.reason);
    EXPECT_GT(e.used, 0) << "conformance_exclusions.txt lists " << e.pattern << ", but nothing of it fails";
  }
  for (const auto& [t, n] : types) fmt::print("  values of kind {}: {}\n", t, n);
  for (const auto& [o, n] : operators) fmt::print("  operator {}: {}\n", o, n);
}
}  // namespace
}  // namespace rutter::ops::test
