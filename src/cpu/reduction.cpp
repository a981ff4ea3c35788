#include "cpu/reduction.h"

#include <cmath>

#include "base/error.h"
#include "cpu/math.h"

namespace rutter::cpu {
using codegen::Config;
using codegen::KDim;
using codegen::Operand;
using codegen::Problem;
using codegen::PwProgram;

std::vector<int64_t> reducedFlags(const Problem& p) {
  std::vector<int64_t> r;
  for (const KDim& d : p.getInts("reduced")) r.push_back(d.value);
  return r;
}
double reducedCount(const Problem& p) {
  double n = 1;
  auto red = reducedFlags(p);
  for (size_t a = 0; a < red.size(); a++)
    if (red[a]) n *= double(std::max<int64_t>(1, p.optOf(p.space[a])));
  return n;
}

double foldInstructions(const Problem& p, int axis, int64_t lanes, double passes) {
  auto red = reducedFlags(p);
  double points = 1;
  for (const KDim& d : p.space) points *= double(std::max<int64_t>(1, p.optOf(d)));
  if (axis < 0) return points * passes;
  size_t a = size_t(axis);
  bool inner = red[a] != 0;
  double n = double(std::max<int64_t>(1, p.optOf(p.space[a])));
  double per = pwCost(p.prologue) + 1;
  for (size_t i = size_t(p.anchors); i < p.operands.size(); i++) {
    const KDim& s = p.operands[i].strides[a];
    bool out = p.operands[i].output;
    if (out && inner && p.kind == codegen::ProblemKind::kReduce) continue;
    per += s.is(1) ? 1.0 : s.is(0) && !out ? 0.1 : 1.5 * double(lanes);
  }
  double rows = points / reducedCount(p);
  // Combining lanes; or starting a loop over the reduced axes.
  return passes * points / n * std::ceil(n / double(lanes)) * per +
         rows * (inner ? 20 : 10 / std::min(n, double(lanes)));
}
void configureFold(Config& c, const Problem& p, const codegen::MachineProfile& m, int wishInner, int64_t unroll,
                   double passes, int64_t taskBytes) {
  int64_t lanes = vectorLanes(p, c.get("vector"));
  auto red = reducedFlags(p);
  int best = -1;
  double bestCost = 1e300;
  for (int round = 0; round < 2 && best < 0; round++)  // the second without the wish
    for (int a = 0; a < int(p.space.size()); a++) {
      if (round == 0 && wishInner >= 0 && (red[size_t(a)] != 0) != (wishInner == 1)) continue;
      double cost = foldInstructions(p, a, lanes, passes);
      if (cost < bestCost) {
        bestCost = cost;
        best = a;
      }
    }
  bool inner = best < 0 || red[size_t(best)] != 0;
  double n = best < 0 ? 1 : double(p.optOf(p.space[size_t(best)]));
  while (unroll > 1 && double(unroll * lanes) > std::max(n, double(lanes))) unroll /= 2;
  c.set("inner", inner);
  c.set("lanes", lanes);
  c.set("unroll", unroll);
  c.set("fold_axis", best);
  Rows r = Rows::over(p, inner ? -1 : best, red);
  double perKept = bytesPerPoint(p) * reducedCount(p) * passes;
  r.split(p, m, perKept, inner ? 1 : n, taskBytes, inner ? 0 : lanes * unroll);
  r.toConfig(c);
}
Rows foldRows(const Problem& p, const Config& c) {
  return Rows::fromConfig(p, c, reducedFlags(p));
}

Fold::Fold(Emitter& emitter, const Problem& problem, const Config& c)
    : e(emitter),
      p(problem),
      axis(int(c.get("fold_axis"))),
      inner(c.get("inner") != 0),
      lanes(int(c.get("lanes"))),
      unroll(int(c.get("unroll"))) {
  if (axis < 0) lanes = unroll = 1;
  auto red = reducedFlags(p);
  for (int a = 0; a < int(red.size()); a++)
    if (red[size_t(a)] && a != axis) loops.push_back(a);
}
Value* Fold::count() const {
  Value* n = e.i64(1);
  auto red = reducedFlags(p);
  for (size_t a = 0; a < red.size(); a++)
    if (red[a]) n = e.mul(n, p.space[a]);
  return n;
}

Values Fold::nest(size_t level, Values coord, Value* index, const Kept& k, const Values& carried,
                  const PwProgram* program, bool outputs, const NestBody& body) const {
  if (level < loops.size()) {
    int a = loops[level];
    Value* n = e.dim(p.space[size_t(a)]);
    return e.loop(e.i64(0), n, 1, carried, [&](Value* i, const Values& acc) {
      Values inside = coord;
      inside[size_t(a)] = i;
      return nest(level + 1, inside, e.add(e.mul(index, n), i), k, acc, program, outputs, body);
    });
  }
  Points points(e, p, coord, axis, program);
  std::optional<Points> out;
  if (outputs) out.emplace(e, p, coord, axis);
  const Points* o = outputs ? &*out : nullptr;
  if (!inner || axis < 0) return body(points, o, axis < 0 ? Values{e.i64(0)} : k.starts, k.mask, index, carried);
  Value* n = e.dim(p.space[size_t(axis)]);
  Value* base = e.mul(index, n);
  return vectorLoop(e, e.i64(0), n, lanes, unroll, carried, [&](const Values& starts, Value* mask, const Values& acc) {
    return body(points, o, starts, mask, base, acc);
  });
}

std::vector<Values> Fold::fold(const Kept& k, const Monoid& m, const PwProgram* program, const Item& item) const {
  size_t chains = inner ? size_t(unroll) : k.starts.size();
  Values init = m.init(lanes);
  size_t width = init.size();
  Values carried;
  for (size_t u = 0; u < chains; u++) carried.insert(carried.end(), init.begin(), init.end());
  Values done = nest(
      0, k.coord, e.i64(0), k, carried, program, false,
      [&](const Points& points, const Points*, const Values& starts, Value* mask, Value* index, const Values& acc) {
        Values out = acc;
        std::vector<Values> items;
        for (size_t u = 0; u < starts.size(); u++)
          items.push_back(item({points, nullptr, starts[u], mask, inner ? e.add(index, starts[u]) : index, int(u)}));
        for (size_t u = 0; u < starts.size(); u++) {
          Values mine(acc.begin() + long(u * width), acc.begin() + long((u + 1) * width));
          Values next = m.step(mine, items[u]);
          for (size_t w = 0; w < width; w++)
            out[u * width + w] = inner && mask ? e.b.CreateSelect(mask, next[w], mine[w]) : next[w];
        }
        return out;
      });
  std::vector<Values> results;
  for (size_t u = 0; u < chains; u++)
    results.emplace_back(done.begin() + long(u * width), done.begin() + long((u + 1) * width));
  if (!inner) return results;
  while (results.size() > 1) {
    size_t half = results.size() / 2;
    for (size_t u = 0; u < half; u++) results[u] = m.merge(results[u], results[u + half]);
    results.resize(half);
  }
  Values v = results[0];
  for (int n = lanes / 2; n >= 1; n /= 2) {
    Values lo, hi;
    for (Value* x : v) {
      lo.push_back(sliceLanes(e, x, 0, n));
      hi.push_back(sliceLanes(e, x, n, n));
    }
    v = m.merge(lo, hi);
  }
  return {v};
}
void Fold::visit(const Kept& k, const PwProgram* program, const std::function<void(const At&)>& body) const {
  nest(0, k.coord, e.i64(0), k, {}, program, true,
       [&](const Points& points, const Points* out, const Values& starts, Value* mask, Value* index, const Values&) {
         for (size_t u = 0; u < starts.size(); u++)
           body({points, out, starts[u], mask, inner ? e.add(index, starts[u]) : index, int(u)});
         return Values{};
       });
}

namespace monoid {
namespace {
bool real(llvm::Type* t) {
  return t->isFloatingPointTy();
}
Values one(Value* v) {
  return {v};
}
Value* number(llvm::Type* t, int lanes, double v) {
  auto* type = vecType(t, lanes);
  return real(t) ? llvm::ConstantFP::get(type, v) : llvm::ConstantInt::get(type, uint64_t(int64_t(v)), true);
}
Value* start(llvm::Type* t, int lanes, bool max, bool isSigned) {
  if (real(t)) return number(t, lanes, max ? -INFINITY : INFINITY);
  unsigned bits = t->getIntegerBitWidth();
  llvm::APInt v = !isSigned ? (max ? llvm::APInt::getMinValue(bits) : llvm::APInt::getMaxValue(bits))
                            : (max ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits));
  return llvm::ConstantInt::get(vecType(t, lanes), v);
}
Value* better(Emitter& e, Value* a, Value* b, bool max, bool isSigned) {  // a beats b
  using P = llvm::CmpInst::Predicate;
  if (a->getType()->isFPOrFPVectorTy()) return e.b.CreateFCmp(max ? P::FCMP_OGT : P::FCMP_OLT, a, b);
  P p = isSigned ? (max ? P::ICMP_SGT : P::ICMP_SLT) : (max ? P::ICMP_UGT : P::ICMP_ULT);
  return e.b.CreateICmp(p, a, b);
}
}  // namespace

Monoid sum(Emitter& e, llvm::Type* t) {
  auto add = [&e, t](const Values& a, const Values& b) {
    return one(real(t) ? e.b.CreateFAdd(a[0], b[0]) : e.b.CreateAdd(a[0], b[0]));
  };
  return {[t](int lanes) { return one(number(t, lanes, 0)); }, add, add};
}
Monoid product(Emitter& e, llvm::Type* t) {
  auto mul = [&e, t](const Values& a, const Values& b) {
    return one(real(t) ? e.b.CreateFMul(a[0], b[0]) : e.b.CreateMul(a[0], b[0]));
  };
  return {[t](int lanes) { return one(number(t, lanes, 1)); }, mul, mul};
}
Monoid squares(Emitter& e, llvm::Type* t) {
  Monoid m = sum(e, t);
  m.step = [&e, t](const Values& a, const Values& v) {
    return one(real(t) ? mulAdd(e, v[0], v[0], a[0]) : e.b.CreateAdd(a[0], e.b.CreateMul(v[0], v[0])));
  };
  return m;
}
Monoid extreme(Emitter& e, llvm::Type* t, bool max, bool isSigned) {
  auto pick = [&e, t, max, isSigned](const Values& a, const Values& b) {
    if (real(t)) return one(max ? fmax(e, a[0], b[0]) : fmin(e, a[0], b[0]));
    return one(e.b.CreateSelect(better(e, a[0], b[0], max, isSigned), a[0], b[0]));
  };
  return {[t, max, isSigned](int lanes) { return one(start(t, lanes, max, isSigned)); }, pick, pick};
}
Monoid arg(Emitter& e, llvm::Type* t, bool max, bool isSigned) {
  // Lanes and chains see indices in ascending order, so a strict comparison keeps the first; merging compares indices.
  // The first NaN wins over all numbers.
  auto i32 = e.b.getInt32Ty();
  auto beats = [&e, max, isSigned](Value* b, Value* a) {
    Value* wins = better(e, b, a, max, isSigned);
    if (!real(a->getType()->getScalarType())) return wins;
    return e.b.CreateOr(wins, e.b.CreateAnd(e.b.CreateFCmpUNO(b, b), e.b.CreateFCmpORD(a, a)));
  };
  auto step = [&e, beats](const Values& a, const Values& b) {
    Value* wins =
        e.b.CreateOr(beats(b[0], a[0]), e.b.CreateICmpSLT(a[1], llvm::Constant::getNullValue(a[1]->getType())));
    return Values{e.b.CreateSelect(wins, b[0], a[0]), e.b.CreateSelect(wins, b[1], a[1])};
  };
  auto merge = [&e, beats](const Values& a, const Values& b) {
    auto* none = llvm::Constant::getNullValue(a[1]->getType());
    // Neither beats the other: they are equal, or both NaN.
    Value* equal = e.b.CreateNot(e.b.CreateOr(beats(a[0], b[0]), beats(b[0], a[0])));
    Value* wins = e.b.CreateOr(beats(b[0], a[0]), e.b.CreateAnd(equal, e.b.CreateICmpSLT(b[1], a[1])));
    wins = e.b.CreateAnd(e.b.CreateOr(wins, e.b.CreateICmpSLT(a[1], none)), e.b.CreateICmpSGE(b[1], none));
    return Values{e.b.CreateSelect(wins, b[0], a[0]), e.b.CreateSelect(wins, b[1], a[1])};
  };
  auto init = [t, i32, max, isSigned](int lanes) {
    return Values{start(t, lanes, max, isSigned), llvm::ConstantInt::get(vecType(i32, lanes), uint64_t(-1), true)};
  };
  return {init, step, merge};
}
}  // namespace monoid

}  // namespace rutter::cpu
