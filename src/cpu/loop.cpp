// Pointwise programs and copies over a space: the plain loop nest.
#include "base/error.h"
#include "cpu/nest.h"
#include "cpu/tactic.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::MachineProfile;
using codegen::Problem;
using codegen::ProblemKind;

class Loop final : public CpuTactic {
 public:
  std::string_view name() const override { return "loop"; }
  ProblemKind kind() const override { return ProblemKind::kLoop; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    return pwRefuses(p, m);
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    int64_t lanes = vectorLanes(p, c.get("vector"));
    Rows r = Rows::over(p, cheapestAxis(p, lanes).first);
    double length = r.axis < 0 ? 1 : double(p.optOf(p.space[size_t(r.axis)]));
    // Long programs have work enough to overlap; short ones need several vectors in flight.
    int64_t unroll = k.getOr(knob::pointwise_unroll, pwCost(p.epilogue) > 40 ? 1 : pwCost(p.epilogue) > 12 ? 2 : 4);
    while (!k.explicitly(knob::pointwise_unroll) && unroll > 1 && double(unroll * lanes) > length) unroll /= 2;
    bool mask = masksAreCheap(p, m);
    auto tail = k.get(knob::pointwise_tail);
    if (tail != "auto") mask = tail == "mask";
    double perPoint = bytesPerPoint(p) + 0.5 * pwCost(p.epilogue);
    r.split(p, m, perPoint, length, k.getOr(knob::pointwise_task_bytes, 0), lanes * unroll);
    c.set("lanes", lanes);
    c.set("unroll", unroll);
    c.set("mask", mask);
    r.toConfig(c);
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    return estimate(m, cheapestAxis(p, c.get("lanes")).second, p.bytes());
  }
  // Every vector of points is read before it is written.
  bool allowsInPlace() const override { return true; }
  codegen::Lowering lower(const Problem& p, const Config& c) const override {
    return oneLaunch(p, Rows::fromConfig(p, c).tasks(p));
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    Rows r = Rows::fromConfig(p, c);
    int lanes = r.axis < 0 ? 1 : int(c.get("lanes")), unroll = int(c.get("unroll"));
    e.beginKernel();
    forRows(e, p, r, [&](const Values& coord, Value* from, Value* to) {
      Points points(e, p, coord, r.axis);
      if (c.get("mask")) {
        vectorLoop(e, from, to, lanes, unroll, [&](const Values& s, Value* mask) { points.epilogue(s, lanes, mask); });
        return;
      }
      Value* whole = e.add(from, e.b.CreateAnd(e.sub(to, from), e.i64(-int64_t(lanes))));
      vectorLoop(e, from, whole, lanes, unroll, [&](const Values& s, Value* mask) { points.epilogue(s, lanes, mask); });
      e.loop(whole, to, 1, [&](Value* i) { points.epilogue({i}, 1, nullptr); });
    });
    e.endKernel();
  }
};
}  // namespace

const CpuTactic& loopTactic() {
  static const Loop t;
  return t;
}

}  // namespace rutter::cpu
