#include <algorithm>

#include "base/ints.h"
#include "cpu/conv_direct.h"
#include "cpu/gemm_block.h"

namespace rutter::cpu {
using codegen::Lowering;
using codegen::PackSpec;
using ir::Dim;

namespace {
int64_t ceilDivide(int64_t x, int64_t y) {
  return x >= 0 ? (x + y - 1) / y : -(-x / y);
}

// Outputs at a*step + residue - pad, counted from the first that is not negative. Output q*s + r - pad sums the weights
// r, r + s, r + 2s … with inputs q, q - 1, q - 2 …: reversed, a convolution with padding taps - 1.
ConvPhase::Axis transposedAxis(int64_t kernel, int64_t stride, int64_t pad, int64_t residue) {
  ConvPhase::Axis a;
  a.taps = residue < kernel ? ceilDivide(kernel - residue, stride) : 0;
  a.skipped = std::max<int64_t>(0, ceilDivide(pad - residue, stride));
  a.pad = a.taps - 1 - a.skipped;
  a.first = residue + (a.taps - 1) * stride;
  a.advance = -stride;
  a.origin = a.skipped * stride + residue - pad;
  a.step = stride;
  a.residue = residue;
  return a;
}
}  // namespace

std::vector<ConvPhase> convPhases(const Problem& p, const ConvView& v) {
  std::vector<ConvPhase> r;
  if (p.kind != codegen::ProblemKind::kDeconv) {
    ConvPhase f;
    f.h = {v.kh, v.sh, v.dh, v.pt};
    f.w = {v.kw, v.sw, v.dw, v.pl};
    return {f};
  }
  int64_t offset = 0;
  for (int64_t a = 0; a < v.sh; a++)
    for (int64_t b = 0; b < v.sw; b++) {
      ConvPhase f;
      f.h = transposedAxis(v.kh, v.sh, v.pt, a);
      f.w = transposedAxis(v.kw, v.sw, v.pl, b);
      f.weights = offset;  // in units that the plan scales by groups * tiles * columns
      offset += f.h.taps * f.w.taps * v.icg;
      r.push_back(f);
    }
  return r;
}

ConvPlan::ConvPlan(const Problem& problem, const codegen::Config& config)
    : p(problem), c(config), v(*convView(p, nullptr)), transposed(p.kind == codegen::ProblemKind::kDeconv) {
  lanes = c.get("vector") / 4;
  tileW = c.get("tile_w");
  tileH = c.get("tile_h");
  tileN = c.get("tile_n");
  taskH = c.get("task_h");
  taskW = c.get("task_w");
  taskN = c.get("task_n");
  blockIc = c.get("block_ic");
  copy = c.get("copy");
  planar = !v.xc.is(1) && v.icg > 1;
  phases = convPhases(p, v);
  for (ConvPhase& f : phases) f.weights *= v.groups * tilesN() * tileN;
}

ConvPlan::Patch ConvPlan::patch(const ConvPhase& f) const {
  Patch r{};
  // One tap needs only the pixels that it reads, not those between.
  r.strideH = f.h.taps == 1 ? 1 : f.h.stride;
  r.strideW = f.w.taps == 1 ? 1 : f.w.stride;
  r.rows = (taskH - 1) * r.strideH + std::max<int64_t>(f.h.taps - 1, 0) * f.h.dilation + 1;
  r.columns = (taskW - 1) * r.strideW + std::max<int64_t>(f.w.taps - 1, 0) * f.w.dilation + 1;
  if (planar) {
    r.pixel = 1;
    r.columns = conflictFreePitch(r.columns);
    r.plane = r.rows * r.columns;
    r.elements = v.icg * r.plane;
  } else {
    r.pixel = v.icg;
    if (linesInOneSet(tileW * tileH, r.strideW * v.icg) > 4) r.pixel = conflictFreePitch(v.icg);
    r.plane = 1;
    r.elements = r.rows * r.columns * r.pixel;
  }
  return r;
}
int64_t ConvPlan::patchBytes() const {
  int64_t most = 0;
  if (copy)
    for (const ConvPhase& f : phases) most = std::max(most, patch(f).elements * 4);
  return roundUp(most, 64);
}
int64_t ConvPlan::partialBytes() const {
  return blockIc ? roundUp(taskH * taskW * taskN * 4, 64) : 0;
}
int64_t ConvPlan::tileBytes() const {
  return c.get("epilogue_loop") ? roundUp(tileH * tileW * tileN * 4, 64) : 0;
}
Dim ConvPlan::blocksH() const {
  return ceilDiv(ceilDiv(v.oh.dim(), Dim(phases[0].h.step)), Dim(taskH));
}
Dim ConvPlan::blocksW() const {
  return ceilDiv(ceilDiv(v.ow.dim(), Dim(phases[0].w.step)), Dim(taskW));
}

PackSpec ConvPlan::pack() const {
  int64_t total = 0;
  for (const ConvPhase& f : phases) total += sum(f) * v.groups * tilesN() * tileN;
  PackSpec s{1,
             fmt::format("conv_{} {} {}/{}", transposed ? "t" : "d", tileN, blockIc, planar ? "iyx" : "yxi"),
             total * 4,
             {}};
  for (const KDim& d : p.operands[1].dims) s.layout += fmt::format(" {}", d.value);
  s.layout += fmt::format(" groups {} strides {},{},{},{}", v.groups, v.wo, v.wi, v.wh, v.ww);
  if (transposed) s.layout += fmt::format(" by {}x{}", v.sh, v.sw);
  s.pack = [v = v, phases = phases, tiles = tilesN(), tn = tileN, planar = planar, transposed = transposed,
            block = blockIc ? blockIc : v.icg](const ir::Tensor& in, void* out) {
    const float* w = in.as<float>();
    float* o = static_cast<float*>(out);
    auto put = [&](const ConvPhase& f, int64_t g, int64_t t, int64_t i, int64_t a, int64_t b) {
      int64_t base = (f.h.first + a * f.h.advance) * v.wh + (f.w.first + b * f.w.advance) * v.ww;
      for (int64_t j = 0; j < tn; j++) {
        int64_t oc = t * tn + j;
        *o++ = oc >= v.ocg  ? 0.f
               : transposed ? w[base + (g * v.icg + i) * v.wo + oc * v.wi]
                            : w[base + (g * v.ocg + oc) * v.wo + i * v.wi];
      }
    };
    for (const ConvPhase& f : phases)
      for (int64_t g = 0; g < v.groups; g++)
        for (int64_t t = 0; t < tiles; t++)
          for (int64_t i0 = 0; i0 < v.icg; i0 += block) {
            if (planar) {
              for (int64_t i = i0; i < i0 + block; i++)
                for (int64_t a = 0; a < f.h.taps; a++)
                  for (int64_t b = 0; b < f.w.taps; b++) put(f, g, t, i, a, b);
            } else {
              for (int64_t a = 0; a < f.h.taps; a++)
                for (int64_t b = 0; b < f.w.taps; b++)
                  for (int64_t i = i0; i < i0 + block; i++) put(f, g, t, i, a, b);
            }
          }
  };
  return s;
}

Lowering ConvPlan::lower() const {
  Lowering r;
  r.packs.push_back(pack());
  codegen::LaunchSpec s;
  for (size_t i = 0; i < p.operands.size(); i++) s.refs.push_back(i == 1 ? 1000 : int(i));
  s.tasks = v.n.dim() * blocksH() * blocksW() * Dim(v.groups * ((v.ocg + taskN - 1) / taskN));
  s.scratch = patchBytes() + partialBytes() + tileBytes();
  r.launches.push_back(s);
  return r;
}

}  // namespace rutter::cpu
