// For each knob of the passes: a small graph and two values between which the knob's own effect shows. Routes that
// give the same graph as the default are caught here, before any code is compiled.
#include "knobs/witness.h"

using namespace rutter;
using namespace rutter::test;

namespace {
using V = ir::Value*;
using Ints = std::vector<int64_t>;

std::function<int(const ir::Graph&)> count(const char* op) {
  return [op](const ir::Graph& g) { return countOp(g, op); };
}
V conv(Net& n, V x, int64_t in, int64_t out, int64_t k = 1) {
  return n.op("Conv", {x, n.random({out, in, k, k}), n.random({out})}, {{"pads", Ints(4, k / 2)}});
}

}  // namespace

std::vector<GraphWitness> rutter::test::graphWitnesses() {
  std::vector<GraphWitness> w;
  auto image = [](Net& n) { return n.input("x", {1, 8, 6, 6}); };
  auto row = [](Net& n) { return n.op("Softmax", {n.input("x", {2, 3, 8})}); };
  w.push_back({"-graph:fold_limit", "16777216", "0",
               [](Net& n) {
                 n.output(n.op("Add", {n.input("x", {64, 64}), n.op("Expand", {n.random({64, 1}), n.ints({64, 64})})}));
               },
               [](const ir::Graph& g) { return countNodes(g); }, 1, 1});
  w.back().build = [](Net& n) {
    V big = n.op("Tile", {n.random({1, 64}), n.ints({64, 1})});
    n.output(n.op("Add", {n.input("x", {64, 64}), big}));
  };
  w.back().expectedOther = 2;
  w.push_back({"-graph:cse", "on", "off",
               [](Net& n) {
                 V x = n.input("x", {4, 4});
                 n.output(n.op("Mul", {n.op("Exp", {x}), n.op("Relu", {n.op("Exp", {x})})}));
               },
               count("Exp"), 1, 2});
  w.push_back({"-graph:sink_reshape", "on", "off",
               [=](Net& n) {
                 V y = n.op("Reshape", {row(n), n.ints({6, 8, 1})});
                 n.output(n.op("Softmax", {n.op("Reshape", {n.op("Tanh", {y}), n.ints({2, 3, 8})})}));
               },
               count("Reshape"), 0, 2});
  w.push_back({"-graph:div_to_mul", "on", "off",
               [](Net& n) { n.output(n.op("Div", {n.input("x", {4}), n.scalar(3)})); }, count("Div"), 0, 1});
  w.push_back({"-graph:pow_to_mul", "on", "off",
               [](Net& n) { n.output(n.op("Pow", {n.op("Exp", {n.input("x", {40})}), n.scalar(-0.5)})); }, count("Pow"),
               0, 1});
  w.push_back({"-graph:reassociate", "on", "off",
               [](Net& n) { n.output(n.op("Add", {n.op("Add", {n.input("x", {4}), n.scalar(3)}), n.scalar(4)})); },
               count("Add"), 1, 2});
  w.push_back({"-fuse:gelu", "on", "off",
               [=](Net& n) {
                 V x = row(n);
                 V e = n.op("Add", {n.op("Erf", {n.op("Div", {x, n.scalar(1.4142135623730951)})}), n.scalar(1)});
                 n.output(n.op("Mul", {n.op("Mul", {x, e}), n.scalar(0.5)}));
               },
               count("Gelu"), 1, 0});
  w.push_back({"-fuse:silu", "on", "off",
               [=](Net& n) {
                 V x = n.op("MatMul", {row(n), n.random({8, 4})});
                 n.output(n.op("Mul", {x, n.op("Sigmoid", {x})}));
               },
               count("Silu"), 1, 0, "-fuse:gemm_residual=off"});
  w.push_back({"-fuse:hard_swish", "on", "off",
               [=](Net& n) {
                 V x = row(n);
                 V c = n.op("Clip", {n.op("Add", {x, n.scalar(3)}), n.scalar(0), n.scalar(6)});
                 n.output(n.op("Div", {n.op("Mul", {x, c}), n.scalar(6)}));
               },
               count("HardSwish"), 1, 0});
  w.push_back({"-fuse:layer_norm", "on", "off",
               [=](Net& n) {
                 V x = row(n);
                 V d = n.op("Sub", {x, n.op("ReduceMean", {x, n.ints({-1})})});
                 V v = n.op("ReduceMean", {n.op("Mul", {d, d}), n.ints({-1})});
                 n.output(n.op("Div", {d, n.op("Sqrt", {n.op("Add", {v, n.scalar(1e-5)})})}));
               },
               count("LayerNormalization"), 1, 0});
  w.push_back({"-fuse:softmax", "on", "off",
               [](Net& n) {
                 V x = n.op("Relu", {n.input("x", {3, 8})});
                 V e = n.op("Exp", {n.op("Sub", {x, n.op("ReduceMax", {x, n.ints({-1})})})});
                 n.output(n.op("Div", {e, n.op("ReduceSum", {e, n.ints({-1})})}));
               },
               count("Softmax"), 1, 0});
  w.push_back({"-fuse:one_hot", "on", "off",
               [](Net& n) {
                 ir::Tensor iota(ir::DType::kI32, {1, 9});
                 for (int64_t k = 0; k < 9; k++) iota.setInt(k, k);
                 V e = n.op("Equal", {n.input("i", {5, 1}, ir::DType::kI32), n.graph->makeConstant("iota", iota)});
                 n.output(n.op("MatMul", {n.op("Cast", {e}, {{"to", int64_t(1)}}), n.random({9, 4})}));
               },
               count("Gather"), 1, 0});
  w.push_back({"-fuse:conv_bn", "on", "off",
               [=](Net& n) {
                 V y = conv(n, image(n), 8, 4);
                 n.output(
                     n.op("BatchNormalization", {y, n.random({4}), n.random({4}), n.random({4}), n.random({4}, 1, 2)}));
               },
               [](const ir::Graph& g) { return countOp(g, "Mul"); }, 0, 1});
  w.push_back({"-fuse:conv_scale", "on", "off",
               [=](Net& n) { n.output(n.op("Mul", {conv(n, image(n), 8, 4), n.scalar(3)})); }, count("Mul"), 0, 1});
  w.push_back({"-fuse:conv_shift", "on", "off",
               [=](Net& n) { n.output(n.op("Add", {conv(n, image(n), 8, 4), n.scalar(3)})); }, count("Add"), 0, 1});
  w.push_back({"-fuse:scale_conv", "on", "off",
               [=](Net& n) { n.output(conv(n, n.op("Mul", {n.op("Relu", {image(n)}), n.scalar(3)}), 8, 4)); },
               count("Mul"), 0, 1});
  w.push_back({"-fuse:gemm_scale", "on", "off",
               [=](Net& n) { n.output(n.op("Mul", {n.op("MatMul", {row(n), n.random({8, 4})}), n.scalar(3)})); },
               count("Mul"), 0, 1});
  w.push_back({"-fuse:qkv", "off", "on",
               [=](Net& n) {
                 V x = row(n);
                 for (int i = 0; i < 3; i++) n.output(n.op("MatMul", {x, n.random({8, 4})}));
               },
               count("MatMul"), 3, 1});
  w.push_back({"-fuse:conv_siblings", "off", "on",
               [=](Net& n) {
                 V x = n.op("Relu", {image(n)});
                 for (int i = 0; i < 2; i++) n.output(n.op("Softmax", {conv(n, x, 8, 4)}));
               },
               count("Conv"), 2, 1});
  auto channelsLast = [](const char* op) {
    return [op](const ir::Graph& g) {
      int k = 0;
      for (auto& node : g.top().nodes) k += node->op == op && !node->outputs[0]->type.layout.isRowMajor();
      return k;
    };
  };
  w.push_back({"-layout:conv", "auto", "nchw",
               [=](Net& n) { n.output(n.op("ReduceMax", {conv(n, image(n), 8, 8), n.ints({2, 3})})); },
               channelsLast("Conv"), 1, 0});
  w.push_back({"-layout:first_conv", "auto", "cast",
               [](Net& n) { n.output(n.op("ReduceMax", {conv(n, n.input("x", {1, 3, 6, 6}), 3, 8), n.ints({2, 3})})); },
               count("LayoutCast"), 0, 1});
  w.push_back({"-layout:propagate", "on", "off",
               [=](Net& n) {
                 n.output(n.op("ReduceMax", {n.op("MaxPool", {conv(n, image(n), 8, 8)}, {{"kernel_shape", Ints{2, 2}}}),
                                             n.ints({2, 3})}));
               },
               channelsLast("MaxPool"), 1, 0});
  w.push_back({"-layout:absorb_transpose", "on", "off",
               [](Net& n) {
                 V x = n.op("Transpose", {n.input("x", {1, 6, 6, 8})}, {{"perm", Ints{0, 3, 1, 2}}});
                 n.output(n.op("ReduceMax", {conv(n, x, 8, 8), n.ints({2, 3})}));
               },
               count("LayoutCast"), 0, 1});
  w.push_back(
      {"-layout:absorb_cast", "on", "off",
       [=](Net& n) { n.output(n.op("ReduceMax", {conv(n, n.op("Softmax", {image(n)}), 8, 8), n.ints({2, 3})})); },
       count("LayoutCast"), 0, 1});
  w.push_back({"-layout:output_cast", "auto", "fused", [=](Net& n) { n.output(conv(n, image(n), 8, 8)); },
               [](const ir::Graph& g) { return int(g.top().outputs[0]->producer->op == "Conv"); }, 0, 1});
  return w;
}

