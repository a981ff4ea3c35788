// Products with few rows against a matrix whose columns are contiguous (a transposed weight, say): one dot product a
// column, as many columns at once as a vector has lanes. Reads the matrix once, as it lies.
#include <algorithm>

#include "cpu/gemm_block.h"
#include "cpu/gemm_view.h"
#include "cpu/pw.h"
#include "cpu/tactic.h"
#include "cpu/tile_choice.h"
#include "cpu/tile_epilogue.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::Lowering;
using codegen::MachineProfile;
using ir::Dim;

constexpr int64_t kMaxRows = 8;

class Gemv final : public CpuTactic {
 public:
  std::string_view name() const override { return "gemv"; }
  codegen::ProblemKind kind() const override { return codegen::ProblemKind::kGemm; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    std::string why;
    auto v = gemmView(p, &why);
    if (!v) return why;
    if (p.maxOf(v->m) > kMaxRows)
      return fmt::format("{} rows: a register tile is faster from {} on", p.maxOf(v->m), kMaxRows + 1);
    if (!v->as.col.is(1) || !v->bs.row.is(1)) return "the sum does not run along contiguous elements of both matrices";
    return pwRefuses(p, m);
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    GemmView v = *gemmView(p, nullptr);
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    int64_t lanes = c.get("vector") / 4, columns = std::max<int64_t>(p.optOf(v.n), 1);
    auto round = [&](int64_t n) { return (n + lanes - 1) / lanes * lanes; };
    int64_t wanted = m.cores > 1 ? 4 * m.cores : 1;
    c.set("task_n", round(k.getOr(knob::gemm_task_n, (columns + wanted - 1) / wanted)));
    c.set("unroll", k.getOr(knob::gemm_unroll_k, 2));
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    GemmView v = *gemmView(p, nullptr);
    double lanes = double(c.get("vector")) / 4;
    double steps = double(p.optOf(v.m)) * double(p.optOf(v.n)) * (double(p.optOf(v.k)) / lanes * 1.3 + 8);
    return double(v.batchOpt(p)) * steps / kVectorFmaPerSecond + p.bytes() / kBytesPerSecond;
  }
  Lowering lower(const Problem& p, const Config& c) const override {
    GemmView v = *gemmView(p, nullptr);
    Lowering r;
    codegen::LaunchSpec l;
    for (size_t i = 0; i < p.operands.size(); i++) l.refs.push_back(int(i));
    l.tasks = ceilDiv(v.n.dim(), Dim(c.get("task_n")));
    for (const KDim& d : v.batch) l.tasks = l.tasks * d.dim();
    r.launches.push_back(l);
    return r;
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    Gen g(e);
    GemmView v = *gemmView(p, nullptr);
    int lanes = g.isa.lanes, unroll = int(c.get("unroll"));
    e.beginKernel();
    Value *m = g.dim(v.m), *n = g.dim(v.n), *k = g.dim(v.k);
    Value* blocks = g.ceilDiv(n, c.get("task_n"));
    TileEpilogue epilogue(g, {&p, v.rowAxis, v.colAxis});
    g.loop(e.begin(), e.end(), 1, [&](Value* t) {
      Value* n0 = g.mul(g.rem(t, blocks), g.i64(c.get("task_n")));
      Value* rest = g.div(t, blocks);
      Values origin(p.space.size(), g.i64(0));
      Value *a = e.ptr(v.a), *b = e.ptr(v.b);
      for (size_t i = v.batch.size(); i-- > 0;) {
        Value* extent = g.dim(v.batch[i]);
        Value* at = g.rem(rest, extent);
        rest = g.div(rest, extent);
        origin[size_t(v.batchAxes[i])] = at;
        a = g.at(a, g.mul(at, g.dim(v.as.batch[i])));
        b = g.at(b, g.mul(at, g.dim(v.bs.batch[i])));
      }
      g.loop(n0, g.min(g.add(n0, g.i64(c.get("task_n"))), n), lanes, [&](Value* col) {
        // Past the last column the last one is read again; its sums are not stored.
        Values columns;
        for (int i = 0; i < lanes; i++)
          columns.push_back(g.at(b, g.mul(g.min(g.add(col, g.i64(i)), g.sub(n, g.i64(1))), g.dim(v.bs.col))));
        Value* mask = g.maskBelow(g.sub(n, col));
        g.loop(g.i64(0), m, 1, [&](Value* row) {
          Value* ar = g.at(a, g.mul(row, g.dim(v.as.row)));
          auto step = [&](Value* at, Value* lanesLeft, Values acc) {
            Value* part = lanesLeft ? g.maskBelow(lanesLeft) : nullptr;
            Value* x = g.loadVec(g.f32(), g.at(ar, at), part, 4);
            for (int i = 0; i < lanes; i++)
              acc[size_t(i)] = g.mulAdd(x, g.loadVec(g.f32(), g.at(columns[size_t(i)], at), part, 4), acc[size_t(i)]);
            return acc;
          };
          Values acc(size_t(lanes), g.zero());
          Value* wide = g.floorTo(k, int64_t(lanes) * unroll);
          acc = g.loop(g.i64(0), wide, int64_t(lanes) * unroll, acc, [&](Value* at, const Values& sums) {
            Values s = sums;
            for (int u = 0; u < unroll; u++) s = step(g.add(at, g.i64(int64_t(u) * lanes)), nullptr, s);
            return s;
          });
          acc =
              g.loop(wide, k, lanes, acc, [&](Value* at, const Values& sums) { return step(at, g.sub(k, at), sums); });
          // Lane i of the transposed square's vectors are the parts of column i's sum.
          Values parts = transposeSquare(g, acc);
          for (size_t half = parts.size() / 2; half >= 1; half /= 2)
            for (size_t i = 0; i < half; i++) parts[i] = g.b.CreateFAdd(parts[i], parts[i + half]);
          Values point = origin;
          point[size_t(v.rowAxis)] = row;
          point[size_t(v.colAxis)] = col;
          epilogue.emit(point, 1, 1, 1, {mask}, {parts[0]});
        });
      });
    });
    e.endKernel();
  }
};
}  // namespace

const CpuTactic& gemv() {
  static const Gemv t;
  return t;
}

}  // namespace rutter::cpu
