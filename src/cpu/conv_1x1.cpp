// Convolutions that read every pixel once, without borders or strides: a GEMM whose rows are all pixels. Its choices
// are those of gemm:* knobs.
#include "cpu/conv_view.h"
#include "cpu/tactic.h"

namespace rutter::cpu {

const CpuTactic& gemmTile();

namespace {
using codegen::Config;
using codegen::Lowering;
using codegen::MachineProfile;
using codegen::Operand;
using codegen::PwOp;

bool denseRows(const ConvView& v) {
  if (v.hAxis < 0 || v.oh.is(1)) return true;
  return v.iw.isConstant() && v.xh.isConstant() && v.xw.isConstant() && v.xh.value == v.xw.value * v.iw.value;
}
// The same problem as a product [n, pixels, ic] x [ic, oc]. Operands keep their numbers.
Problem asGemm(const Problem& p) {
  ConvView v = *convView(p, nullptr);
  KDim pixels = v.hAxis < 0 || v.oh.is(1) ? v.ow : v.ow.is(1) ? v.oh : KDim(v.oh.value * v.ow.value);
  bool vertical = v.hAxis >= 0 && v.ow.is(1) && !v.oh.is(1);
  Problem g;
  g.kind = codegen::ProblemKind::kGemm;
  g.anchors = 2;
  g.space = {v.n, pixels, v.oc};
  g.params = p.params;
  g.ints = p.ints;
  g.epilogue = p.epilogue;
  for (auto& i : g.epilogue.code)
    if (i.op == PwOp::kIndex && i.args[0] == 1) i.args[0] = 2;
  for (size_t i = 0; i < p.operands.size(); i++) {
    Operand o = p.operands[i];
    size_t row = size_t(vertical ? v.hAxis : v.wAxis);
    if (i == 0) {
      o.dims = {v.n, pixels, v.ic};
      o.strides = {v.xn, vertical ? v.xh : v.xw, v.xc};
    } else if (i == 1) {
      o.dims = {1, v.ic, v.oc};
      o.strides = {0, v.wi, v.wo};
    } else {
      o.strides = {o.strides[0], o.strides[row], o.strides[1]};
    }
    g.operands.push_back(std::move(o));
  }
  return g;
}

class Conv1x1 final : public CpuTactic {
 public:
  std::string_view name() const override { return "conv_1x1"; }
  codegen::ProblemKind kind() const override { return codegen::ProblemKind::kConv; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    std::string why;
    auto v = convView(p, &why);
    if (!v) return why;
    if (v->taps() != 1 || v->sh != 1 || v->sw != 1 || v->padded() || v->groups != 1)
      return "not a plain 1x1 convolution";
    bool line = v->hAxis < 0 || v->oh.is(1) || v->ow.is(1);
    if (!line && (!v->oh.isConstant() || !v->ow.isConstant())) return "height and width are known only at run time";
    if (!line && (!denseRows(*v) || !pixelsCollapse(p, *v))) return "rows of pixels do not follow each other in memory";
    for (int axis : {v->hAxis, v->wAxis})
      if (axis >= 0 && usesIndex(p, axis)) return "the epilogue needs coordinates of pixels";
    return gemmTile().refuses(asGemm(p), m);
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c = gemmTile().configure(asGemm(p), m, k);
    c.tactic = name();
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    return gemmTile().cost(asGemm(p), c, m);
  }
  Lowering lower(const Problem& p, const Config& c) const override { return gemmTile().lower(asGemm(p), c); }
  void emit(const Problem& p, const Config& c, const MachineProfile& m, Emitter& e) const override {
    gemmTile().emit(asGemm(p), c, m, e);
  }
};
}  // namespace

const CpuTactic& conv1x1() {
  static const Conv1x1 t;
  return t;
}

}  // namespace rutter::cpu
