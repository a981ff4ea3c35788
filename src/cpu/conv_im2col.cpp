// Convolution and transposed convolution with pixels in vectors: the inputs of a block of output pixels are laid out as
// a matrix [taps and channels][pixels], which the weights multiply from the left. Takes every layout; best where pixels
// are contiguous in the output, or where there are too few output channels to fill vectors.
#include <algorithm>

#include "base/ints.h"
#include "cpu/conv_direct.h"
#include "cpu/gemm_block.h"
#include "cpu/pw.h"
#include "cpu/tile_epilogue.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::Lowering;
using codegen::MachineProfile;
using codegen::PackSpec;
using codegen::ProblemKind;
using ir::Dim;

// Whether a block of several rows of pixels is one run of columns.
bool flattens(const Problem& p, const ConvView& v) {
  return p.kind == ProblemKind::kConv && pixelsCollapse(p, v);
}

struct Im2colPlan {
  Im2colPlan(const Problem& problem, const Config& config)
      : p(problem), c(config), v(*convView(p, nullptr)), phases(convPhases(p, v)) {
    taskH = c.get("task_h");
    taskW = c.get("task_w");
    taskM = c.get("task_m");
    tileM = c.get("tile_m");
    tileN = c.get("tile_n");
    lanes = c.get("vector") / 4;
    flat = flattens(p, v);
    int64_t offset = 0;
    for (ConvPhase& f : phases) {
      most = std::max(most, sum(f));
      f.weights = offset;
      offset += v.oc.value * pitchA(f);
    }
    weights = offset;
    // Whole vectors are written and read: room for one past the end.
    pitch = conflictFreePitch(roundUp(taskH * taskW, tileN) + lanes);
  }
  int64_t sum(const ConvPhase& f) const { return f.h.taps * f.w.taps * v.icg; }
  int64_t pitchA(const ConvPhase& f) const { return conflictFreePitch(std::max<int64_t>(sum(f), 1)); }
  int64_t panelBytes() const { return roundUp((most * pitch + lanes) * 4, 64); }
  int64_t tileBytes() const { return c.get("epilogue_loop") ? roundUp(tileM * tileN * 4, 64) : 0; }

  const Problem& p;
  const Config& c;
  ConvView v;
  std::vector<ConvPhase> phases;
  int64_t taskH, taskW, taskM, tileM, tileN, lanes, pitch, most = 0, weights = 0;
  bool flat;
};