TEST(PassKnobs, EachShowsItsEffect) {
  for (const GraphWitness& w : graphWitnesses()) {
    SCOPED_TRACE(w.knob);
    Net n;
    w.build(n);
    const auto& info = *knobs::Registry::builtin().find(w.knob);
    EXPECT_EQ(info.defaultValue, w.value);
    auto plain = optimise(*n.graph), first = optimise(*n.graph, std::string(w.knob) + "=" + w.value),
         second = optimise(*n.graph, std::string(w.knob) + "=" + w.other);
    EXPECT_EQ(plain->print(), first->print());
    EXPECT_NE(first->print(), second->print());
    EXPECT_EQ(w.measure(*first), w.expected) << first->print();
    EXPECT_EQ(w.measure(*second), w.expectedOther) << second->print();
    for (unsigned seed : {1u, 2u, 3u}) {
      expectSame(*n.graph, *first, randomInputs(*n.graph, seed));
      expectSame(*n.graph, *second, randomInputs(*n.graph, seed));
    }
  }
}
TEST(PassKnobs, ReadsAreRecorded) {
  Net n;
  V x = n.op("Relu", {n.input("x", {2, 3})}, {}, "producer");
  n.output(n.op("Mul", {x, n.op("Sigmoid", {x})}));
  auto route = knobs::Route::parse("-fuse:silu@producer=off");
  passes::PassContext ctx(route);
  passes::runPipeline(*n.graph, ctx);
  EXPECT_EQ(countOp(*n.graph, "Silu"), 0);
  EXPECT_EQ(ctx.reads["producer"].count(knob::fuse_silu.id), 1u);
  EXPECT_EQ(ctx.reads[""].count(knob::graph_fold_limit.id), 1u);
}
TEST(PassKnobs, WishesThatCannotBeTakenAreRefused) {
  Net n;
  V x = n.op("Softmax", {n.input("x", {2, 3, 8})});
  n.output(n.op("MatMul", {x, n.random({8, 4})}, {}, "alone"));
  auto route = knobs::Route::parse("-fuse:qkv@alone=on");
  passes::PassContext ctx(route);
  passes::runPipeline(*n.graph, ctx);
  ASSERT_EQ(ctx.refusals.size(), 1u);
  EXPECT_EQ(ctx.refusals[0].origins, std::vector<std::string>{"alone"});
  EXPECT_EQ(ctx.refusals[0].refusal.value, "on");
}
