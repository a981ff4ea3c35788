// Direct convolution and transposed convolution: implicit GEMM over taps and channels, output channels in vectors.
#include "cpu/conv_direct.h"

#include <algorithm>

#include "base/ints.h"
#include "cpu/pw.h"
#include "cpu/tile.h"
#include "cpu/tile_epilogue.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::Lowering;
using codegen::MachineProfile;
using codegen::ProblemKind;

// A tile of several short rows of pixels, if that fills the registers better than one row.
TileChoice chooseConvTile(const VectorIsa& isa, const Problem& p, const ConvView& v, int64_t width, int64_t height,
                          bool fixed, bool severalRows, int* tileRows, knobs::LayerKnobs& k) {
  TileWishes w{knob::conv_tile_m, knob::conv_tile_n};
  *tileRows = 1;
  int64_t pixels = width;
  if (severalRows && fixed) {
    // Judge the tile by what it does to whole rows: up to the registers' limit for two vectors.
    int64_t limit = maxTileRows(isa, std::min<int64_t>(2, ceilOf(v.ocg, isa.lanes)));
    int64_t rows = std::min(limit / std::max<int64_t>(width, 1), height);
    if (auto wish = k.get(knob::conv_tile_m)) rows = std::min(rows, *wish / std::max<int64_t>(width, 1));
    if (rows > 1) {
      *tileRows = int(rows);
      pixels = width * rows;
    }
  }
  TileChoice t = chooseTile(isa, pixels, fixed, v.ocg, w, k);
  if (*tileRows > 1) {
    if (t.rows == pixels) {
      t.rows = int(width);
    } else {
      *tileRows = 1;
      t = chooseTile(isa, width, fixed, v.ocg, w, k);
    }
  }
  return t;
}

class ConvDirect final : public CpuTactic {
 public:
  explicit ConvDirect(ProblemKind kind) : kind_(kind) {}
  std::string_view name() const override { return kind_ == ProblemKind::kConv ? "conv_direct" : "deconv"; }
  ProblemKind kind() const override { return kind_; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    std::string why;
    auto v = convView(p, &why);
    if (!v) return why;
    if (!outputsContiguous(p, 1)) return "the output's channels are not contiguous";
    if (kind_ == ProblemKind::kDeconv && (v->dh != 1 || v->dw != 1)) return "a dilated transposed convolution";
    return pwRefuses(p, m);
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override;
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    ConvPlan q(p, c);
    VectorIsa isa = vectorIsa(m, c.get("vector"));
    double steps = 0;
    for (const ConvPhase& f : q.phases) {
      int64_t w = ceilOf(p.optOf(q.v.ow), f.w.step), h = ceilOf(p.optOf(q.v.oh), f.h.step);
      double rows =
          tilingCost(isa, w * q.tileH, q.v.ow.isConstant(), q.v.ocg, int(q.tileW * q.tileH), int(q.tileN / isa.lanes));
      // A tile's start, end and stores cost about as much as a few steps.
      double overhead = double(ceilOf(w, q.tileW)) * double(q.tilesN()) * 12;
      steps += double(h) / double(q.tileH) * (rows * double(q.sum(f)) + overhead);
    }
    steps *= double(p.optOf(q.v.n) * q.v.groups);
    // Of one tap only the pixels that are read.
    int64_t pixels = q.v.taps() == 1 ? p.optOf(q.v.oh) * p.optOf(q.v.ow) : p.optOf(q.v.ih) * p.optOf(q.v.iw);
    double copied = q.copy ? double(pixels * p.optOf(q.v.n) * q.v.ic.value) * 4 : 0;
    return steps / kVectorFmaPerSecond + (p.bytes() + copied) / kBytesPerSecond;
  }
  Lowering lower(const Problem& p, const Config& c) const override { return ConvPlan(p, c).lower(); }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    ConvPlan(p, c).emit(e);
  }

 private:
  ProblemKind kind_;
};

