// GEMM by register tiles: a panel of B (packed, or read as it lies) passes under rows of A whose elements are
// broadcast.
#include <algorithm>

#include "base/ints.h"
#include "cpu/gemm_block.h"
#include "cpu/gemm_view.h"
#include "cpu/pw.h"
#include "cpu/tactic.h"
#include "cpu/tile_choice.h"
#include "cpu/tile_epilogue.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::LaunchSpec;
using codegen::Lowering;
using codegen::MachineProfile;
using codegen::PackSpec;
using ir::Dim;

enum PackB : int64_t { kDirect = 0, kConstant = 1, kTask = 2, kLayer = 3 };

class GemmTile final : public CpuTactic {
 public:
  std::string_view name() const override { return "gemm_tile"; }
  codegen::ProblemKind kind() const override { return codegen::ProblemKind::kGemm; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    std::string why;
    if (!gemmView(p, &why)) return why;
    return pwRefuses(p, m);
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override;
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    GemmView v = *gemmView(p, nullptr);
    VectorIsa isa = vectorIsa(m, c.get("vector"));
    int vectors = int(c.get("tile_n") / isa.lanes);
    double steps = tilingCost(isa, p.optOf(v.m), v.m.isConstant(), p.optOf(v.n), int(c.get("tile_m")), vectors);
    return double(v.batchOpt(p)) * steps * double(p.optOf(v.k)) / kVectorFmaPerSecond + p.bytes() / kBytesPerSecond;
  }
  Lowering lower(const Problem& p, const Config& c) const override;
  void emit(const Problem& p, const Config& c, const MachineProfile& m, Emitter& e) const override;
};

void choosePackA(const Problem& p, const GemmView& v, Config& c, knobs::LayerKnobs& k) {
  bool contiguous = v.as.col.is(1), transposed = v.as.row.is(1) && !contiguous;
  bool pack = !contiguous && !transposed;
  // Fewer columns than a few tiles do not repay a copy, unless rows throw each other out of the cache.
  if (contiguous && c.get("tile_m") > 2) {
    if (!v.as.row.isConstant())
      pack = c.get("tile_m") > 4;
    else
      pack = linesInOneSet(c.get("tile_m"), v.as.row.value) > (p.optOf(v.n) >= 128 ? 6 : 8);
  }
  c.set("pack_a", k.getOr(knob::gemm_pack_a, pack));
}
// Contents and every size of it are known when the engine is built.
bool packable(const Problem& p, const GemmView& v) {
  const codegen::Operand& b = p.operands[size_t(v.b)];
  bool known = b.constant && v.n.isConstant() && v.k.isConstant();
  for (const auto* list : {&b.dims, &b.strides})
    for (const KDim& d : *list) known &= d.isConstant();
  return known;
}
void choosePackB(const Problem& p, const GemmView& v, Config& c, knobs::LayerKnobs& k) {
  if (packable(p, v)) {
    if (k.explicitly(knob::gemm_pack_b))
      k.refuse(knob::gemm_pack_b, "the matrix is constant: it is packed when the engine is built");
    c.set("pack_b", kConstant);
    return;
  }
  // Packing pays when several tiles of rows read the panel; a transposed matrix cannot be read in vectors otherwise.
  bool readable = v.bs.col.is(1), oneTask = p.optOf(v.m) <= c.get("task_m");
  int64_t how = readable && p.optOf(v.m) <= 3 * c.get("tile_m") ? kDirect : oneTask ? kTask : kLayer;
  auto wish = k.get(knob::gemm_pack_b);
  if (wish == "direct") {
    if (readable)
      how = kDirect;
    else
      k.refuse(knob::gemm_pack_b, "columns of the matrix are not contiguous");
  } else if (wish != "auto") {
    how = wish == "task" ? kTask : kLayer;
  }
  c.set("pack_b", how);
}
// Blocks of rows that stay in L2 together with a panel of B, then as many blocks of columns as balance asks for.
void chooseTasks(const Problem& p, const GemmView& v, const MachineProfile& m, Config& c, knobs::LayerKnobs& k) {
  int64_t rows = p.optOf(v.m), columns = p.optOf(v.n), sum = std::max<int64_t>(p.optOf(v.k), 1);
  int64_t tm = c.get("tile_m"), tn = c.get("tile_n");
  int64_t batch = std::max<int64_t>(v.batchOpt(p), 1);
  int64_t wanted = m.cores > 1 ? 4 * m.cores : 1;
  int64_t resident = std::max<int64_t>(m.l2 / 2 / (sum * 4) / tm, 1) * tm;
  int64_t taskM = std::min(resident, roundUp(std::max<int64_t>(rows, 1), tm));
  int64_t blocksM = ceilOf(std::max<int64_t>(rows, 1), taskM);
  taskM = roundUp(ceilOf(std::max<int64_t>(rows, 1), blocksM), tm);
  int64_t tilesN = ceilOf(std::max<int64_t>(columns, 1), tn);
  int64_t blocksN = std::clamp<int64_t>(ceilOf(wanted, batch * blocksM), 1, tilesN);
  // Rather more blocks of rows than blocks of few columns: each repeats the copy of A.
  if (batch * blocksM * blocksN < wanted) {
    int64_t more = std::min(ceilOf(wanted, batch * blocksN), ceilOf(std::max<int64_t>(rows, 1), tm));
    taskM = std::min(taskM, roundUp(ceilOf(std::max<int64_t>(rows, 1), more), tm));
  }
  int64_t taskN = ceilOf(tilesN, blocksN) * tn;
  c.set("task_m", roundUp(k.getOr(knob::gemm_task_m, taskM), tm));
  c.set("task_n", roundUp(k.getOr(knob::gemm_task_n, taskN), tn));
}

