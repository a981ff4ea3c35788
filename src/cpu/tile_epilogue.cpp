#include "cpu/tile_epilogue.h"

#include <llvm/IR/Intrinsics.h>

#include "cpu/pw.h"

namespace rutter::cpu {
using codegen::PwOp;

bool TileEpilogue::wantsLoop(const codegen::Problem& p) {
  return pwCost(p.epilogue) >= 12;
}

Value* TileEpilogue::address(const Place& p, Value* row, Value* outer, int vector) {
  Value* offset = g_.add(g_.mul(row, p.row), g_.mul(outer, p.outer));
  offset = g_.add(offset, g_.mul(g_.i64(int64_t(vector) * g_.isa.lanes), p.col));
  return g_.at(p.base, offset, p.bytes);
}
namespace {
// Addresses of lanes `stride` elements apart.
Value* strided(Gen& g, Value* first, Value* stride, int bytes) {
  return g.b.CreateGEP(g.b.getIntNTy(unsigned(8 * bytes)), first, iota(g.e, g.isa.lanes, g.i64(0), stride));
}
Value* allLanes(Gen& g) {
  return llvm::Constant::getAllOnesValue(g.vec(g.b.getInt1Ty()));
}
}  // namespace

Value* TileEpilogue::read(const Place& p, Value* row, Value* outer, int vector, Value* mask) {
  int64_t col = -1;
  Gen::isConst(p.col, &col);
  Value* at = address(p, row, outer, vector);
  if (col == 0) return g_.splat(g_.load(p.type, at));
  if (col == 1) return loadVector(g_.e, p.type, at, g_.isa.lanes, mask);
  auto* type = g_.vec(p.type);
  return g_.b.CreateMaskedGather(type, strided(g_, at, p.col, p.bytes), llvm::Align(uint64_t(p.bytes)),
                                 mask ? mask : allLanes(g_), llvm::Constant::getNullValue(type));
}
void TileEpilogue::write(const Place& p, Value* row, Value* outer, int vector, Value* mask, Value* v) {
  int64_t col = -1;
  Gen::isConst(p.col, &col);
  Value* at = address(p, row, outer, vector);
  if (col == 1)
    storeVector(g_.e, v, at, mask);
  else
    g_.b.CreateMaskedScatter(v, strided(g_, at, p.col, p.bytes), llvm::Align(uint64_t(p.bytes)),
                             mask ? mask : allLanes(g_));
}

void TileEpilogue::rowOfTile(const Values& origin, Value* row, Value* outer, int vectors, const Values& masks,
                             const Values& acc) {
  const codegen::Problem& p = *s_.p;
  for (int j = 0; j < vectors; j++) {
    Value* mask = masks[size_t(j)];
    Values results;
    if (p.epilogue.empty()) {
      results.assign(size_t(p.outputs()), acc[size_t(j)]);
    } else {
      PwEnv env;
      env.lanes = g_.isa.lanes;
      env.mask = mask;
      env.acc = acc[size_t(j)];
      env.load = [&](int operand) {
        auto known = shared_.find({operand, j});
        Value* v = known != shared_.end() ? known->second : read(places_[size_t(operand)], row, outer, j, mask);
        return fromMemory(g_.e, p.operands[size_t(operand)].dtype, v);
      };
      env.index = [&](int axis) {
        Value* first = origin[size_t(axis)];
        if (axis == s_.rowAxis) first = g_.add(first, g_.mul(row, g_.i64(s_.rowStep)));
        if (axis == s_.outerAxis) first = g_.add(first, g_.mul(outer, g_.i64(s_.outerStep)));
        if (axis != s_.colAxis) return splat(g_.e, first, g_.isa.lanes);
        return iota(g_.e, g_.isa.lanes, g_.add(first, g_.i64(int64_t(j) * g_.isa.lanes * s_.colStep)),
                    g_.i64(s_.colStep));
      };
      results = emitPw(g_.e, p, p.epilogue, env);
    }
    for (int o = 0; o < p.outputs(); o++) {
      size_t i = size_t(p.firstOutput() + o);
      write(places_[i], row, outer, j, mask, toMemory(g_.e, p.operands[i].dtype, results[size_t(o)]));
    }
  }
}

void TileEpilogue::emit(const Values& origin, int rows, int width, int vectors, const Values& masks,
                        const Values& acc) {
  const codegen::Problem& p = *s_.p;
  places_.assign(p.operands.size(), {});
  shared_.clear();
  std::vector<bool> loaded(p.operands.size());
  for (const auto& i : p.epilogue.code)
    if (i.op == PwOp::kLoad) loaded[size_t(i.args[0])] = true;
  for (size_t i = size_t(p.anchors); i < p.operands.size(); i++) {
    const codegen::Operand& o = p.operands[i];
    if (!loaded[i] && !o.output) continue;
    Place& q = places_[i];
    q.type = memoryType(g_.e, o.dtype);
    q.bytes = elementBytes(o.dtype);
    q.base = g_.e.ptr(int(i));
    for (size_t a = 0; a < origin.size(); a++) q.base = g_.at(q.base, g_.mul(origin[a], g_.dim(o.strides[a])), q.bytes);
    q.row = g_.mul(g_.dim(o.strides[size_t(s_.rowAxis)]), g_.i64(s_.rowStep));
    q.outer = s_.outerAxis < 0 ? g_.i64(0) : g_.mul(g_.dim(o.strides[size_t(s_.outerAxis)]), g_.i64(s_.outerStep));
    q.col = g_.mul(g_.dim(o.strides[size_t(s_.colAxis)]), g_.i64(s_.colStep));
    // Bias and the like: read once a tile.
    int64_t row = 1, outer = 1;
    Gen::isConst(q.row, &row);
    Gen::isConst(q.outer, &outer);
    if (!o.output && row == 0 && (outer == 0 || rows <= width))
      for (int j = 0; j < vectors; j++) shared_[{int(i), j}] = read(q, g_.i64(0), g_.i64(0), j, masks[size_t(j)]);
  }
  if (!s_.inLoop) {
    for (int i = 0; i < rows; i++)
      rowOfTile(origin, g_.i64(i % width), g_.i64(i / width), vectors, masks,
                Values(acc.begin() + i * vectors, acc.begin() + (i + 1) * vectors));
    return;
  }
  int align = g_.isa.lanes * 4;
  auto slot = [&](Value* i, int j) {
    return g_.at(g_.at(s_.buffer, g_.mul(i, g_.i64(int64_t(vectors) * g_.isa.lanes))), int64_t(j) * g_.isa.lanes);
  };
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < vectors; j++) g_.storeVec(acc[size_t(i * vectors + j)], slot(g_.i64(i), j), nullptr, align);
  g_.loop(g_.i64(0), g_.i64(rows), 1, [&](Value* i) {
    Values sums;
    for (int j = 0; j < vectors; j++) sums.push_back(g_.loadVec(g_.f32(), slot(i, j), nullptr, align));
    rowOfTile(origin, rows <= width ? i : g_.rem(i, g_.i64(width)),
              rows <= width ? g_.i64(0) : g_.div(i, g_.i64(width)), vectors, masks, sums);
  });
}

}  // namespace rutter::cpu
