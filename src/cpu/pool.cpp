// Maximum and average pooling with any strides, dilations and pads; vectors along channels or along the last axis.
#include <cmath>

#include "base/error.h"
#include "cpu/nest.h"
#include "cpu/reduction.h"
#include "cpu/tactic.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::KDim;
using codegen::MachineProfile;
using codegen::Operand;
using codegen::Problem;
using codegen::ProblemKind;
using ir::DType;

bool isSigned(DType t) {
  return t == DType::kI8 || t == DType::kI16 || t == DType::kI32 || t == DType::kI64;
}
double taps(const Problem& p) {
  double n = 1;
  for (const KDim& d : p.getInts("kernel")) n *= double(p.optOf(d));
  return n;
}
// Vector instructions with vectors along `axis`.
double poolCost(const Problem& p, int axis, int64_t lanes) {
  size_t a = size_t(axis);
  double points = 1, n = double(std::max<int64_t>(1, p.optOf(p.space[a])));
  for (const KDim& d : p.space) points *= double(std::max<int64_t>(1, p.optOf(d)));
  const KDim& s = p.operands[0].strides[a];
  bool spatial = axis >= 2;
  bool near = s.is(1) && (!spatial || p.getInts("strides")[a - 2].is(1));
  double load = near ? (spatial ? 4 : 1) : 2.0 * double(lanes);
  double store = 0;
  for (const Operand& o : p.operands)
    if (o.output) store += o.strides[a].is(1) ? 1 : 2.0 * double(lanes);
  return points / n * (std::ceil(n / double(lanes)) * (taps(p) * (load + 1) + store + pwCost(p.epilogue)) + 10);
}

class Pool final : public CpuTactic {
 public:
  std::string_view name() const override { return "pool"; }
  ProblemKind kind() const override { return ProblemKind::kPool; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    if (auto r = pwRefuses(p, m)) return r;
    DType t = p.operands[0].dtype;
    if (t == DType::kBool) return "pooling of bool";
    if (p.word("op") != "max" && !ir::isFloat(t)) return fmt::format("averages of {}", ir::dtypeName(t));
    return {};
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    int64_t lanes = vectorLanes(p, c.get("vector"));
    int last = int(p.space.size()) - 1;
    int axis = poolCost(p, 1, lanes) <= poolCost(p, last, lanes) ? 1 : last;
    auto wish = k.get(knob::pool_vector);
    if (wish != "auto") axis = wish == "channels" ? 1 : last;
    double n = double(p.optOf(p.space[size_t(axis)]));
    int64_t unroll = k.getOr(knob::pool_unroll, 4);
    while (!k.explicitly(knob::pool_unroll) && unroll > 1 && double(unroll * lanes) > n) unroll /= 2;
    Rows r = Rows::over(p, axis);
    r.split(p, m, bytesPerPoint(p) + taps(p), n, 0, lanes * unroll);
    c.set("lanes", lanes);
    c.set("unroll", unroll);
    r.toConfig(c);
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    return estimate(m, poolCost(p, int(c.get("axis")), c.get("lanes")), p.bytes());
  }
  codegen::Lowering lower(const Problem& p, const Config& c) const override {
    return oneLaunch(p, Rows::fromConfig(p, c).tasks(p));
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    Rows r = Rows::fromConfig(p, c);
    int lanes = int(c.get("lanes"));
    e.beginKernel();
    forRows(e, p, r, [&](const Values& coord, Value* from, Value* to) {
      Points out(e, p, coord, r.axis);
      vectorLoop(e, from, to, lanes, int(c.get("unroll")), [&](const Values& starts, Value* mask) {
        Window w(e, p, coord, r.axis, lanes, starts, mask);
        out.epilogue(starts, lanes, mask, w.run());
      });
    });
    e.endKernel();
  }

 private:
  struct Window {
    Emitter& e;
    const Problem& p;
    const Values& coord;
    int axis, lanes;
    const Values& starts;
    Value* mask;
    const Operand& x;
    DType dt;
    bool max, include;
    size_t spatial;
    Monoid m;

    Window(Emitter& emitter, const Problem& problem, const Values& c, int a, int n, const Values& s, Value* active)
        : e(emitter),
          p(problem),
          coord(c),
          axis(a),
          lanes(n),
          starts(s),
          mask(active),
          x(problem.operands[0]),
          dt(x.dtype),
          max(problem.word("op") == "max"),
          include(!max && problem.getInt("include_pad") != 0),
          spatial(p.getInts("kernel").size()),
          m(max ? monoid::extreme(emitter, registerType(emitter, dt), true, isSigned(dt))
                : monoid::sum(emitter, registerType(emitter, dt))) {}

    const KDim& of(const char* what, size_t s) const { return p.getInts(what)[s]; }
    bool along(size_t s) const { return int(s) + 2 == axis; }
    // Input coordinate of tap 0.
    Value* origin(size_t s, Value* o) const { return e.sub(e.mul(o, of("strides", s)), e.dim(of("pads", s))); }
    // Taps t with 0 <= at + t * dilation < limit: [first, last).
    std::pair<Value*, Value*> range(size_t s, Value* at, Value* limit) const {
      Value* dil = e.dim(of("dilations", s));
      auto ceilDiv = [&](Value* v) { return e.udiv(e.add(e.max(v, e.i64(0)), e.sub(dil, e.i64(1))), dil); };
      Value* kernel = e.dim(of("kernel", s));
      return {e.min(ceilDiv(e.sub(e.i64(0), at)), kernel), e.min(ceilDiv(e.sub(limit, at)), kernel)};
    }

