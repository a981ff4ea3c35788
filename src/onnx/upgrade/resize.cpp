// Upsample and the first Resize: asymmetric coordinates, and inputs in another order.
#include "base/error.h"
#include "onnx/upgrade.h"

namespace rutter::frontend {
namespace {

void upsampleScales(Upgrade& u) {
  auto it = u.node.attrs.find("scales");
  if (it == u.node.attrs.end()) throw UserError("node {} (Upsample): attribute scales is wanted", u.node.name);
  auto scales = u.node.getFloats("scales");
  u.take("scales");
  u.setConstant(1, "scales", ir::Tensor::ofFloats({int64_t(scales.size())}, scales));
}
void upsampleToResize(Upgrade& u) {
  u.node.op = "Resize";
}

/// Resize-10 (and Upsample): output pixel i comes from i / scale; the nearest pixel is the one below when enlarging,
/// the one above when shrinking, as onnxruntime does it (the specification leaves it open).
void resizeInputs(Upgrade& u) {
  ir::Value* scales = u.node.input(1);
  if (!scales) throw UserError("node {} ({}): input 1 (scales) is missing", u.node.name, u.node.op);
  u.graph.setInput(&u.node, 1, nullptr);
  u.graph.setInput(&u.node, 2, scales);
  u.node.attrs["coordinate_transformation_mode"] = std::string("asymmetric");
  bool shrinks = false;
  if (const auto& t = scales->constant)
    for (int64_t i = 0; i < t->size(); i++) shrinks |= t->getDouble(i) < 1;
  u.node.attrs["nearest_mode"] = std::string(shrinks ? "ceil" : "floor");
}

/// Exporters write "left out" as an empty constant too.
void emptyInputs(Upgrade& u) {
  for (size_t i : {1, 2, 3})
    if (const ir::Value* v = u.node.input(i); v && v->constant && v->constant->size() == 0)
      u.graph.setInput(&u.node, i, nullptr);
}

}  // namespace

std::span<const UpgradeStep> resizeSteps() {
  static const UpgradeStep steps[] = {
      {"Upsample", 9, upsampleScales},
      {"Upsample", 10, upsampleToResize},
      {"Resize", 11, resizeInputs},
      {"Resize", kEveryOpset, emptyInputs},
  };
  return steps;
}

}  // namespace rutter::frontend