Config ConvDirect::configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const {
  ConvView v = *convView(p, nullptr);
  Config c;
  c.tactic = name();
  configureCodegen(c, m, k);
  VectorIsa isa = vectorIsa(m, c.get("vector"));
  auto phases = convPhases(p, v);
  const ConvPhase& f = phases[0];
  int64_t width = std::max<int64_t>(1, ceilOf(p.optOf(v.ow), f.w.step)),
          height = std::max<int64_t>(1, ceilOf(p.optOf(v.oh), f.h.step));
  int64_t maxWidth = std::max<int64_t>(1, ceilOf(p.maxOf(v.ow), f.w.step));
  bool fixed = v.ow.isConstant(), planar = !v.xc.is(1) && v.icg > 1;
  bool reaches = false;  // taps outside the image exist
  int64_t sum = 0;
  for (const ConvPhase& q : phases) {
    sum = std::max(sum, q.h.taps * q.w.taps * v.icg);
    reaches |= q.h.taps > 1 || q.w.taps > 1;
  }
  reaches = kind_ == ProblemKind::kConv ? v.padded() : reaches;

  // Border taps: read from a padded copy, or left out pixel by pixel. A copy also separates rows of pixels that meet in
  // the same cache sets.
  bool copy = reaches;
  if (!copy && v.xw.isConstant() && !planar)
    copy = linesInOneSet(std::min<int64_t>(14, width), f.w.stride * v.xw.value) > 6 && v.ocg >= 64;
  auto pad = k.get(knob::conv_pad);
  if (pad != "auto") copy = pad == "copy";
  c.set("copy", copy);

  int tileRows = 1;
  TileChoice t = chooseConvTile(isa, p, v, width, height, fixed,
                                (copy || !reaches) && phases.size() == 1 && v.hAxis >= 0, &tileRows, k);
  int64_t tileW = t.rows, tileN = int64_t(t.vectors) * isa.lanes;
  c.set("tile_w", tileW);
  c.set("tile_h", tileRows);
  c.set("tile_n", tileN);
  c.set("unroll", k.getOr(knob::conv_unroll, t.rows * tileRows * t.vectors >= 16 ? 4 : 8));
  c.set("prefetch", k.getOr(knob::conv_prefetch, 0));

  // Blocks: a task's input stays in L2 beside a panel of weights.
  int64_t budget = m.l2 / 3, rowsOf = std::max<int64_t>(f.h.taps - 1, 0) * f.h.dilation;
  int64_t perPixel = v.icg * 4 * f.w.stride;
  int64_t taskW = roundUp(maxWidth, tileW);
  if (tileRows > 1)
    taskW = tileW;
  else if (copy && (rowsOf + 4) * taskW * perPixel > budget)
    taskW = std::clamp<int64_t>(budget / ((rowsOf + 4) * perPixel) / tileW, 1, ceilOf(maxWidth, tileW)) * tileW;
  if (auto wish = k.get(knob::conv_task_columns)) {
    if (tileRows > 1)
      k.refuse(knob::conv_task_columns, "tiles cover whole rows of pixels");
    else
      taskW = std::min(roundUp(*wish, tileW), roundUp(maxWidth, tileW));
  }
  int64_t inputRow = std::min(taskW, roundUp(width, tileW)) * perPixel;
  int64_t taskH = std::max<int64_t>((budget / std::max<int64_t>(inputRow, 1) - rowsOf) / f.h.stride, 1);
  taskH = std::min(roundUp(taskH, tileRows), roundUp(height, tileRows));
  int64_t tilesN = ceilOf(v.ocg, tileN), taskTiles = tilesN;
  // As many tasks as balance asks for: cut what is smaller, so that the bigger part is read once.
  int64_t wanted = m.cores > 1 ? 4 * m.cores : 1;
  auto tasks = [&] {
    return p.optOf(v.n) * ceilOf(height, taskH) * ceilOf(width, taskW) * v.groups * ceilOf(tilesN, taskTiles);
  };
  bool heavyWeights = sum * v.ocg > height * width * f.h.stride * f.w.stride * v.icg;
  while (tasks() < wanted) {
    if (taskTiles > 1 && (heavyWeights || taskH <= tileRows))
      taskTiles = ceilOf(taskTiles, 2);
    else if (taskH > tileRows)
      taskH = roundUp(ceilOf(taskH, 2), tileRows);
    else
      break;
  }
  if (auto wish = k.get(knob::conv_task_rows))
    taskH = roundUp(std::min<int64_t>(*wish, roundUp(std::max<int64_t>(p.maxOf(v.oh), 1), tileRows)), tileRows);
  if (auto wish = k.get(knob::conv_block_oc)) taskTiles = std::clamp<int64_t>(ceilOf(*wish, tileN), 1, tilesN);
  c.set("task_h", taskH);
  c.set("task_w", taskW);
  c.set("task_n", taskTiles * tileN);

  // The weights of one tile of channels are read once a tile of pixels: in parts that stay in the cache, if they are
  // many.
  int64_t block = 0;
  if (sum * tileN * 4 > m.l2 / 2 && v.icg % 64 == 0 && height * width > t.rows * tileRows)
    block = v.icg % 128 == 0 ? 128 : 64;
  if (auto wish = k.get(knob::conv_block_ic)) {
    if (*wish && v.icg % *wish)
      k.refuse(knob::conv_block_ic, fmt::format("{} does not divide {} input channels", *wish, v.icg));
    else
      block = *wish;
  }
  c.set("block_ic", block >= v.icg ? 0 : block);

  auto order = k.get(knob::conv_order);
  c.set("channels_outer", order != "pixels");
  auto taskOrder = k.get(knob::conv_task_order);
  c.set("channels_inner", taskOrder == "auto" ? !heavyWeights : taskOrder == "channels");
  auto epilogue = k.get(knob::gemm_epilogue);
  c.set("epilogue_loop", epilogue == "auto" ? TileEpilogue::wantsLoop(p) : epilogue == "loop");
  return c;
}
}  // namespace

const CpuTactic& convDirect() {
  static const ConvDirect t(ProblemKind::kConv);
  return t;
}
const CpuTactic& deconv() {
  static const ConvDirect t(ProblemKind::kDeconv);
  return t;
}

}  // namespace rutter::cpu
