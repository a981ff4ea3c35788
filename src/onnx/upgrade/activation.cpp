// Clip's bounds, Dropout's ratio, and the axis of Softmax and its kin.
#include "base/error.h"
#include "onnx/upgrade.h"

namespace rutter::frontend {
namespace {

void clipToInputs(Upgrade& u) {
  const ir::Value* x = u.node.input(0);
  // Clip was for floats only; an x of unknown type is float32 in all but the rarest file.
  const ir::DType type = x && x->type.known && ir::isFloat(x->type.dtype) ? x->type.dtype : ir::DType::kF32;
  auto low = u.takeFloat("min"), high = u.takeFloat("max");
  if (low) u.setConstant(1, "min", ir::Tensor::scalar(type, *low));
  if (high) u.setConstant(2, "max", ir::Tensor::scalar(type, *high));
}

/// In inference the ratio has no effect. Before opset 10 the mask had the data's type.
void dropout(Upgrade& u) {
  u.take("ratio");
  if (u.opset < 10 && u.node.output(1))
    throw UserError("node {} (Dropout): a mask from opset {} is not supported, from opset 10 on it is", u.node.name,
                    u.opset);
}

/// Before 13 all axes from `axis` (default 1) on were one: softmax over the flattened rest.
void softmaxFlattened(Upgrade& u) {
  const int64_t axis = u.takeInt("axis").value_or(1);
  u.node.attrs["axis"] = int64_t{-1};
  auto rank = u.rank(0);
  if (axis == -1 || (rank && axis == int64_t(*rank) - 1)) return;
  ir::Value* x = u.node.input(0);
  if (!x) throw UserError("node {} ({}): input 0 is missing", u.node.name, u.node.op);
  ir::Value* shape = u.before("Shape", "shape", {x});
  u.graph.setInput(&u.node, 0, u.before("Flatten", "flatten", {x}, {{"axis", axis}}));
  u.after("Reshape", "unflatten", {nullptr, shape});
}

}  // namespace

std::span<const UpgradeStep> activationSteps() {
  static const UpgradeStep steps[] = {
      {"Clip", 11, clipToInputs},           {"Dropout", 12, dropout},          {"Softmax", 13, softmaxFlattened},
      {"LogSoftmax", 13, softmaxFlattened}, {"Hardmax", 13, softmaxFlattened},
  };
  return steps;
}

}  // namespace rutter::frontend