Config GemmTile::configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const {
  GemmView v = *gemmView(p, nullptr);
  Config c;
  c.tactic = name();
  configureCodegen(c, m, k);
  VectorIsa isa = vectorIsa(m, c.get("vector"));
  TileChoice t =
      chooseTile(isa, p.optOf(v.m), v.m.isConstant(), p.optOf(v.n), {knob::gemm_tile_m, knob::gemm_tile_n}, k);
  c.set("tile_m", t.rows);
  c.set("tile_n", int64_t(t.vectors) * isa.lanes);
  c.set("unroll", k.getOr(knob::gemm_unroll_k, t.rows * t.vectors >= 16 ? 4 : 8));
  chooseTasks(p, v, m, c, k);
  choosePackA(p, v, c, k);
  choosePackB(p, v, c, k);
  // Weights that do not fit L2 come from far away each time, and some processors (Sapphire Rapids: BERT gains a tenth)
  // ask for them too late on their own.
  const bool far = c.get("pack_b") == kConstant && p.maxOf(v.k) * p.optOf(v.n) * 4 > m.l2;
  c.set("prefetch", k.getOr(knob::gemm_prefetch, far ? 16 : 0));
  // A panel that does not fit L2 beside the rows is cut along the sum.
  int64_t sum = p.maxOf(v.k);
  int64_t blockK = sum * c.get("tile_n") * 4 > m.l2 / 2 && p.optOf(v.m) > c.get("tile_m") ? 1024 : 0;
  blockK = k.getOr(knob::gemm_block_k, blockK);
  c.set("block_k", blockK >= sum ? 0 : blockK);
  auto order = k.get(knob::gemm_order);
  c.set("rows_outer", order == "rows");
  c.set("rows_first", k.get(knob::gemm_task_order) == "rows");
  auto epilogue = k.get(knob::gemm_epilogue);
  c.set("epilogue_loop", epilogue == "auto" ? TileEpilogue::wantsLoop(p) : epilogue == "loop");
  return c;
}

