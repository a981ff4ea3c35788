#include "ops/gemm_cases.h"

namespace rutter::cputest {

void addEpilogue(Problem& p, int biasAxis, bool residual, bool activation, const std::vector<KDim>& out) {
  int acc = p.epilogue.add({PwOp::kAcc, DType::kF32});
  auto input = [&](std::vector<KDim> strides) {
    p.operands.push_back(operand(DType::kF32, std::move(strides)));
    return p.epilogue.load(int(p.operands.size()) - 1, DType::kF32);
  };
  if (biasAxis >= 0) {
    std::vector<KDim> s(p.space.size(), 0);
    s[size_t(biasAxis)] = 1;
    acc = p.epilogue.binary(PwOp::kAdd, DType::kF32, acc, input(s));
  }
  if (residual) acc = p.epilogue.binary(PwOp::kAdd, DType::kF32, acc, input(out));
  if (activation) {
    acc = p.epilogue.binary(PwOp::kMax, DType::kF32, acc, p.epilogue.constant(DType::kF32, 0));
    acc = p.epilogue.binary(PwOp::kMul, DType::kF32, acc, p.epilogue.constant(DType::kF32, 0.5));
  }
  p.epilogue.outputs = {acc};
  p.operands.push_back(operand(DType::kF32, out, true));
}

Case gemmCase(const GemmShape& s, bool bias, bool residual, bool activation) {
  Case c;
  Problem& p = c.problem;
  p.kind = ProblemKind::kGemm;
  p.anchors = 2;
  p.space = kdims({s.batch, s.m, s.n});
  int64_t lda = (s.transA ? s.m : s.k) + s.pad, ldb = (s.transB ? s.k : s.n) + s.pad,
          ldc = (s.transOut ? s.m : s.n) + s.pad;
  auto matrix = [](int64_t batch, int64_t ld, bool t) { return t ? kdims({batch, 1, ld}) : kdims({batch, ld, 1}); };
  p.operands.push_back(anchor(DType::kF32, {s.batch, s.m, s.k}, matrix((s.transA ? s.k : s.m) * lda, lda, s.transA)));
  p.operands.push_back(
      anchor(DType::kF32, {s.batch, s.k, s.n}, matrix(s.batchedB ? (s.transB ? s.n : s.k) * ldb : 0, ldb, s.transB)));
  p.operands[1].constant = s.constantB;
  addEpilogue(p, bias ? 2 : -1, residual, activation, matrix((s.transOut ? s.n : s.m) * ldc, ldc, s.transOut));
  std::mt19937 rng(unsigned(s.m * 31 + s.n * 7 + s.k));
  c.fill(rng, -1, 1);
  return c;
}

Case convCase(const ConvShape& s, bool bias, bool residual, bool activation) {
  Case c;
  Problem& p = c.problem;
  p.kind = s.transposed ? ProblemKind::kDeconv : ProblemKind::kConv;
  p.anchors = 2;
  auto out = [&](int64_t in, int64_t k, int64_t st, int64_t d, int64_t p0, int64_t p1) {
    return s.transposed ? (in - 1) * st + (k - 1) * d + 1 - p0 - p1 + s.outputPadding
                        : (in + p0 + p1 - (k - 1) * d - 1) / st + 1;
  };
  int64_t oh = out(s.h, s.kh, s.sh, s.dh, s.pt, s.pb), ow = out(s.w, s.kw, s.sw, s.dw, s.pl, s.pr);
  auto image = [&](int64_t ch, int64_t h, int64_t w, bool planar) {
    std::vector<KDim> d = planar ? kdims({ch * h * w, h * w, w, 1}) : kdims({ch * h * w, 1, w * ch, ch});
    if (s.line) d.erase(d.begin() + 2);
    return d;
  };
  auto drop = [&](std::vector<int64_t> v) {
    if (s.line) v.erase(v.begin() + 2);
    return v;
  };
  p.space = kdims(drop({s.n, s.oc, oh, ow}));
  p.operands.push_back(anchor(DType::kF32, drop({s.n, s.ic, s.h, s.w}), image(s.ic, s.h, s.w, s.planarIn)));
  std::vector<int64_t> wd = s.transposed ? std::vector<int64_t>{s.ic, s.oc / s.groups, s.kh, s.kw}
                                         : std::vector<int64_t>{s.oc, s.ic / s.groups, s.kh, s.kw};
  p.operands.push_back(anchor(DType::kF32, drop(wd), dense(drop(wd))));
  p.operands[1].constant = true;
  auto spatial = [&](int64_t h, int64_t w) { return s.line ? kdims({w}) : kdims({h, w}); };
  p.ints["groups"] = {s.groups};
  p.ints["kernel"] = spatial(s.kh, s.kw);
  p.ints["strides"] = spatial(s.sh, s.sw);
  p.ints["dilations"] = spatial(s.dh, s.dw);
  p.ints["pads"] = s.line ? kdims({s.pl, s.pr}) : kdims({s.pt, s.pl, s.pb, s.pr});
  addEpilogue(p, bias ? 1 : -1, residual, activation, image(s.oc, oh, ow, s.planarOut));
  std::mt19937 rng(unsigned(s.ic * 31 + s.oc * 7 + s.w));
  c.fill(rng, -1, 1);
  return c;
}

}  // namespace rutter::cputest
