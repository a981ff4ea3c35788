// Every operator of the one list of pointwise operators has a kernel, which computes what the oracle computes.
#include "ops/pointwise.h"

#include <fmt/format.h>

#include "knobs/witness.h"

namespace rutter::test {

TEST(Pointwise, EveryOneHasAKernel) {
  using enum ops::Pointwise::Inputs;
  compiler::KernelCache cache;
  int compiled = 0;
  for (const ops::Pointwise& p : ops::allPointwise()) {
    const std::string op(p.name);
    SCOPED_TRACE(op);
    if (op == "Identity") continue;  // a view
    Net n;
    const bool logic = op == "Not" || op == "And" || op == "Or" || op == "Xor";
    const auto type = logic ? ir::DType::kBool : op == "Mod" ? ir::DType::kI32 : ir::DType::kF32;
    const int inputs = p.inputs == kOne || op == "Mod" ? 1 : p.inputs == kTwo ? 2 : 3;
    std::vector<ir::Value*> in;
    for (int i = 0; i < inputs; i++)
      in.push_back(n.input(fmt::format("x{}", i), {3, 37}, op == "Where" && i == 0 ? ir::DType::kBool : type));
    if (op == "Clip") in.insert(in.end(), {n.scalar(0.75), n.scalar(1.25)});
    if (op == "Mod") in.push_back(n.graph->makeConstant("by", ir::Tensor::scalar(type, 3)));
    Net::Attrs attrs;
    if (op == "Cast") attrs["to"] = int64_t(7);  // int64
    if (op == "Celu" || op == "ThresholdedRelu") attrs["alpha"] = 0.75f;
    ir::Value* y = n.graph->makeValue("y");
    ir::Node* node = n.graph->makeNode(n.graph->top(), op, in, {y});
    node->domain = p.domain;
    node->attrs = attrs;
    node->origins = {op};
    ops::inferNode(*n.graph, *node);
    n.output(y);
    Built b = build(*n.graph, "", "", cache);
    EXPECT_EQ(b.result.referenceNodes, 0);
    // Both signs where the operator is defined there.
    const bool positive = op == "Log" || op == "Sqrt" || op == "Pow" || op == "Div" || op == "Reciprocal";
    const auto x = randomInputs(*n.graph, 3, positive ? 0.5 : -2, 2);
    EXPECT_LE(relativeError(runBuilt(b, x), ops::evalGraph(*n.graph, x)), 1e-5);
    compiled++;
  }
  EXPECT_GT(compiled, 45);
}

}  // namespace rutter::test