// Sizes that lowering and emission must agree on.
struct Layout {
  GemmView v;
  int64_t tm, tn, taskM, taskN, pitchA, maxK;
  int64_t scratchA = 0, scratchB = 0, scratchPartial = 0, scratchTile = 0;
  Layout(const Problem& p, const Config& c) : v(*gemmView(p, nullptr)) {
    tm = c.get("tile_m");
    tn = c.get("tile_n");
    taskM = c.get("task_m");
    taskN = c.get("task_n");
    maxK = p.maxOf(v.k);
    pitchA = conflictFreePitch(maxK);
    int64_t columns = std::min(taskN, roundUp(std::max<int64_t>(p.maxOf(v.n), 1), tn));
    int64_t rows = std::min(taskM, roundUp(std::max<int64_t>(p.maxOf(v.m), 1), tm));
    if (c.get("pack_a")) scratchA = roundUp(rows * pitchA * 4, 64);
    if (c.get("pack_b") == kTask) scratchB = roundUp(columns * maxK * 4, 64);
    if (c.get("block_k")) scratchPartial = roundUp(rows * columns * 4, 64);
    if (c.get("epilogue_loop")) scratchTile = roundUp(tm * tn * 4, 64);
  }
  int64_t scratch() const { return scratchA + scratchB + scratchPartial + scratchTile; }
  // Batch axes that B really has.
  std::vector<size_t> batchOfB() const {
    std::vector<size_t> r;
    for (size_t i = 0; i < v.batch.size(); i++)
      if (!v.bs.batch[i].is(0)) r.push_back(i);
    return r;
  }
};

Lowering GemmTile::lower(const Problem& p, const Config& c) const {
  Layout l(p, c);
  const GemmView& v = l.v;
  Lowering r;
  LaunchSpec main;
  for (size_t i = 0; i < p.operands.size(); i++) main.refs.push_back(int(i));
  Dim panels = ceilDiv(v.n.dim(), Dim(l.tn));
  if (c.get("pack_b") == kConstant) {
    main.refs[size_t(v.b)] = 1000;
    int64_t count = 1;
    for (size_t i : l.batchOfB()) count *= v.batch[i].value;
    int64_t n = v.n.value, k = v.k.value, tn = l.tn, tiles = ceilOf(n, tn);
    PackSpec s{v.b, fmt::format("gemm_b {}", tn), count * tiles * k * tn * 4, {}};
    std::vector<int64_t> extents, strides;
    for (size_t i : l.batchOfB()) {
      extents.push_back(v.batch[i].value);
      strides.push_back(v.bs.batch[i].value);
    }
    int64_t row = v.bs.row.value, col = v.bs.col.value;
    s.layout += fmt::format(" {}x{} strides {},{} batch", k, n, row, col);
    for (size_t i = 0; i < extents.size(); i++) s.layout += fmt::format(" {}:{}", extents[i], strides[i]);
    s.pack = [=](const ir::Tensor& in, void* out) {
      const float* b = in.as<float>();
      float* o = static_cast<float*>(out);
      for (int64_t x = 0; x < count; x++) {
        int64_t base = 0, rest = x;
        for (size_t i = extents.size(); i-- > 0; rest /= extents[i]) base += rest % extents[i] * strides[i];
        for (int64_t t = 0; t < tiles; t++)
          for (int64_t kk = 0; kk < k; kk++)
            for (int64_t j = 0; j < tn; j++, o++) *o = t * tn + j < n ? b[base + kk * row + (t * tn + j) * col] : 0.f;
      }
    };
    r.packs.push_back(std::move(s));
  } else if (c.get("pack_b") == kLayer) {
    main.refs[size_t(v.b)] = -1;
    LaunchSpec pack;
    pack.refs = {v.b, -1};
    pack.tasks = panels;
    for (size_t i : l.batchOfB()) pack.tasks = pack.tasks * v.batch[i].dim();
    r.workspaces.push_back(pack.tasks * v.k.dim() * Dim(l.tn * 4));
    r.launches.push_back(pack);
  }
  main.tasks = ceilDiv(v.m.dim(), Dim(l.taskM)) * ceilDiv(v.n.dim(), Dim(l.taskN));
  for (const KDim& d : v.batch) main.tasks = main.tasks * d.dim();
  main.scratch = l.scratch();
  r.launches.push_back(main);
  return r;
}