class Im2colEmitter {
 public:
  Im2colEmitter(const Im2colPlan& plan, Emitter& e) : q_(plan), v_(plan.v), e_(e), g_(e) {}
  void emit() {
    e_.beginKernel();
    Value *oh = g_.dim(v_.oh), *ow = g_.dim(v_.ow);
    ih_ = g_.dim(v_.ih);
    iw_ = g_.dim(v_.iw);
    const ConvPhase& f0 = q_.phases[0];
    Value* blocksH = g_.ceilDiv(g_.ceilDiv(oh, f0.h.step), q_.taskH);
    Value* blocksW = g_.ceilDiv(g_.ceilDiv(ow, f0.w.step), q_.taskW);
    Value* blocksM = g_.i64(ceilOf(v_.ocg, q_.taskM));
    Value* tileBuffer = g_.at(e_.scratch(), q_.panelBytes(), 1);
    g_.loop(e_.begin(), e_.end(), 1, [&](Value* t) {
      Value* rest = t;
      auto next = [&](Value* count) {
        Value* x = g_.rem(rest, count);
        rest = g_.div(rest, count);
        return x;
      };
      Value* m0 = g_.mul(next(blocksM), g_.i64(q_.taskM));
      Value* w0 = g_.mul(next(blocksW), g_.i64(q_.taskW));
      Value* h0 = g_.mul(next(blocksH), g_.i64(q_.taskH));
      Value* group = next(g_.i64(v_.groups));
      x_ = g_.at(g_.at(e_.ptr(0), g_.mul(rest, g_.dim(v_.xn))), g_.mul(g_.mul(group, g_.i64(v_.icg)), g_.dim(v_.xc)));
      for (size_t i = 0; i < q_.phases.size(); i++) {
        const ConvPhase& f = q_.phases[i];
        Value* rows = g_.sub(g_.min(g_.add(h0, g_.i64(q_.taskH)), convOutputs(g_, f.h, oh)), h0);
        Value* columns = g_.sub(g_.min(g_.add(w0, g_.i64(q_.taskW)), convOutputs(g_, f.w, ow)), w0);
        // Phases of one tap and the same start read the same inputs.
        bool same = i > 0 && f.h.taps == 1 && f.w.taps == 1 && q_.phases[i - 1].h.taps == 1 &&
                    q_.phases[i - 1].w.taps == 1 && f.h.pad == q_.phases[i - 1].h.pad &&
                    f.w.pad == q_.phases[i - 1].w.pad;
        if (!same)
          panel(f, h0, w0, g_.min(g_.sub(g_.ceilDiv(oh, f.h.step), h0), g_.i64(q_.taskH)),
                g_.min(g_.sub(g_.ceilDiv(ow, f.w.step), w0), g_.i64(q_.taskW)));
        GemmBlock s;
        s.tileRows = int(q_.tileM);
        s.tileVectors = int(q_.tileN / q_.lanes);
        s.unroll = int(q_.c.get("unroll"));
        s.columnsOuter = q_.c.get("columns_outer");
        s.a = g_.at(e_.ptr(1), f.weights);
        s.a = g_.at(s.a, g_.mul(g_.add(g_.mul(group, g_.i64(v_.ocg)), m0), g_.i64(q_.pitchA(f))));
        s.aRow = g_.i64(q_.pitchA(f));
        s.aCol = g_.i64(1);
        s.b = [&](Value* n) { return g_.at(e_.scratch(), n); };
        s.bRow = g_.i64(q_.pitch);
        s.m = g_.i64(v_.ocg);
        s.m0 = m0;
        s.m1 = g_.min(g_.add(m0, g_.i64(q_.taskM)), s.m);
        s.n = g_.max(g_.mul(g_.max(rows, g_.i64(0)), columns), g_.i64(0));
        s.n0 = g_.i64(0);
        s.n1 = s.n;
        s.k = g_.i64(q_.sum(f));
        TileEpilogue::Setup setup{&q_.p, 1, v_.wAxis};
        setup.inLoop = q_.c.get("epilogue_loop");
        setup.buffer = tileBuffer;
        setup.colStep = f.w.step;
        TileEpilogue epilogue(g_, setup);
        s.finish = [&](Value* m, Value* n, int count, int vectors, const Values& masks, const Values& acc) {
          Values origin(q_.p.space.size(), g_.i64(0));
          auto point = [&](const ConvPhase::Axis& a, Value* x) {
            return g_.add(g_.mul(x, g_.i64(a.step)), g_.i64(a.origin));
          };
          origin[0] = rest;
          origin[1] = g_.add(g_.mul(group, g_.i64(v_.ocg)), m);
          if (v_.hAxis >= 0) origin[size_t(v_.hAxis)] = point(f.h, h0);
          origin[size_t(v_.wAxis)] = point(f.w, g_.add(w0, n));
          epilogue.emit(origin, count, count, vectors, masks, acc);
        };
        emitGemmBlock(g_, s);
      }
    });
    e_.endKernel();
  }

