#pragma once
// Small graphs for tests, written in a few lines, and ways to compare them before and after passes.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/op.h"
#include "passes/infer.h"
#include "passes/pass.h"

namespace rutter::test {

class Net {
 public:
  Net() : graph(std::make_unique<ir::Graph>()) {}
  std::unique_ptr<ir::Graph> graph;

  ir::Value* input(const std::string& name, ir::Dims dims, ir::DType t = ir::DType::kF32) {
    ir::Value* v = graph->makeValue(name, ir::Type::tensor(t, std::move(dims)));
    graph->top().inputs.push_back(v);
    return v;
  }
  ir::Value* scalar(double x) { return graph->makeConstant("c", ir::Tensor::scalar(ir::DType::kF32, x)); }
  ir::Value* ints(const std::vector<int64_t>& v) { return graph->makeConstant("i", ir::Tensor::ofInts(v)); }
  ir::Value* floats(std::vector<int64_t> shape, const std::vector<float>& v) {
    return graph->makeConstant("f", ir::Tensor::ofFloats(std::move(shape), v));
  }
  /// Seeded values in [lo, hi].
  ir::Value* random(std::vector<int64_t> shape, double lo = -1, double hi = 1) {
    ir::Tensor t(ir::DType::kF32, std::move(shape));
    std::uniform_real_distribution<double> d(lo, hi);
    for (int64_t i = 0; i < t.size(); i++) t.setDouble(i, d(rng_));
    return graph->makeConstant("w", std::move(t));
  }
  using Attrs = std::map<std::string, ir::Attr>;
  /// A node of one output, named and origin-named Op_<count>, typed at once.
  ir::Value* op(const std::string& op, std::vector<ir::Value*> in, Attrs attrs = {}, const std::string& name = "") {
    return many(op, std::move(in), 1, std::move(attrs), name)[0];
  }
  std::vector<ir::Value*> many(const std::string& op, std::vector<ir::Value*> in, size_t outputs, Attrs attrs = {},
                               const std::string& name = "") {
    std::string id = name.empty() ? op + "_" + std::to_string(count_++) : name;
    std::vector<ir::Value*> out;
    for (size_t i = 0; i < outputs; i++) out.push_back(graph->makeValue(id + "_out"));
    ir::Node* n = graph->makeNode(graph->top(), op, std::move(in), out);
    n->name = id;
    n->origins = {id};
    n->attrs = std::move(attrs);
    ops::inferNode(*graph, *n);
    return out;
  }
  void output(ir::Value* v) { graph->top().outputs.push_back(v); }

 private:
  std::mt19937 rng_{7};
  int count_ = 0;
};

inline int countOp(const ir::Graph& g, const std::string& op) {
  int n = 0;
  for (auto& node : g.top().nodes) n += node->op == op;
  return n;
}
inline int countNodes(const ir::Graph& g) {
  return int(g.top().nodes.size());
}
inline const ir::Node* firstOp(const ir::Graph& g, const std::string& op) {
  for (auto& node : g.top().nodes)
    if (node->op == op) return node.get();
  return nullptr;
}

/// A copy after the whole pipeline (or the given passes) under a route; checks the graph after every pass.
inline std::unique_ptr<ir::Graph> optimise(const ir::Graph& g, const std::string& routeText = "",
                                           const std::vector<passes::AnyPass>& list = passes::pipeline()) {
  auto route = knobs::Route::parse(routeText);
  passes::PassContext ctx(route);
  ctx.verify = true;
  auto copy = g.clone();
  passes::runPasses(*copy, ctx, list);
  return copy;
}

/// Inputs that suit the types: floats in [lo, hi], integers in [0, 4), booleans.
inline std::vector<ir::Tensor> randomInputs(const ir::Graph& g, unsigned seed, double lo = -2, double hi = 2) {
  std::mt19937 rng(seed);
  std::vector<ir::Tensor> out;
  for (const ir::Value* v : g.top().inputs) {
    ir::Tensor t(v->type.dtype, *ir::constants(v->type.dims));
    std::uniform_real_distribution<double> d(lo, hi);
    for (int64_t i = 0; i < t.size(); i++) {
      if (ir::isFloat(v->type.dtype))
        t.setDouble(i, d(rng));
      else
        t.setInt(i, int64_t(rng() % (v->type.dtype == ir::DType::kBool ? 2 : 4)));
    }
    out.push_back(std::move(t));
  }
  return out;
}

/// Same names, types and order of outputs, and contents within `tolerance` of the norm.
inline void expectSame(const ir::Graph& before, const ir::Graph& after, const std::vector<ir::Tensor>& inputs,
                       double tolerance = 1e-5) {
  auto a = ops::evalGraph(before, inputs), b = ops::evalGraph(after, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); k++) {
    EXPECT_EQ(before.top().outputs[k]->name, after.top().outputs[k]->name);
    ASSERT_EQ(a[k].dtype(), b[k].dtype());
    ASSERT_EQ(a[k].shape(), b[k].shape());
    double diff = 0, norm = 0;
    for (int64_t i = 0; i < a[k].size(); i++) {
      double x = a[k].getDouble(i), y = b[k].getDouble(i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      diff += (x - y) * (x - y);
      norm += x * x;
    }
    EXPECT_LE(std::sqrt(diff), tolerance * std::sqrt(norm) + 1e-9) << "output " << k << "\n" << after.print();
  }
}

}  // namespace rutter::test
