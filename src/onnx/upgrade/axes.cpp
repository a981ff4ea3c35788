// Attributes that list axes, sizes or counts and became inputs: Reduce*, Squeeze, Unsqueeze, Split, TopK.
#include "onnx/upgrade.h"

namespace rutter::frontend {
namespace {

void axesToInput(Upgrade& u) {
  if (auto axes = u.takeInts("axes")) u.setConstant(1, "axes", ir::Tensor::ofInts(*axes));
}
void splitToInput(Upgrade& u) {
  if (auto split = u.takeInts("split")) u.setConstant(1, "split", ir::Tensor::ofInts(*split));
}
/// Without sizes the outputs' count was the number of parts; now it is an attribute.
void splitCount(Upgrade& u) {
  if (!u.node.input(1)) u.node.attrs["num_outputs"] = int64_t(u.node.outputs.size());
}

void topKToInput(Upgrade& u) {
  if (auto k = u.takeInt("k")) u.setConstant(1, "k", ir::Tensor::ofInts({*k}));
}

}  // namespace

std::span<const UpgradeStep> axesSteps() {
  static const UpgradeStep steps[] = {
      {"ReduceSum", 13, axesToInput},       {"ReduceMean", 18, axesToInput},   {"ReduceMax", 18, axesToInput},
      {"ReduceMin", 18, axesToInput},       {"ReduceProd", 18, axesToInput},   {"ReduceL1", 18, axesToInput},
      {"ReduceL2", 18, axesToInput},        {"ReduceLogSum", 18, axesToInput}, {"ReduceLogSumExp", 18, axesToInput},
      {"ReduceSumSquare", 18, axesToInput}, {"Squeeze", 13, axesToInput},      {"Unsqueeze", 13, axesToInput},
      {"Split", 13, splitToInput},          {"Split", 18, splitCount},         {"TopK", 10, topKToInput},
  };
  return steps;
}

}  // namespace rutter::frontend
