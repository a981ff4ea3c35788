#include "cpu/gemm_block.h"

#include <algorithm>

namespace rutter::cpu {
namespace {

class Block {
 public:
  Block(Gen& g, const GemmBlock& s) : g_(g), s_(s) {}
  void emit() {
    if (!s_.blockK) {
      part_ = {g_.i64(0), s_.k, nullptr, nullptr};
      tiles();
      return;
    }
    g_.loop(g_.i64(0), s_.k, s_.blockK, [&](Value* k0) {
      Value* k1 = g_.min(g_.add(k0, g_.i64(s_.blockK)), s_.k);
      part_ = {k0, k1, g_.b.CreateICmpEQ(k0, g_.i64(0)), g_.b.CreateICmpEQ(k1, s_.k)};
      tiles();
    });
  }

 private:
  void tiles() {
    if (s_.columnsOuter)
      overColumns([&](Value* n, int vectors, const Values& masks) {
        overRows([&](Value* m, int rows) { tile(m, n, rows, vectors, masks); });
      });
    else
      overRows([&](Value* m, int rows) {
        overColumns([&](Value* n, int vectors, const Values& masks) { tile(m, n, rows, vectors, masks); });
      });
  }
  void overColumns(const std::function<void(Value*, int, const Values&)>& body) {
    emitColumns(g_, s_.n0, s_.n1, s_.n, s_.tileVectors, body);
  }
  void overRows(const std::function<void(Value*, int)>& body) { emitTiles(g_, s_.m0, s_.m1, s_.m, s_.tileRows, body); }
  void tile(Value* m, Value* n, int rows, int vectors, const Values& masks) {
    SumTile t;
    t.rows = rows;
    t.vectors = vectors;
    t.rowOffset = [this](int i) { return g_.mul(s_.aRow, g_.i64(i)); };
    t.a = g_.at(s_.a, g_.mul(g_.sub(m, s_.m0), s_.aRow));
    t.b = s_.b(n);
    t.bAlign = s_.bAlign;
    if (s_.bMasked) t.bMasks = masks;
    t.lastLanes = leadingLanes(g_, masks.back());
    t.loops = {{part_.k0, part_.k1, s_.aCol, s_.bRow}};
    t.unroll = s_.unroll;
    t.prefetch = s_.prefetch;
    if (!part_.first) {
      s_.finish(m, n, rows, vectors, masks, emitSumTile(g_, t));
      return;
    }
    SumPart part{part_.first, part_.last, [&](int i, int j) {
                   Value* p = g_.at(s_.partial, g_.mul(g_.sub(m, s_.m0), g_.i64(s_.partialPitch)));
                   return g_.at(g_.at(p, g_.sub(n, s_.n0)), int64_t(i) * s_.partialPitch + int64_t(j) * g_.isa.lanes);
                 }};
    emitSumPart(g_, t, part, [&](const Values& acc) { s_.finish(m, n, rows, vectors, masks, acc); });
  }

