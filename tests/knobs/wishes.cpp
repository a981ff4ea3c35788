// What becomes of a route's wishes: those that nobody takes are named with the reason, those that change nothing give
// the same engine, those about launches cost no kernel.
#include <gmock/gmock.h>

#include "base/error.h"
#include "knobs/witness.h"
#include "runtime/verify.h"

namespace rutter::test {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<Net> model() {
  auto n = std::make_unique<Net>();
  ir::Value* x = n->input("x", {1, 16, 12, 12});
  ir::Value* y = n->op("Relu", {n->op("Conv", {x, n->random({16, 16, 3, 3}, -0.1, 0.1)}, {}, "first")});
  y = n->op("Conv", {y, n->random({32, 16, 1, 1}, -0.1, 0.1)}, {}, "second");
  y = n->op("Flatten", {y});
  n->output(n->op("MatMul", {y, n->random({3200, 10})}, {}, "product"));
  return n;
}
std::vector<std::string> warnings(const std::string& route, const std::string& isa = "generic", bool strict = false) {
  auto n = model();
  frontend::Model m;
  m.graph = n->graph->clone();
  compiler::BuildOptions o;
  o.profiles = {{}};
  o.route = knobs::Route::parse(route);
  o.isa = isa;
  o.threads = 2;
  o.strictRoutes = strict;
  return compiler::decideModel(m, o).warnings;
}

TEST(Wishes, TakenOnesNeedNoWord) {
  EXPECT_THAT(warnings(""), IsEmpty());
  EXPECT_THAT(warnings("-conv:tile_m=4 -fuse:conv_activation=off -memory:order=area -conv:tactic@second=conv_direct"),
              IsEmpty());
}
TEST(Wishes, WhatEveryLayerRefusesIsNamedWithTheReason) {
  EXPECT_THAT(warnings("-codegen:vector=512"),
              ElementsAre(testing::AllOf(HasSubstr("-codegen:vector=512 has no effect: all "),
                                         HasSubstr(" layers that it is for refused it: "), HasSubstr("128"))));
  EXPECT_THAT(warnings("-conv:tactic@second=conv_depthwise"),
              ElementsAre(HasSubstr("has no effect: the only layer that it is for refused it: ")));
  // One layer that takes it is enough.
  EXPECT_THAT(warnings("-conv:tactic=conv_1x1"), IsEmpty());
}
TEST(Wishes, AScopeWhoseLayersReadOtherKnobs) {
  EXPECT_THAT(warnings("-conv:tile_m@product=4"),
              ElementsAre(HasSubstr("-conv:tile_m@product=4 has no effect: no layer in its scope reads -conv:tile_m")));
  EXPECT_THAT(warnings("-pool:unroll=2"), ElementsAre(HasSubstr("no layer of this model reads -pool:unroll")));
  EXPECT_THAT(warnings("-conv:tile_m@frist=4"), ElementsAre(HasSubstr("closest: first")));
}
TEST(Wishes, StrictRoutesRefuseThem) {
  for (const char* route : {"-codegen:vector=512", "-conv:tile_m@product=4", "-conv:tile_m@frist=4", "-pool:unroll=2"})
    try {
      warnings(route, "generic", true);
      ADD_FAILURE() << route;
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), HasSubstr("--strictRoutes: "));
    }
  EXPECT_THAT(warnings("-conv:tile_m=4", "generic", true), IsEmpty());
}

TEST(Wishes, HowKernelsAreLaunchedCostsNoKernel) {
  auto n = model();
  compiler::KernelCache cache;
  Built usual = build(*n->graph, "", "generic", cache);
  EXPECT_GT(usual.result.kernelsCompiled, 0);
  Built other = build(*n->graph, "-threads:schedule=dynamic -threads:grain=2", "generic", cache);
  EXPECT_EQ(other.result.kernelsCompiled, 0);
  EXPECT_NE(usual.decided.decision.hash, other.decided.decision.hash);
  EXPECT_NE(executedContent(usual), executedContent(other));
}
TEST(Wishes, OverwritingIsDecidedByWhatItDoes) {
  // No loop has an input that dies in it: on or off is one engine.
  auto n = std::make_unique<Net>();
  ir::Value* x = n->input("x", {4, 64});
  n->output(n->op("Exp", {x}));
  compiler::KernelCache cache;
  EXPECT_EQ(build(*n->graph, "", "generic", cache).decided.decision.hash,
            build(*n->graph, "-memory:in_place=off", "generic", cache).decided.decision.hash);
  // Here one does.
  n = std::make_unique<Net>();
  x = n->input("x", {4, 64});
  n->output(n->op("MatMul", {n->op("Tanh", {n->op("MatMul", {x, n->random({64, 64})})}), n->random({64, 8})}));
  EXPECT_NE(build(*n->graph, "-fuse:gemm_activation=off", "generic", cache).decided.decision.hash,
            build(*n->graph, "-fuse:gemm_activation=off -memory:in_place=off", "generic", cache).decided.decision.hash);
}

TEST(Work, FollowsTheShapesOfTheRun) {
  auto n = std::make_unique<Net>();
  const ir::Dim rows = ir::Dim::symbol("N");
  n->output(n->op("MatMul", {n->input("x", {rows, 24}), n->random({24, 10})}));
  frontend::Model m;
  m.graph = n->graph->clone();
  compiler::BuildOptions o;
  o.profiles = {{{"x", {{1, 24}, {4, 24}, {64, 24}}}}};
  compiler::KernelCache cache;
  compiler::BuildResult r = compiler::buildEngine(m, o, cache);
  auto engine = runtime::Engine::load(runtime::Blob::copy(runtime::writeEngine(r.parts)));
  for (int64_t batch : {1, 4, 50}) {
    const std::vector<int64_t> dims = {batch, 24};
    std::vector<int64_t> values(r.parts.plan.exprs.size());
    runtime::evaluateExprs(engine->plan(), dims, values);
    const auto* layer = engine->plan().layers()->Get(0);
    EXPECT_EQ(values.at(size_t(layer->flops())) / (2 * batch * 24 * 10), 1);
    EXPECT_EQ(values.at(size_t(layer->bytes())), 4 * (batch * 24 + 24 * 10 + batch * 10));
  }
}

}  // namespace
}  // namespace rutter::test
