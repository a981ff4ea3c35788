#include "cpu/tile.h"

#include <algorithm>

namespace rutter::cpu {
namespace {

// One step of the innermost loop at pointers a and b.
void step(Gen& g, const SumTile& t, const SumLoop& inner, Value* a, Value* b, int u, Values& acc) {
  Values bv;
  Value* bp = g.at(b, g.mul(inner.bStride, g.i64(u)));
  Value* ap = g.at(a, g.mul(inner.aStride, g.i64(u)));
  for (int j = 0; j < t.vectors; j++)
    bv.push_back(g.loadVec(g.f32(), g.at(bp, int64_t(j) * g.isa.lanes),
                           t.bMasks.empty() ? nullptr : t.bMasks[size_t(j)], t.bAlign));
  if (t.prefetch > 0) {
    Value* pp = g.at(bp, g.mul(inner.bStride, g.i64(t.prefetch)));
    for (int j = 0; j < t.vectors; j += std::max(1, 16 / g.isa.lanes)) g.prefetch(g.at(pp, int64_t(j) * g.isa.lanes));
  }
  for (int i = 0; i < t.rows; i++) {
    Value* s = g.splat(g.load(g.f32(), g.at(ap, t.rowOffset(i))));
    for (int j = 0; j < t.vectors; j++) {
      size_t k = size_t(i * t.vectors + j);
      acc[k] = g.mulAdd(s, bv[size_t(j)], acc[k]);
    }
  }
}

Values nest(Gen& g, const SumTile& t, size_t level, Value* a, Value* b, Values acc) {
  const SumLoop& l = t.loops[level];
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
  return nest(g, t, 0, t.a, t.b, acc);
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