  struct Part {
    Value *k0, *k1, *first, *last;
  };
  Gen& g_;
  const GemmBlock& s_;
  Part part_{};
};
}  // namespace

void emitColumns(Gen& g, Value* n0, Value* n1, Value* n, int tileVectors,
                 const std::function<void(Value*, int, const Values&)>& body) {
  int64_t total = 0, columns = int64_t(tileVectors) * g.isa.lanes;
  bool constant = Gen::isConst(n, &total);
  Value* whole = constant ? g.i64(total / columns * columns) : g.floorTo(n, columns);
  g.loop(n0, g.min(n1, whole), columns, [&](Value* c) { body(c, tileVectors, Values(size_t(tileVectors))); });
  if (constant && total % columns == 0) return;
  // The last columns: as few vectors as they need if their number is known, masks otherwise.
  int64_t left = total % columns;
  int vectors = constant ? int((left + g.isa.lanes - 1) / g.isa.lanes) : tileVectors;
  g.ifThen(g.isBelow(g.max(n0, whole), n1), [&] {
    Values masks;
    for (int j = 0; j < vectors; j++) {
      Value* rest = constant ? g.i64(left) : g.sub(n, whole);
      masks.push_back(g.maskBelow(g.sub(rest, g.i64(int64_t(j) * g.isa.lanes))));
    }
    body(whole, vectors, masks);
  });
}

void emitGemmBlock(Gen& g, const GemmBlock& s) {
  Block(g, s).emit();
}

Values transposeSquare(Gen& g, Values rows) {
  // Interleaving vector i with vector i + n/2, log2(n) times, transposes.
  size_t n = rows.size();
  std::vector<int> low, high;
  for (int i = 0; i < int(n) / 2; i++) {
    low.insert(low.end(), {i, int(n) + i});
    high.insert(high.end(), {int(n) / 2 + i, int(n) + int(n) / 2 + i});
  }
  for (size_t round = 1; round < n; round *= 2) {
    Values next(n);
    for (size_t i = 0; i < n / 2; i++) {
      next[2 * i] = g.b.CreateShuffleVector(rows[i], rows[i + n / 2], low);
      next[2 * i + 1] = g.b.CreateShuffleVector(rows[i], rows[i + n / 2], high);
    }
    rows = next;
  }
  return rows;
}

void emitPackPanel(Gen& g, const PackPanel& s) {
  int lanes = g.isa.lanes;
  int64_t columns = int64_t(s.vectors) * lanes, row = 0, col = 0;
  int align = lanes * 4;
  auto out = [&](Value* k, int j) { return g.at(g.at(s.out, g.mul(k, g.i64(columns))), int64_t(j) * lanes); };
  if (Gen::isConst(s.bCol, &col) && col == 1) {
    Values masks;
    for (int j = 0; j < s.vectors; j++) masks.push_back(g.maskBelow(g.sub(s.columns, g.i64(int64_t(j) * lanes))));
    g.loop(g.i64(0), s.k, 1, [&](Value* k) {
      Value* src = g.at(s.b, g.mul(k, s.bRow));
      for (int j = 0; j < s.vectors; j++)
        g.storeVec(g.loadVec(g.f32(), g.at(src, int64_t(j) * lanes), masks[size_t(j)], 4), out(k, j), nullptr, align);
    });
    return;
  }
  if (Gen::isConst(s.bRow, &row) && row == 1) {
    // Columns are contiguous along k: squares are transposed in registers. Missing columns read nothing.
    Value* none = llvm::Constant::getNullValue(g.vec(g.b.getInt1Ty()));
    g.loop(g.i64(0), s.k, lanes, [&](Value* k) {
      Value* left = g.sub(s.k, k);
      Value* mask = g.maskBelow(left);
      if (!mask) mask = llvm::Constant::getAllOnesValue(g.vec(g.b.getInt1Ty()));
      g.loop(g.i64(0), g.i64(s.vectors), 1, [&](Value* j) {
        Value* c0 = g.mul(j, g.i64(lanes));
        Values rows;
        for (int i = 0; i < lanes; i++) {
          Value* c = g.add(c0, g.i64(i));
          Value* m = g.b.CreateSelect(g.isBelow(c, s.columns), mask, none);
          rows.push_back(g.loadVec(g.f32(), g.at(g.at(s.b, k), g.mul(c, s.bCol)), m, 4));
        }
        rows = transposeSquare(g, rows);
        Value* q = g.at(g.at(s.out, g.mul(k, g.i64(columns))), c0);
        for (int i = 0; i < lanes; i++)
          g.ifThen(g.isBelow(g.i64(i), left),
                   [&] { g.storeVec(rows[size_t(i)], g.at(q, i * columns), nullptr, align); });
      });
    });
    return;
  }
  g.loop(g.i64(0), s.k, 1, [&](Value* k) {
    Value* src = g.at(s.b, g.mul(k, s.bRow));
    Value* q = g.at(s.out, g.mul(k, g.i64(columns)));
    g.loop(g.i64(0), s.columns, 1, [&](Value* c) {
      g.b.CreateAlignedStore(g.load(g.f32(), g.at(src, g.mul(c, s.bCol))), g.at(q, c), llvm::Align(4));
    });
    g.loop(s.columns, g.i64(columns), 1,
           [&](Value* c) { g.b.CreateAlignedStore(llvm::ConstantFP::get(g.f32(), 0), g.at(q, c), llvm::Align(4)); });
  });
}

void emitCopyRows(Gen& g, Value* src, Value* srcRow, Value* srcCol, Value* rows, Value* k, Value* out, Value* pitch) {
  int64_t col = 0;
  bool contiguous = Gen::isConst(srcCol, &col) && col == 1;
  int lanes = g.isa.lanes;
  g.loop(g.i64(0), rows, 1, [&](Value* r) {
    Value* s = g.at(src, g.mul(r, srcRow));
    Value* d = g.at(out, g.mul(r, pitch));
    if (!contiguous) {
      g.loop(g.i64(0), k, 1, [&](Value* i) {
        g.b.CreateAlignedStore(g.load(g.f32(), g.at(s, g.mul(i, srcCol))), g.at(d, i), llvm::Align(4));
      });
      return;
    }
    int64_t wide = 4 * lanes;
    Value* main = g.mul(g.div(k, g.i64(wide)), g.i64(wide));
    g.loop(g.i64(0), main, wide, [&](Value* i) {
      for (int j = 0; j < 4; j++)
        g.storeVec(g.loadVec(g.f32(), g.at(g.at(s, i), j * lanes), nullptr, 4), g.at(g.at(d, i), j * lanes), nullptr,
                   4);
    });
    g.loop(main, k, lanes, [&](Value* i) {
      Value* mask = g.maskBelow(g.sub(k, i));
      g.storeVec(g.loadVec(g.f32(), g.at(s, i), mask, 4), g.at(d, i), mask, 4);
    });
  });
}

}  // namespace rutter::cpu