 private:
  // Inputs of `rows` x `columns` outputs from (h0, w0) on, as [channel][tap][output].
  void panel(const ConvPhase& f, Value* h0, Value* w0, Value* rows, Value* columns) {
    int lanes = g_.isa.lanes;
    int64_t taps = f.h.taps * f.w.taps;
    Value *xc = g_.dim(v_.xc), *xh = g_.dim(v_.xh), *xw = g_.dim(v_.xw);
    bool channels = v_.xc.is(1) && v_.icg > 1;
    Value* none = llvm::Constant::getNullValue(g_.vec(g_.b.getInt1Ty()));
    g_.loop(g_.i64(0), rows, 1, [&](Value* r) {
      g_.loop(g_.i64(0), g_.i64(f.h.taps), 1, [&](Value* a) {
        Value* y =
            g_.sub(g_.add(g_.mul(g_.add(h0, r), g_.i64(f.h.stride)), g_.mul(a, g_.i64(f.h.dilation))), g_.i64(f.h.pad));
        Value* rowExists = g_.b.CreateAnd(g_.b.CreateICmpSGE(y, g_.i64(0)), g_.isBelow(y, ih_));
        Value* src = g_.at(x_, g_.mul(y, xh));
        g_.loop(g_.i64(0), g_.i64(f.w.taps), 1, [&](Value* b) {
          Value* out = g_.at(g_.at(e_.scratch(), g_.mul(g_.add(g_.mul(a, g_.i64(f.w.taps)), b), g_.i64(q_.pitch))),
                             g_.mul(r, columns));
          g_.loop(g_.i64(0), columns, lanes, [&](Value* c) {
            Value* x = g_.sub(g_.add(g_.mul(g_.add(w0, c), g_.i64(f.w.stride)), g_.mul(b, g_.i64(f.w.dilation))),
                              g_.i64(f.w.pad));
            // Lanes whose pixel lies inside the image: x + lane * stride in [0, width), outputs below `columns`.
            Value* at = iota(e_, lanes, x, g_.i64(f.w.stride));
            Value* inside = g_.b.CreateICmpULT(at, g_.splat(iw_));
            inside = g_.b.CreateAnd(inside, tailMask(e_, g_.sub(columns, c), lanes));
            inside = g_.b.CreateSelect(rowExists, inside, none);
            Value* first = g_.at(src, g_.mul(x, xw));
            Value* to = g_.at(out, c);
            if (!channels) {
              g_.loop(g_.i64(0), g_.i64(v_.icg), 1, [&](Value* i) {
                Value* from = g_.at(first, g_.mul(i, xc));
                g_.storeVec(strided(from, g_.mul(xw, g_.i64(f.w.stride)), inside),
                            g_.at(to, g_.mul(i, g_.i64(taps * q_.pitch))), nullptr, 4);
              });
              return;
            }
            // Channels are contiguous: squares of pixels and channels are transposed in registers.
            g_.loop(g_.i64(0), g_.i64(v_.icg), lanes, [&](Value* i) {
              Value* left = g_.sub(g_.i64(v_.icg), i);
              Value* mask = tailMask(e_, left, lanes);
              Values square;
              for (int l = 0; l < lanes; l++) {
                Value* m = g_.b.CreateSelect(g_.b.CreateExtractElement(inside, uint64_t(l)), mask, none);
                square.push_back(
                    g_.loadVec(g_.f32(), g_.at(g_.at(first, i), g_.mul(g_.i64(l * f.w.stride), xw)), m, 4));
              }
              square = transposeSquare(g_, square);
              for (int l = 0; l < lanes; l++)
                g_.ifThen(g_.isBelow(g_.i64(l), left), [&] {
                  g_.storeVec(square[size_t(l)], g_.at(to, g_.mul(g_.add(i, g_.i64(l)), g_.i64(taps * q_.pitch))),
                              nullptr, 4);
                });
            });
          });
        });
      });
    });
  }
  Value* strided(Value* from, Value* stride, Value* mask) {
    int64_t c = 0;
    if (Gen::isConst(stride, &c) && c == 1) return g_.loadVec(g_.f32(), from, mask, 4);
    auto* type = g_.vecF32();
    Value* ptrs = g_.b.CreateGEP(g_.f32(), from, iota(e_, g_.isa.lanes, g_.i64(0), stride));
    return g_.b.CreateMaskedGather(type, ptrs, llvm::Align(4), mask, llvm::Constant::getNullValue(type));
  }

  const Im2colPlan& q_;
  const ConvView& v_;
  Emitter& e_;
  Gen g_;
  Value *ih_ = nullptr, *iw_ = nullptr, *x_ = nullptr;
};