    // carried: an accumulator a vector, then (average along a spatial axis) a count a vector.
    Values nest(size_t s, Value* index, Value* laneOrigin, Value* in, const Values& carried) {
      if (s == spatial) return leaf(index, laneOrigin, in, carried);
      Value* stride = e.dim(x.strides[2 + s]);
      if (along(s))
        return e.loop(e.i64(0), e.dim(of("kernel", s)), 1, carried, [&](Value* t, const Values& acc) {
          return nest(s + 1, index, e.mul(t, of("dilations", s)), in, acc);
        });
      Value* at = origin(s, coord[2 + s]);
      auto [first, last] = range(s, at, e.dim(x.dims[2 + s]));
      return e.loop(first, last, 1, carried, [&](Value* t, const Values& acc) {
        Value* c = e.add(at, e.mul(t, of("dilations", s)));
        return nest(s + 1, e.add(index, e.mul(c, stride)), laneOrigin, in, acc);
      });
    }
    Values leaf(Value* index, Value* tapOffset, Value* in, const Values& carried) {
      Values out = carried;
      for (size_t u = 0; u < starts.size(); u++) {
        Value *first = starts[u], *step = e.i64(1), *active = mask;
        if (axis >= 2) {
          size_t s = size_t(axis) - 2;
          first = e.add(origin(s, starts[u]), tapOffset);
          step = e.dim(of("strides", s));
          Value* c = iota(e, lanes, first, step);
          Value* inside = e.b.CreateAnd(e.b.CreateICmpSGE(c, splat(e, e.i64(0), lanes)),
                                        e.b.CreateICmpSLT(c, splat(e, e.dim(x.dims[size_t(axis)]), lanes)));
          active = andMask(e, inside, mask);
        }
        Value* stride = e.dim(x.strides[size_t(axis)]);
        Value* v =
            loadLanes(e, dt, e.operand(0), e.add(index, e.mul(first, stride)), e.mul(step, stride), lanes, active);
        v = m.step({carried[u]}, {fromMemory(e, dt, v)})[0];
        // Lanes outside the input keep what they had; those outside the output do not matter.
        out[u] = axis >= 2 ? e.b.CreateSelect(active, v, carried[u]) : v;
        if (counts()) {
          Value* more = e.b.CreateFAdd(carried[starts.size() + u], llvm::ConstantFP::get(carried[u]->getType(), 1));
          out[starts.size() + u] = e.b.CreateSelect(active, more, carried[starts.size() + u]);
        }
      }
      return out;
    }
    bool counts() const { return !max && !include && axis >= 2; }
    // What a sum is divided by: the taps inside the input, or inside the padded input.
    Value* divisor(size_t u, const Values& done) {
      if (counts()) return done[starts.size() + u];
      llvm::Type* t = registerType(e, dt);
      Value* n = llvm::ConstantFP::get(vecType(t, lanes), 1);
      for (size_t s = 0; s < spatial; s++) {
        if (along(s)) {  // include_pad: per lane
          Value* limit = e.add(e.dim(x.dims[2 + s]), e.dim(of("pads", spatial + s)));
          Value* c = llvm::Constant::getNullValue(vecType(t, lanes));
          c = e.loop(e.i64(0), e.dim(of("kernel", s)), 1, {c}, [&](Value* tap, const Values& acc) {
            Value* at = e.add(origin(s, starts[u]), e.mul(tap, of("dilations", s)));
            Value* in = e.b.CreateICmpSLT(iota(e, lanes, at, e.dim(of("strides", s))), splat(e, limit, lanes));
            return Values{
                e.b.CreateSelect(in, e.b.CreateFAdd(acc[0], llvm::ConstantFP::get(vecType(t, lanes), 1)), acc[0])};
          })[0];
          n = e.b.CreateFMul(n, c);
          continue;
        }
        Value* at = origin(s, coord[2 + s]);
        Value* limit = e.dim(x.dims[2 + s]);
        auto [first, last] = range(s, at, include ? e.add(limit, e.dim(of("pads", spatial + s))) : limit);
        Value* count = include ? last : e.sub(last, first);
        n = e.b.CreateFMul(n, splat(e, e.b.CreateSIToFP(count, t), lanes));
      }
      return n;
    }
    Values run() {
      Values carried;
      for (size_t u = 0; u < starts.size(); u++) carried.push_back(m.init(lanes)[0]);
      if (counts())
        for (size_t u = 0; u < starts.size(); u++)
          carried.push_back(llvm::Constant::getNullValue(carried[0]->getType()));
      Value* index = e.i64(0);
      for (size_t a = 0; a < 2; a++)
        if (int(a) != axis) index = e.add(index, e.mul(coord[a], x.strides[a]));
      Values done = nest(0, index, e.i64(0), nullptr, carried);
      Values r;
      for (size_t u = 0; u < starts.size(); u++) r.push_back(max ? done[u] : e.b.CreateFDiv(done[u], divisor(u, done)));
      return r;
    }
  };
};
}  // namespace

const CpuTactic& poolTactic() {
  static const Pool t;
  return t;
}

}  // namespace rutter::cpu
