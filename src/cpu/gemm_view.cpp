#include "cpu/gemm_view.h"

#include <fmt/format.h>

namespace rutter::cpu {

int64_t GemmView::batchOpt(const Problem& p) const {
  int64_t r = 1;
  for (const KDim& d : batch) r *= p.optOf(d);
  return r;
}
const KDim& rowStrideOf(const Problem& p, const GemmView& v, size_t i) {
  return p.operands[i].strides[size_t(v.rowAxis)];
}

namespace {
bool usesIndexOf(const codegen::PwProgram& e, int axis) {
  for (const auto& i : e.code)
    if (i.op == codegen::PwOp::kIndex && i.args[0] == axis) return true;
  return false;
}
// Folds the last batch axis into the rows where B does not depend on it and all other operands advance evenly.
bool foldBatch(const Problem& p, GemmView& v) {
  if (v.batch.empty() || !v.m.isConstant() || !v.batch.back().isConstant() || !v.bs.batch.back().is(0)) return false;
  auto even = [&](const KDim& outer, const KDim& row) {
    return outer.isConstant() && row.isConstant() && outer.value == row.value * v.m.value;
  };
  size_t axis = size_t(v.batchAxes.back());
  if (!even(v.as.batch.back(), v.as.row) || usesIndexOf(p.epilogue, int(axis)) || usesIndexOf(p.epilogue, v.rowAxis))
    return false;
  for (size_t i = 2; i < p.operands.size(); i++)
    if (!even(p.operands[i].strides[axis], rowStrideOf(p, v, i))) return false;
  v.m = KDim(v.m.value * v.batch.back().value);
  for (auto* list : {&v.batch, &v.as.batch, &v.bs.batch}) list->pop_back();
  v.batchAxes.pop_back();
  return true;
}
}  // namespace

std::optional<GemmView> gemmView(const Problem& p, std::string* why) {
  auto no = [&](std::string text) {
    if (why) *why = std::move(text);
    return std::nullopt;
  };
  if (p.operands.size() < 3 || p.anchors != 2) return no("not a product of two matrices");
  for (int i : {0, 1})
    if (p.operands[size_t(i)].dtype != ir::DType::kF32)
      return no(fmt::format("{} matrices: only float32 is compiled", ir::dtypeName(p.operands[size_t(i)].dtype)));
  size_t rank = p.space.size();
  GemmView v;
  v.rowAxis = int(rank) - 2;
  v.colAxis = int(rank) - 1;
  const auto &a = p.operands[0], &b = p.operands[1];
  v.m = p.space[rank - 2];
  v.n = p.space[rank - 1];
  v.k = a.dims.back();
  for (size_t i = 0; i + 2 < rank; i++) {
    v.batch.push_back(p.space[i]);
    v.batchAxes.push_back(int(i));
    v.as.batch.push_back(a.strides[i]);
    v.bs.batch.push_back(b.strides[i]);
  }
  v.as.row = a.strides[rank - 2];
  v.as.col = a.strides[rank - 1];
  v.bs.row = b.strides[rank - 2];
  v.bs.col = b.strides[rank - 1];
  auto contiguous = [&](int axis) {
    for (size_t i = size_t(p.firstOutput()); i < p.operands.size(); i++)
      if (!p.operands[i].strides[size_t(axis)].is(1) && !p.space[size_t(axis)].is(1)) return false;
    return true;
  };
  if (!contiguous(v.colAxis)) {
    if (!contiguous(v.rowAxis)) return no("an output that is contiguous along neither rows nor columns");
    // C' = B' A': the same sums with rows and columns exchanged.
    std::swap(v.m, v.n);
    std::swap(v.rowAxis, v.colAxis);
    std::swap(v.a, v.b);
    std::swap(v.as, v.bs);
    std::swap(v.as.row, v.as.col);
    std::swap(v.bs.row, v.bs.col);
  }
  for (size_t i = 2; i < p.operands.size(); i++)
    if (!p.operands[i].lo.empty()) return no("padded operands in the epilogue");
  while (foldBatch(p, v)) {
  }
  return v;
}

}  // namespace rutter::cpu
