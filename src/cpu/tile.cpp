#include "cpu/tile.h"

#include <algorithm>

namespace rutter::cpu {
namespace {

int lanesAt(const Gen& g, const SumTile& t, int vector) {
  return t.lastLanes && t.bMasks.empty() && vector + 1 == t.vectors ? t.lastLanes : g.isa.lanes;
}

// One step of the innermost loop at pointers a and b.
void step(Gen& g, const SumTile& t, const SumLoop& inner, Value* a, Value* b, int u, Values& acc) {
  Values bv;
  Value* bp = g.at(b, g.mul(inner.bStride, g.i64(u)));
  Value* ap = g.at(a, g.mul(inner.aStride, g.i64(u)));
  for (int j = 0; j < t.vectors; j++) {
    if (int n = lanesAt(g, t, j); n < g.isa.lanes) {
      auto* type = llvm::FixedVectorType::get(g.f32(), unsigned(n));
      bv.push_back(g.b.CreateAlignedLoad(type, g.at(bp, int64_t(j) * g.isa.lanes),
                                         llvm::Align(uint64_t(std::min(t.bAlign, 4 * n)))));
      continue;
    }
    bv.push_back(g.loadVec(g.f32(), g.at(bp, int64_t(j) * g.isa.lanes),
                           t.bMasks.empty() ? nullptr : t.bMasks[size_t(j)], t.bAlign));
  }
  if (t.prefetch > 0) {
    Value* pp = g.at(bp, g.mul(inner.bStride, g.i64(t.prefetch)));
    for (int j = 0; j < t.vectors; j += std::max(1, 16 / g.isa.lanes)) g.prefetch(g.at(pp, int64_t(j) * g.isa.lanes));
  }
  for (int i = 0; i < t.rows; i++) {
    Value* scalar = g.load(g.f32(), g.at(ap, t.rowOffset(i)));
    for (int j = 0; j < t.vectors; j++) {
      size_t k = size_t(i * t.vectors + j);
      acc[k] = g.mulAdd(g.b.CreateVectorSplat(unsigned(lanesAt(g, t, j)), scalar), bv[size_t(j)], acc[k]);
    }
  }
}

// Steps from `level` inwards if they are constant, else -1.
int64_t stepsFrom(const SumTile& t, size_t level) {
  int64_t total = 1;
  for (; level < t.loops.size(); level++) {
    int64_t b = 0, e = 0;
    if (!Gen::isConst(t.loops[level].begin, &b) || !Gen::isConst(t.loops[level].end, &e)) return -1;
    total *= std::max<int64_t>(e - b, 0);
  }
  return total;
}

Values nest(Gen& g, const SumTile& t, size_t level, Value* a, Value* b, Values acc) {
  const SumLoop& l = t.loops[level];
  // Few channels make short loops, whose ends cost more than their bodies: laid out straight.
  int64_t steps = stepsFrom(t, level);
  if (steps >= 0 && steps <= 8 * t.unroll && level + 1 < t.loops.size()) {
    int64_t begin = 0, end = 0;
    Gen::isConst(l.begin, &begin);
    Gen::isConst(l.end, &end);
    for (int64_t i = begin; i < end; i++)
      acc = nest(g, t, level + 1, g.at(a, g.mul(g.i64(i), l.aStride)), g.at(b, g.mul(g.i64(i), l.bStride)), acc);
    return acc;
  }
  if (level + 1 < t.loops.size())
    return g.loop(l.begin, l.end, 1, acc, [&](Value* i, const Values& c) {
      return nest(g, t, level + 1, g.at(a, g.mul(i, l.aStride)), g.at(b, g.mul(i, l.bStride)), c);
    });
  a = g.at(a, g.mul(l.begin, l.aStride));
  b = g.at(b, g.mul(l.begin, l.bStride));
  // Steps in groups of `unroll`, then one at a time. Pointers are carried so that every address is base + constant.
  Value* n = g.sub(l.end, l.begin);
  int64_t count = 0;
  bool constant = Gen::isConst(n, &count);
  int u = constant ? int(std::min<int64_t>(t.unroll, std::max<int64_t>(count, 1))) : t.unroll;
  Value* main = constant ? g.i64(count / u * u) : g.sub(n, g.rem(n, g.i64(u)));
  acc.push_back(a);
  acc.push_back(b);
  auto body = [&](int steps) {
    return [&, steps](Value*, const Values& c) {
      Values next = c;
      Value* bp = next.back();
      next.pop_back();
      Value* ap = next.back();
      next.pop_back();
      for (int s = 0; s < steps; s++) step(g, t, l, ap, bp, s, next);
      next.push_back(g.at(ap, g.mul(l.aStride, g.i64(steps))));
      next.push_back(g.at(bp, g.mul(l.bStride, g.i64(steps))));
      return next;
    };
  };
  acc = g.loop(g.i64(0), main, u, acc, body(u));
  if (constant && count % u)
    acc = body(int(count % u))(nullptr, acc);
  else if (!constant && u > 1)
    acc = g.loop(main, n, 1, acc, body(1));
  acc.resize(acc.size() - 2);
  return acc;
}
}  // namespace

Values emitSumTile(Gen& g, const SumTile& t) {
  Values acc = t.init;
  if (acc.empty()) acc.assign(size_t(t.rows * t.vectors), g.zero());
  // The last vectors are narrowed on the way in and widened on the way out.
  int narrow = lanesAt(g, t, t.vectors - 1);
  auto resizeLast = [&](int lanes, int existing) {
    std::vector<int> lane(static_cast<size_t>(lanes), -1);
    for (int i = 0; i < std::min(lanes, existing); i++) lane[size_t(i)] = i;
    for (int i = 0; i < t.rows; i++) {
      Value*& v = acc[size_t((i + 1) * t.vectors - 1)];
      v = g.b.CreateShuffleVector(v, llvm::PoisonValue::get(v->getType()), lane);
    }
  };
  if (narrow < g.isa.lanes) resizeLast(narrow, g.isa.lanes);
  acc = nest(g, t, 0, t.a, t.b, acc);
  if (narrow < g.isa.lanes) resizeLast(g.isa.lanes, narrow);
  return acc;
}

int leadingLanes(const Gen& g, Value* mask) {
  auto* c = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (!c || g.isa.lanes < 16) return 0;  // only the widest vectors cost more than their half
  for (unsigned i = unsigned(g.isa.lanes) / 2; i < unsigned(g.isa.lanes); i++) {
    auto* bit = c->getAggregateElement(i);
    if (!bit || !bit->isNullValue()) return 0;
  }
  return g.isa.lanes / 2;
}

void emitSumPart(Gen& g, SumTile t, const SumPart& part, const std::function<void(const Values&)>& finish) {
  Values start = g.e.branch(
      part.first, [&] { return Values(size_t(t.rows * t.vectors), g.zero()); },
      [&] {
        Values v;
        for (int i = 0; i < t.rows; i++)
          for (int j = 0; j < t.vectors; j++) v.push_back(g.loadVec(g.f32(), part.place(i, j), nullptr, 4));
        return v;
      });
  t.init = start;
  Values acc = emitSumTile(g, t);
  g.e.branch(
      part.last,
      [&] {
        finish(acc);
        return Values{};
      },
      [&] {
        for (int i = 0; i < t.rows; i++)
          for (int j = 0; j < t.vectors; j++) g.storeVec(acc[size_t(i * t.vectors + j)], part.place(i, j), nullptr, 4);
        return Values{};
      });
}

void emitTiles(Gen& g, Value* begin, Value* end, Value* total, int tile, const std::function<void(Value*, int)>& body) {
  int64_t n = 0;
  if (Gen::isConst(total, &n)) {
    Value* whole = g.i64(n / tile * tile);
    g.loop(begin, g.min(end, whole), tile, [&](Value* at) { body(at, tile); });
    if (n % tile) g.ifThen(g.isBelow(g.max(begin, whole), end), [&] { body(whole, int(n % tile)); });
    return;
  }
  Value* at = begin;
  for (int size : tileCascade(tile)) {
    Value* to = g.add(at, g.floorTo(g.sub(end, at), size));
    g.loop(at, to, size, [&](Value* x) { body(x, size); });
    at = to;
  }
}

int maxTileRows(const VectorIsa& isa, int vectors) {
  // With one vector a broadcast folds into the multiplication's memory operand.
  int spare = vectors + (vectors == 1 && isa.broadcast ? 0 : 1) + (isa.fma ? 0 : 1);
  return std::max(1, (isa.registers - spare) / vectors);
}

double tileStepCost(const VectorIsa& isa, int rows, int vectors) {
  // Latency of an FMA is about four cycles at one to two a cycle: fewer than eight accumulators wait for each other.
  double arithmetic = std::max(rows * vectors, 8);
  // Loads of B come from L2 in the worst case, at half a vector a cycle; broadcasts are cheap but not free.
  return arithmetic + 0.35 * vectors + 0.05 * rows;
}

std::vector<int> tileCascade(int tile) {
  std::vector<int> r{tile};
  for (int h = 16; h >= 1; h /= 2)
    if (h < tile) r.push_back(h);
  return r;
}

}  // namespace rutter::cpu
