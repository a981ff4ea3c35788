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

/// Resize-10 (and Upsample): output pixel i comes from i / scale; the nearest pixel is the one below on axes that grow,
/// the one above on axes that shrink, as onnxruntime does it (the specification leaves it open). Where both occur, a
/// first node enlarges and a second shrinks.
void resizeInputs(Upgrade& u) {
  ir::Value* scales = u.node.input(1);
  if (!u.node.input(0) || !scales)
    throw UserError("node {} ({}): inputs 0 (X) and 1 (scales) are wanted", u.node.name, u.node.op);
  u.graph.setInput(&u.node, 1, nullptr);
  u.graph.setInput(&u.node, 2, scales);
  auto& attrs = u.node.attrs;
  attrs["coordinate_transformation_mode"] = std::string("asymmetric");
  attrs["nearest_mode"] = std::string("floor");
  if (!scales->constant || scales->constant->dtype() != ir::DType::kF32) return;
  ir::Tensor larger(ir::DType::kF32, scales->constant->shape()), smaller(ir::DType::kF32, scales->constant->shape());
  bool grows = false, shrinks = false;
  for (int64_t i = 0; i < scales->constant->size(); i++) {
    const double s = scales->constant->getDouble(i);
    grows |= s > 1;
    shrinks |= s < 1;
    larger.setDouble(i, s > 1 ? s : 1);
    smaller.setDouble(i, s < 1 ? s : 1);
  }
  if (!shrinks) return;
  if (grows && u.node.getString("mode", "nearest") == "nearest") {
    ir::Value* factors = u.graph.makeConstant(u.node.name + ".larger", std::move(larger));
    u.graph.setInput(&u.node, 0, u.before("Resize", "enlarge", {u.node.input(0), nullptr, factors}, attrs));
    u.setConstant(2, "smaller", std::move(smaller));
  }
  attrs["nearest_mode"] = std::string("ceil");
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
