// Slice and Pad: attributes that became inputs; Scatter's new name.
#include "base/error.h"
#include "onnx/upgrade.h"

namespace rutter::frontend {
namespace {

void sliceToInputs(Upgrade& u) {
  auto starts = u.takeInts("starts"), ends = u.takeInts("ends"), axes = u.takeInts("axes");
  if (!starts || !ends) throw UserError("node {} (Slice): attributes starts and ends are wanted", u.node.name);
  u.setConstant(1, "starts", ir::Tensor::ofInts(*starts));
  u.setConstant(2, "ends", ir::Tensor::ofInts(*ends));
  if (axes) u.setConstant(3, "axes", ir::Tensor::ofInts(*axes));
}
void padToInputs(Upgrade& u) {
  auto pads = u.takeInts("pads");
  if (!pads) throw UserError("node {} (Pad): attribute pads is wanted", u.node.name);
  const ir::Value* x = u.node.input(0);
  const ir::DType type = x && x->type.known && ir::isFloat(x->type.dtype) ? x->type.dtype : ir::DType::kF32;
  auto value = u.takeFloat("value");
  u.setConstant(1, "pads", ir::Tensor::ofInts(*pads));
  if (value && *value != 0) u.setConstant(2, "value", ir::Tensor::scalar(type, *value));
}

void scatterElements(Upgrade& u) {
  u.node.op = "ScatterElements";
}

}  // namespace

std::span<const UpgradeStep> movementSteps() {
  static const UpgradeStep steps[] = {
      {"Slice", 10, sliceToInputs}, {"Pad", 11, padToInputs}, {"Scatter", 11, scatterElements}};
  return steps;
}

}  // namespace rutter::frontend
