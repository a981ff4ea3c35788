// Reductions: sums, extremes, norms, logsumexp, argmax and argmin over any set of axes.
#include "base/error.h"
#include "cpu/math.h"
#include "cpu/reduction.h"
#include "cpu/tactic.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::MachineProfile;
using codegen::Problem;
using codegen::ProblemKind;
using ir::DType;

bool isSigned(DType t) {
  return t == DType::kI8 || t == DType::kI16 || t == DType::kI32 || t == DType::kI64;
}
DType itemType(const Problem& p) {
  return p.prologue.code.at(size_t(p.prologue.outputs.at(0))).type;
}

class Reduce final : public CpuTactic {
 public:
  std::string_view name() const override { return "reduce"; }
  ProblemKind kind() const override { return ProblemKind::kReduce; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    if (auto r = pwRefuses(p, m)) return r;
    std::string op = p.word("op");
    DType t = itemType(p);
    if (t == DType::kBool) return "reductions of bool";
    if (!ir::isFloat(t) && (op == "l2" || op == "logsumexp")) return fmt::format("{} of {}", op, ir::dtypeName(t));
    if (t == DType::kF64 && op == "logsumexp") return "logsumexp of float64";
    if (op.rfind("arg", 0) == 0) {
      double most = 1;
      auto red = reducedFlags(p);
      for (size_t a = 0; a < red.size(); a++)
        if (red[a]) most *= double(p.maxOf(p.space[a]));
      if (most > 2147483647.0) return "more than 2^31 - 1 values an index";
    }
    return {};
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    auto vector = k.get(knob::reduce_vector);
    int wish = vector == "auto" ? -1 : vector == "reduced";
    configureFold(c, p, m, wish, k.getOr(knob::reduce_chains, 4), p.word("op") == "logsumexp" ? 2 : 1,
                  k.getOr(knob::reduce_task_bytes, 0));
    if (wish >= 0 && c.get("inner") != wish) k.refuse(knob::reduce_vector, "there is no such axis");
    if (auto n = k.get(knob::reduce_chains); n && *n != c.get("unroll"))
      k.refuse(knob::reduce_chains, "the vectors' axis is too short");
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    return estimate(m, foldInstructions(p, int(c.get("fold_axis")), c.get("lanes"), 1), p.bytes());
  }
  codegen::Lowering lower(const Problem& p, const Config& c) const override {
    return oneLaunch(p, foldRows(p, c).tasks(p));
  }

  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    e.beginKernel();
    Fold f(e, p, c);
    forRows(e, p, foldRows(p, c), [&](const Values& coord, Value* from, Value* to) {
      if (f.inner) {
        Values r = combine(e, p, f, {coord, {}, nullptr});
        Points(e, p, coord, -1).epilogue({e.i64(0)}, 1, nullptr, r);
        return;
      }
      Points out(e, p, coord, f.axis);
      vectorLoop(e, from, to, f.lanes, f.unroll, [&](const Values& starts, Value* mask) {
        out.epilogue(starts, f.lanes, mask, combine(e, p, f, {coord, starts, mask}));
      });
    });
    e.endKernel();
  }

 private:
  // The reduced value of each kept vector (inner: a scalar).
  Values combine(Emitter& e, const Problem& p, const Fold& f, const Fold::Kept& kept) const {
    std::string op = p.word("op");
    DType dt = itemType(p);
    llvm::Type* t = registerType(e, dt);
    auto load = [&](const Fold::At& at) {
      return emitPw(e, p, p.prologue, at.points.env(at.start, f.lanes, at.mask))[0];
    };
    auto plain = [&](const Fold::At& at) { return Values{load(at)}; };
    auto firsts = [](const std::vector<Values>& v, size_t which) {
      Values r;
      for (const Values& x : v) r.push_back(x[which]);
      return r;
    };
    if (op == "argmax" || op == "argmin") {
      auto item = [&](const Fold::At& at) {
        Value* i = e.b.CreateTrunc(f.inner ? iota(e, f.lanes, at.index, e.i64(1)) : splat(e, at.index, f.lanes),
                                   vecType(e.b.getInt32Ty(), f.lanes));
        return Values{load(at), i};
      };
      Values r = firsts(f.fold(kept, monoid::arg(e, t, op == "argmax", isSigned(dt)), &p.prologue, item), 1);
      for (Value*& v : r) {  // no index wins in an empty row
        v = e.b.CreateSelect(e.b.CreateICmpSLT(v, llvm::Constant::getNullValue(v->getType())),
                             llvm::Constant::getNullValue(v->getType()), v);
        v = e.b.CreateSExt(v, vecType(e.b.getInt64Ty(), lanesOf(v)));
      }
      return r;
    }
    if (op == "logsumexp") {
      Values top = firsts(f.fold(kept, monoid::extreme(e, t, true, true), &p.prologue, plain), 0);
      for (Value*& v : top)  // infinite maxima would give inf - inf
        v = e.b.CreateSelect(e.b.CreateFCmpOEQ(emitAbs(e, v), floats(e, INFINITY, lanesOf(v))),
                             floats(e, 0, lanesOf(v)), v);
      Values sums = firsts(f.fold(kept, monoid::sum(e, t), &p.prologue,
                                  [&](const Fold::At& at) {
                                    Value* m = f.inner ? splat(e, top[0], f.lanes) : top[size_t(at.slot)];
                                    return Values{emitExp(e, e.b.CreateFSub(load(at), m))};
                                  }),
                           0);
      for (size_t i = 0; i < sums.size(); i++) sums[i] = e.b.CreateFAdd(emitLog(e, sums[i]), top[i]);
      return sums;
    }
    Monoid m = op == "max" || op == "min"    ? monoid::extreme(e, t, op == "max", isSigned(dt))
               : op == "prod"                ? monoid::product(e, t)
               : op == "sumsq" || op == "l2" ? monoid::squares(e, t)
                                             : monoid::sum(e, t);
    auto item = [&](const Fold::At& at) -> Values {
      Value* v = load(at);
      if (op != "l1") return {v};
      if (t->isFloatingPointTy()) return {emitAbs(e, v)};
      if (!isSigned(dt)) return {v};
      return {e.b.CreateSelect(e.b.CreateICmpSLT(v, llvm::Constant::getNullValue(v->getType())), e.b.CreateNeg(v), v)};
    };
    Values r = firsts(f.fold(kept, m, &p.prologue, item), 0);
    for (Value*& v : r) {
      int n = lanesOf(v);
      if (op == "l2") v = emitSqrt(e, v);
      if (op != "mean") continue;
      Value* count = f.count();
      if (t->isFloatingPointTy())
        v = e.b.CreateFDiv(v, splat(e, e.b.CreateSIToFP(count, t), n));
      else
        v = e.b.CreateSDiv(v, splat(e, e.b.CreateTrunc(e.max(count, e.i64(1)), t), n));
    }
    return r;
  }
};
}  // namespace

const CpuTactic& reduceTactic() {
  static const Reduce t;
  return t;
}

}  // namespace rutter::cpu