class ConvIm2col final : public CpuTactic {
 public:
  explicit ConvIm2col(ProblemKind kind) : kind_(kind) {}
  std::string_view name() const override { return kind_ == ProblemKind::kConv ? "conv_im2col" : "deconv_im2col"; }
  ProblemKind kind() const override { return kind_; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    std::string why;
    auto v = convView(p, &why);
    if (!v) return why;
    if (kind_ == ProblemKind::kDeconv && (v->dh != 1 || v->dw != 1)) return "a dilated transposed convolution";
    return pwRefuses(p, m);
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    ConvView v = *convView(p, nullptr);
    auto phases = convPhases(p, v);
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    VectorIsa isa = vectorIsa(m, c.get("vector"));
    int64_t stepH = phases[0].h.step, stepW = phases[0].w.step;
    int64_t width = std::max<int64_t>(1, ceilOf(p.optOf(v.ow), stepW)),
            height = std::max<int64_t>(1, ceilOf(p.optOf(v.oh), stepH));
    int64_t maxWidth = std::max<int64_t>(1, ceilOf(p.maxOf(v.ow), stepW)), sum = 1;
    for (const ConvPhase& f : phases) sum = std::max(sum, f.h.taps * f.w.taps * v.icg);
    // The matrix of a task stays in L2.
    int64_t columns = std::max<int64_t>(m.l2 / 2 / 4 / sum, 4 * isa.lanes);
    int64_t taskW = std::min(maxWidth, columns), taskH = 1;
    if (auto wish = k.get(knob::conv_task_columns)) taskW = std::min(maxWidth, *wish);
    if (flattens(p, v) && taskW == maxWidth && v.hAxis >= 0) {
      taskH = std::clamp<int64_t>(columns / taskW, 1, height);
      int64_t wanted = m.cores > 1 ? 4 * m.cores : 1;
      while (taskH > 1 && p.optOf(v.n) * v.groups * ceilOf(height, taskH) < wanted) taskH = ceilOf(taskH, 2);
      if (auto wish = k.get(knob::conv_task_rows)) taskH = std::min(*wish, std::max<int64_t>(p.maxOf(v.oh), 1));
    } else if (k.explicitly(knob::conv_task_rows)) {
      k.refuse(knob::conv_task_rows, "rows of pixels do not follow each other in memory: one row a task");
    }
    TileChoice t =
        chooseTile(isa, v.ocg, true, std::min(taskW, width) * taskH, {knob::conv_tile_m, knob::conv_tile_n}, k);
    c.set("task_w", taskW);
    c.set("task_h", taskH);
    c.set("tile_m", t.rows);
    c.set("tile_n", int64_t(t.vectors) * isa.lanes);
    int64_t taskM = roundUp(v.ocg, t.rows);
    if (auto wish = k.get(knob::conv_block_oc)) taskM = std::min(taskM, roundUp(*wish, t.rows));
    c.set("task_m", taskM);
    c.set("unroll", k.getOr(knob::conv_unroll, 4));
    c.set("columns_outer", k.get(knob::conv_order) != "channels");
    auto epilogue = k.get(knob::gemm_epilogue);
    c.set("epilogue_loop", epilogue == "auto" ? TileEpilogue::wantsLoop(p) : epilogue == "loop");
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    Im2colPlan q(p, c);
    VectorIsa isa = vectorIsa(m, c.get("vector"));
    double steps = 0, pixels = double(p.optOf(q.v.oh) * p.optOf(q.v.ow)), outputs = pixels * double(q.v.oc.value);
    int64_t block = q.taskH * std::min(q.taskW, p.optOf(q.v.ow));
    for (const ConvPhase& f : q.phases) {
      double share = pixels / double(q.phases.size()) / double(std::max<int64_t>(block, 1));
      steps += share * double(q.v.groups) *
               (tilingCost(isa, q.v.ocg, true, block, int(q.tileM), int(q.tileN / isa.lanes)) * double(q.sum(f)));
      // Laying out the matrix: copied in vectors, transposed in registers, or gathered one by one.
      double element = q.v.xc.is(1) && q.v.icg > 1       ? 14.0 / isa.lanes
                       : q.v.xw.is(1) && f.w.stride == 1 ? 5.0 / isa.lanes
                                                         : 1.5;
      // Phases of one tap share the matrix of the first.
      double matrices = f.h.taps == 1 && f.w.taps == 1 && q.phases.size() > 1 ? 1.0 / double(q.phases.size()) : 1;
      steps += matrices * pixels / double(q.phases.size()) * double(q.sum(f) * q.v.groups) * element *
               double(ceilOf(q.v.ocg, q.taskM));
    }
    // Stores that are scattered element by element.
    bool contiguous = outputsContiguous(p, q.v.wAxis) && q.phases[0].w.step == 1;
    steps += outputs * (contiguous ? 1.0 / isa.lanes : 4);
    return steps * double(p.optOf(q.v.n)) / kVectorFmaPerSecond + p.bytes() / kBytesPerSecond;
  }
  Lowering lower(const Problem& p, const Config& c) const override {
    Im2colPlan q(p, c);
    const ConvView& v = q.v;
    Lowering r;
    bool transposed = kind_ == ProblemKind::kDeconv;
    PackSpec s{1,
               fmt::format("im2col_{} {}x{}x{}x{}/{} strides {},{},{},{}", transposed ? "t" : "d", v.oc.value, v.icg,
                           v.kh, v.kw, v.groups, v.wo, v.wi, v.wh, v.ww),
               q.weights * 4,
               {}};
    if (transposed) s.layout += fmt::format(" by {}x{} pads {},{}", v.sh, v.sw, v.pt, v.pl);
    std::vector<int64_t> pitches;
    for (const ConvPhase& f : q.phases) pitches.push_back(q.pitchA(f));
    s.pack = [v, phases = q.phases, pitches, transposed](const ir::Tensor& in, void* out) {
      const float* w = in.as<float>();
      float* o = static_cast<float*>(out);
      for (size_t n = 0; n < phases.size(); n++) {
        const ConvPhase& f = phases[n];
        for (int64_t oc = 0; oc < v.oc.value; oc++) {
          float* row = o + f.weights + oc * pitches[n];
          float* end = row + pitches[n];
          for (int64_t i = 0; i < v.icg; i++)
            for (int64_t a = 0; a < f.h.taps; a++)
              for (int64_t b = 0; b < f.w.taps; b++) {
                int64_t tap = (f.h.first + a * f.h.advance) * v.wh + (f.w.first + b * f.w.advance) * v.ww;
                *row++ = transposed ? w[tap + (oc / v.ocg * v.icg + i) * v.wo + oc % v.ocg * v.wi]
                                    : w[tap + oc * v.wo + i * v.wi];
              }
          std::fill(row, end, 0.f);
        }
      }
    };
    r.packs.push_back(std::move(s));
    codegen::LaunchSpec l;
    for (size_t i = 0; i < p.operands.size(); i++) l.refs.push_back(i == 1 ? 1000 : int(i));
    const ConvPhase& f = q.phases[0];
    l.tasks = v.n.dim() * ceilDiv(ceilDiv(v.oh.dim(), Dim(f.h.step)), Dim(q.taskH)) *
              ceilDiv(ceilDiv(v.ow.dim(), Dim(f.w.step)), Dim(q.taskW)) * Dim(v.groups * ceilOf(v.ocg, q.taskM));
    l.scratch = q.panelBytes() + q.tileBytes();
    r.launches.push_back(l);
    return r;
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    Im2colPlan q(p, c);
    Im2colEmitter(q, e).emit();
  }

 private:
  ProblemKind kind_;
};
}  // namespace

const CpuTactic& convIm2col() {
  static const ConvIm2col t(ProblemKind::kConv);
  return t;
}
const CpuTactic& deconvIm2col() {
  static const ConvIm2col t(ProblemKind::kDeconv);
  return t;
}

}  // namespace rutter::cpu
