#include "cpu/conv_view.h"

#include <fmt/format.h>

namespace rutter::cpu {

std::optional<ConvView> convView(const Problem& p, std::string* why) {
  auto no = [&](std::string text) {
    if (why) *why = std::move(text);
    return std::nullopt;
  };
  size_t rank = p.space.size();
  if (rank != 3 && rank != 4)
    return no(fmt::format("convolutions over {} spatial axes are not compiled", int(rank) - 2));
  const auto &x = p.operands[0], &w = p.operands[1];
  if (x.dtype != ir::DType::kF32 || w.dtype != ir::DType::kF32) return no("only float32 convolutions are compiled");
  if (!w.constant) return no("weights that are computed");
  for (const KDim& d : w.dims)
    if (!d.isConstant()) return no("weights of a size known only at run time");
  for (const char* name : {"groups", "kernel", "strides", "dilations", "pads"})
    for (const KDim& d : p.getInts(name))
      if (!d.isConstant()) return no(fmt::format("{} known only at run time", name));
  for (size_t i = 2; i < p.operands.size(); i++)
    if (!p.operands[i].lo.empty()) return no("padded operands in the epilogue");
  bool flat = rank == 3;
  ConvView v;
  v.groups = p.getInt("groups");
  v.n = p.space[0];
  v.oc = p.space[1];
  v.ic = x.dims[1];
  if (!v.oc.isConstant() || !v.ic.isConstant()) return no("a channel count known only at run time");
  v.icg = v.ic.value / v.groups;
  v.ocg = v.oc.value / v.groups;
  auto pick = [&](const char* name, int64_t& h, int64_t& w) {
    h = flat ? (std::string_view(name) == "pads" ? 0 : 1) : p.getInt(name, 0);
    w = p.getInt(name, flat ? 0 : 1);
  };
  pick("kernel", v.kh, v.kw);
  pick("strides", v.sh, v.sw);
  pick("dilations", v.dh, v.dw);
  v.pt = flat ? 0 : p.getInt("pads", 0);
  v.pl = p.getInt("pads", flat ? 0 : 1);
  v.pb = flat ? 0 : p.getInt("pads", 2);
  v.pr = p.getInt("pads", flat ? 1 : 3);
  v.oh = flat ? KDim(1) : p.space[2];
  v.ow = p.space.back();
  v.ih = flat ? KDim(1) : x.dims[2];
  v.iw = x.dims.back();
  v.xn = x.strides[0];
  v.xc = x.strides[1];
  v.xh = flat ? KDim(0) : x.strides[2];
  v.xw = x.strides.back();
  v.wo = w.strides[0].value;
  v.wi = w.strides[1].value;
  v.wh = flat ? 0 : w.strides[2].value;
  v.ww = w.strides.back().value;
  v.hAxis = flat ? -1 : 2;
  v.wAxis = flat ? 2 : 3;
  return v;
}

bool outputsContiguous(const Problem& p, int axis) {
  for (size_t i = size_t(p.firstOutput()); i < p.operands.size(); i++)
    if (!p.operands[i].strides[size_t(axis)].is(1) && !p.space[size_t(axis)].is(1)) return false;
  return true;
}
bool usesIndex(const Problem& p, int axis) {
  for (const auto& i : p.epilogue.code)
    if (i.op == codegen::PwOp::kIndex && i.args[0] == axis) return true;
  return false;
}
bool pixelsCollapse(const Problem& p, const ConvView& v) {
  if (v.hAxis < 0 || v.oh.is(1)) return true;
  if (!v.ow.isConstant() || usesIndex(p, v.hAxis) || usesIndex(p, v.wAxis)) return false;
  for (size_t i = 2; i < p.operands.size(); i++) {
    const KDim &h = p.operands[i].strides[size_t(v.hAxis)], &w = p.operands[i].strides[size_t(v.wAxis)];
    if (!h.isConstant() || !w.isConstant() || h.value != w.value * v.ow.value) return false;
  }
  return true;
}

}  // namespace rutter::cpu
