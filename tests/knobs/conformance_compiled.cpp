// The ONNX package's cases as machine code: what the oracle says of a case its engine says too, on this machine's best
// instruction set and on the smallest.
#include <exception>

#include "knobs/registry.h"
#include "knobs/witness.h"
#include "onnx/import.h"
#include "ops/node_cases.h"
#include "passes/infer.h"

namespace rutter::test {
namespace {
using ir::Tensor;
using ops::test::Json;

struct Tally {
  int compared = 0, kernels = 0, reference = 0, refused = 0;
};
// Digits that a dtype holds, with room for a few operations in another order.
double toleranceOf(ir::DType t) {
  return t == ir::DType::kBF16 ? 2e-2 : t == ir::DType::kF16 ? 3e-3 : 2e-5;
}

// Integers are known to the compiler (shapes, axes), floats are not, else everything would be folded away: unless the
// shapes of the case depend on them.
bool prepare(ir::Graph& g, const Json& set, const std::string& data, std::vector<Tensor>& inputs, bool floats) {
  if (!ops::test::feed(g, set, data, inputs).empty()) return false;
  for (ir::Value* v : g.top().inputs)
    if (!floats && ir::isFloat(v->type.dtype)) v->constant.reset();
  try {
    passes::inferTypes(g);
  } catch (const UserError&) {
    return false;
  }
  return true;
}

std::string compare(const Json& c, const std::string& data, const std::string& isa, compiler::KernelCache& cache,
                    Tally& n) {
  frontend::Model model;
  try {
    model = frontend::importFile(ops::test::folder() + "/models/" + c["name"].get<std::string>() + ".onnx");
  } catch (const UserError&) {
    return "";  // the front end refuses the case: ops/conformance.cpp reports or excludes it
  }
  for (const Json& set : c["sets"]) {
    std::vector<Tensor> inputs;
    auto g = model.graph->clone();
    if (!prepare(*g, set, data, inputs, false)) {
      g = model.graph->clone();
      inputs.clear();
      if (!prepare(*g, set, data, inputs, true)) continue;
    }
    std::vector<Tensor> want;
    Built b;
    try {
      want = ops::evalGraph(*g, inputs);
      b = build(*g, "", isa, cache);
    } catch (const UserError&) {
      n.refused++;
      continue;
    }
    const std::vector<Tensor> got = runBuilt(b, inputs);
    n.compared++;
    n.kernels += b.result.kernels;
    n.reference += b.result.referenceNodes;
    for (size_t i = 0; i < want.size(); i++) {
      const double tolerance = toleranceOf(want[i].dtype());
      if (auto d = ops::test::difference(got.at(i), want[i], tolerance, tolerance); !d.empty())
        return fmt::format("output {}: {}\n{}", i, d, b.decided.decision.graph->print());
    }
  }
  return "";
}

// No node writes these outputs in the file: a constant of the model is copied, an input as an output is refused.
TEST(CompiledConformance, OutputsThatNoNodeMakes) {
  Net n;
  ir::Value* x = n.input("x", {2, 3});
  ir::Value* w = n.random({2, 3});
  w->name = "w";
  n.output(n.op("Relu", {x}));
  n.output(w);
  n.output(n.op("Add", {x, w}));
  compiler::KernelCache cache;
  Built b = build(*n.graph, "", "", cache);
  EXPECT_EQ(b.engine->io(2).name()->str(), "w");
  const Tensor in = Tensor::ofFloats({2, 3}, {1, -2, 3, -4, 5, -6});
  const std::vector<Tensor> got = runBuilt(b, {in});
  EXPECT_EQ(relativeError(got, ops::evalGraph(*n.graph, {in})), 0);
  n.output(x);
  try {
    build(*n.graph, "", "", cache);
    ADD_FAILURE() << "an input as an output was built";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("'x' is an input and an output of the model"));
  }
}

// ceil_mode with a window larger than the input; the least integer divided by -1, known when it is compiled.
TEST(CompiledConformance, Edges) {
  compiler::KernelCache cache;
  for (const char* op : {"MaxPool", "AveragePool"})
    for (int64_t extent : {2, 5, 6}) {
      Net n;
      ir::Value* x = n.input("x", {1, 3, extent, extent});
      n.output(n.op(op, {x},
                    {{"kernel_shape", std::vector<int64_t>{3, 3}},
                     {"strides", std::vector<int64_t>{2, 2}},
                     {"ceil_mode", int64_t(1)}}));
      Tensor in(ir::DType::kF32, {1, 3, extent, extent});
      for (int64_t i = 0; i < in.size(); i++) in.setDouble(i, double(i * 7 % 11) - 5);
      const Built b = build(*n.graph, "", "", cache);
      EXPECT_EQ(b.result.referenceNodes, 0);
      EXPECT_LT(relativeError(runBuilt(b, {in}), ops::evalGraph(*n.graph, {in})), 1e-6) << op << " of " << extent;
    }
  Net n;
  n.output(n.op("Div", {n.ints({INT64_MIN}), n.ints({-1})}));
  EXPECT_EQ(runBuilt(build(*n.graph, "", "", cache), {})[0].getInt(0), ops::evalGraph(*n.graph, {})[0].getInt(0));
}

// Sizes that no machine has: by name, before there is an engine with "a broken plan".
TEST(CompiledConformance, SizesThatNoMachineHas) {
  compiler::KernelCache cache;
  auto errorOf = [&](Net& n) -> std::string {
    try {
      build(*n.graph, "", "", cache);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  Net wide;
  wide.output(wide.op("Relu", {wide.input("x", {int64_t(1) << 40})}));
  EXPECT_THAT(errorOf(wide), testing::HasSubstr("input 'x': axis 0 of 1099511627776: an axis has at most 2147483647"));
  Net large;
  ir::Value* x = large.input("x", {1});
  large.output(large.op("Expand", {x, large.ints({1 << 20, 1 << 20, 1 << 20})}, {}, "grow"));
  EXPECT_THAT(errorOf(large), testing::HasSubstr("'grow_out' is too large: 4611686018427387904 bytes"));
}

TEST(CompiledConformance, EnginesSayWhatTheOracleSays) {
  const std::string folder = ops::test::folder();
  std::ifstream cases(folder + "/cases.jsonl");
  if (!cases) {
    if (std::getenv("CI")) FAIL() << "no cases in " << folder << ": run scripts/node_tests.py";
    GTEST_SKIP() << "no cases in " << folder << ": run scripts/node_tests.py (it needs the Python package onnx)";
  }
  const std::string data = ops::test::slurp(folder + "/data.bin");
  compiler::KernelCache cache;
  Tally tally;
  for (std::string line; std::getline(cases, line);) {
    const Json c = Json::parse(line);
    if (c.contains("skip")) continue;
    for (const char* isa : {"", "generic"}) {
      std::string error;
      try {
        error = compare(c, data, isa, cache, tally);
      } catch (const std::exception& e) {
        error = e.what();
      }
      if (!error.empty()) ADD_FAILURE() << c["name"] << " on '" << isa << "': " << error;
    }
  }
  fmt::print("{} comparisons, {} kernels, {} reference nodes, {} not built\n", tally.compared, tally.kernels,
             tally.reference, tally.refused);
  EXPECT_GT(tally.compared, 1000);
  EXPECT_GT(tally.kernels, tally.compared / 2);
}

}  // namespace
}  // namespace rutter::test