// Coordinates of a linear index over the given extents, last fastest; `rest` keeps what is left over.
Values coordinates(Gen& g, Value*& rest, const std::vector<KDim>& extents, const std::vector<size_t>& axes) {
  Values r(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    Value* n = g.dim(extents[axes[i]]);
    r[i] = g.rem(rest, n);
    rest = g.div(rest, n);
  }
  return r;
}

void emitPackB(Gen& g, const Layout& l) {
  const GemmView& v = l.v;
  g.e.beginKernel();
  Value *k = g.dim(v.k), *n = g.dim(v.n);
  g.loop(g.e.begin(), g.e.end(), 1, [&](Value* t) {
    Value* panels = g.ceilDiv(n, l.tn);
    Value* rest = g.div(t, panels);
    Value* n0 = g.mul(g.rem(t, panels), g.i64(l.tn));
    Value* b = g.at(g.e.ptr(0), g.mul(n0, g.dim(v.bs.col)));
    auto axes = l.batchOfB();
    Values at = coordinates(g, rest, v.batch, axes);
    for (size_t i = 0; i < axes.size(); i++) b = g.at(b, g.mul(at[i], g.dim(v.bs.batch[axes[i]])));
    PackPanel s;
    s.b = b;
    s.bRow = g.dim(v.bs.row);
    s.bCol = g.dim(v.bs.col);
    s.k = k;
    s.columns = g.min(g.sub(n, n0), g.i64(l.tn));
    s.vectors = int(l.tn / g.isa.lanes);
    s.out = g.at(g.e.ptr(1), g.mul(t, g.mul(k, g.i64(l.tn))));
    emitPackPanel(g, s);
  });
  g.e.endKernel();
}

