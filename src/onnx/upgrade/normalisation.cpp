// BatchNormalization's training forms; GroupNormalization's scale per group.
#include <algorithm>

#include "base/error.h"
#include "onnx/upgrade.h"

namespace rutter::frontend {
namespace {

void batchNormSpatial(Upgrade& u) {
  if (u.takeInt("spatial").value_or(1) != 1)
    throw UserError("node {} (BatchNormalization): spatial=0 (statistics per element) is not supported", u.node.name);
}
/// Up to 14 there were five outputs; any of the later four meant training, which left them to be ignored otherwise.
void batchNormOutputs(Upgrade& u) {
  for (size_t i = 1; i < u.node.outputs.size(); i++) {
    ir::Value* v = u.node.outputs[i];
    if (v)
      throw UserError("node {} (BatchNormalization): output {} is for training, only inference is supported",
                      u.node.name, i);
  }
  if (!u.node.outputs.empty()) u.node.outputs.resize(1);
}

/// Up to 21 scale and bias had one element a group: each is repeated over its group's channels. The channel count is
/// read from the input's shape, so that it may be open; all of it folds to constants.
void groupNormPerChannel(Upgrade& u) {
  const int64_t groups = u.node.getInt("num_groups", 0);
  if (groups <= 0) throw UserError("node {} (GroupNormalization): attribute num_groups must be positive", u.node.name);
  if (!u.node.input(0) || !u.node.input(1) || !u.node.input(2)) return;  // the count check says so
  auto constant = [&](const char* what, std::vector<int64_t> v) {
    return u.graph.makeConstant(u.node.name + "." + what, ir::Tensor::ofInts(v));
  };
  ir::Value* channels = u.before("Shape", "channels", {u.node.input(0)}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  ir::Value* count = constant("groups", {groups});
  ir::Value* each = u.before("Div", "per_group", {channels, count});
  ir::Value* wide = u.before("Concat", "repeat", {count, each}, {{"axis", int64_t{0}}});
  for (size_t i : {1, 2}) {
    ir::Value* column =
        u.before("Reshape", i == 1 ? "scale_column" : "bias_column", {u.node.input(i), constant("column", {-1, 1})});
    ir::Value* full = u.before("Expand", i == 1 ? "scale_expand" : "bias_expand", {column, wide});
    u.graph.setInput(&u.node, i, u.before("Reshape", i == 1 ? "scale" : "bias", {full, channels}));
  }
}

}  // namespace

std::span<const UpgradeStep> normalisationSteps() {
  static const UpgradeStep steps[] = {
      {"BatchNormalization", 9, batchNormSpatial},
      {"BatchNormalization", 14, batchNormOutputs},
      {"GroupNormalization", 21, groupNormPerChannel},
  };
  return steps;
}

}  // namespace rutter::frontend