void GemmTile::emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const {
  Gen g(e);
  Layout l(p, c);
  const GemmView& v = l.v;
  if (c.get("pack_b") == kLayer) emitPackB(g, l);
  e.beginKernel();
  Value *m = g.dim(v.m), *n = g.dim(v.n), *k = g.dim(v.k);
  Value *blocksM = g.ceilDiv(m, l.taskM), *blocksN = g.ceilDiv(n, l.taskN);
  Value *copyA = e.scratch(), *copyB = g.at(copyA, l.scratchA, 1), *partial = g.at(copyB, l.scratchB, 1);
  Value* tileBuffer = g.at(partial, l.scratchPartial, 1);
  g.loop(e.begin(), e.end(), 1, [&](Value* t) {
    bool rowsFirst = c.get("rows_first");
    Value* inner = rowsFirst ? blocksM : blocksN;
    Value* outer = rowsFirst ? blocksN : blocksM;
    Value* x = g.rem(t, inner);
    Value* rest = g.div(t, inner);
    Value* y = g.rem(rest, outer);
    rest = g.div(rest, outer);
    std::vector<size_t> all(v.batch.size());
    for (size_t i = 0; i < all.size(); i++) all[i] = i;
    Values batch = coordinates(g, rest, v.batch, all);
    GemmBlock s;
    s.m0 = g.mul(rowsFirst ? x : y, g.i64(l.taskM));
    s.n0 = g.mul(rowsFirst ? y : x, g.i64(l.taskN));
    s.m1 = g.min(g.add(s.m0, g.i64(l.taskM)), m);
    s.n1 = g.min(g.add(s.n0, g.i64(l.taskN)), n);
    s.m = m;
    s.n = n;
    s.k = k;
    s.tileRows = int(l.tm);
    s.tileVectors = int(l.tn / g.isa.lanes);
    s.unroll = int(c.get("unroll"));
    s.prefetch = int(c.get("prefetch"));
    s.columnsOuter = !c.get("rows_outer");
    s.blockK = c.get("block_k");
    s.partial = partial;
    s.partialPitch = std::min(l.taskN, roundUp(std::max<int64_t>(p.maxOf(v.n), 1), l.tn));

    s.a = g.e.ptr(v.a);
    for (size_t i = 0; i < batch.size(); i++) s.a = g.at(s.a, g.mul(batch[i], g.dim(v.as.batch[i])));
    s.aRow = g.dim(v.as.row);
    s.aCol = g.dim(v.as.col);
    s.a = g.at(s.a, g.mul(s.m0, s.aRow));
    if (c.get("pack_a")) {
      emitCopyRows(g, s.a, s.aRow, s.aCol, g.sub(s.m1, s.m0), k, copyA, g.i64(l.pitchA));
      s.a = copyA;
      s.aRow = g.i64(l.pitchA);
      s.aCol = g.i64(1);
    }

    int64_t how = c.get("pack_b");
    Value* b = g.e.ptr(v.b);
    if (how == kDirect || how == kTask) {
      for (size_t i = 0; i < batch.size(); i++) b = g.at(b, g.mul(batch[i], g.dim(v.bs.batch[i])));
    } else {
      Value* index = g.i64(0);
      for (size_t i : l.batchOfB()) index = g.add(g.mul(index, g.dim(v.batch[i])), batch[i]);
      b = g.at(b, g.mul(index, g.mul(g.ceilDiv(n, l.tn), g.mul(k, g.i64(l.tn)))));
    }
    if (how == kTask) {
      g.loop(s.n0, s.n1, l.tn, [&](Value* n0) {
        PackPanel q;
        q.b = g.at(b, g.mul(n0, g.dim(v.bs.col)));
        q.bRow = g.dim(v.bs.row);
        q.bCol = g.dim(v.bs.col);
        q.k = k;
        q.columns = g.min(g.sub(n, n0), g.i64(l.tn));
        q.vectors = s.tileVectors;
        q.out = g.at(copyB, g.mul(g.sub(n0, s.n0), k));
        emitPackPanel(g, q);
      });
      b = copyB;
      s.b = [&g, b, k, n0 = s.n0](Value* col) { return g.at(b, g.mul(g.sub(col, n0), k)); };
    } else if (how == kDirect) {
      s.b = [&g, b, stride = g.dim(v.bs.col)](Value* col) { return g.at(b, g.mul(col, stride)); };
    } else {
      s.b = [&g, b, k](Value* col) { return g.at(b, g.mul(col, k)); };
    }
    s.bRow = how == kDirect ? g.dim(v.bs.row) : g.i64(l.tn);
    s.bMasked = how == kDirect;
    s.bAlign = how == kDirect ? 4 : g.isa.lanes * 4;

    TileEpilogue epilogue(g, {&p, v.rowAxis, v.colAxis, -1, c.get("epilogue_loop") != 0, tileBuffer});
    s.finish = [&](Value* row, Value* col, int rows, int vectors, const Values& masks, const Values& acc) {
      Values origin(p.space.size(), g.i64(0));
      for (size_t i = 0; i < batch.size(); i++) origin[size_t(v.batchAxes[i])] = batch[i];
      origin[size_t(v.rowAxis)] = row;
      origin[size_t(v.colAxis)] = col;
      epilogue.emit(origin, rows, rows, vectors, masks, acc);
    };
    emitGemmBlock(g, s);
  });
  e.endKernel();
}
}  // namespace

const CpuTactic& gemmTile() {
  static const GemmTile t;
  return t;
}

}  // namespace rutter::cpu
