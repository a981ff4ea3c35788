// Depthwise convolution, channels last: vectors of channels, a tile of neighbouring output pixels in registers, so that
// each weight and each input vector is loaded once a tile.
#include <algorithm>

#include "base/ints.h"
#include "cpu/conv_view.h"
#include "cpu/gen.h"
#include "cpu/pw.h"
#include "cpu/tactic.h"
#include "cpu/tile_choice.h"
#include "cpu/tile_epilogue.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::Lowering;
using codegen::MachineProfile;
using codegen::PackSpec;
using ir::Dim;

class DepthwiseEmitter {
 public:
  DepthwiseEmitter(const Problem& p, const Config& c, Emitter& e)
      : p_(p),
        c_(c),
        v_(*convView(p, nullptr)),
        e_(e),
        g_(e),
        pixels_(int(c.get("tile_w"))),
        vectors_(int(c.get("tile_v"))) {}

  void emit() {
    e_.beginKernel();
    step_ = int64_t(vectors_) * g_.isa.lanes;
    oh_ = g_.dim(v_.oh);
    ow_ = g_.dim(v_.ow);
    ih_ = g_.dim(v_.ih);
    iw_ = g_.dim(v_.iw);
    TileEpilogue epilogue(g_, {&p_, v_.wAxis, 1, -1, false, nullptr, 1, 1});
    epilogue_ = &epilogue;
    int64_t taskH = c_.get("task_h"), taskC = c_.get("task_c");
    Value *blocksH = g_.ceilDiv(oh_, taskH), *blocksC = g_.i64(ceilOf(v_.oc.value, taskC));
    g_.loop(e_.begin(), e_.end(), 1, [&](Value* t) {
      Value *bc = g_.rem(t, blocksC), *rest = g_.div(t, blocksC);
      Value* h0 = g_.mul(g_.rem(rest, blocksH), g_.i64(taskH));
      image_ = g_.div(rest, blocksH);
      x_ = g_.at(e_.ptr(0), g_.mul(image_, g_.dim(v_.xn)));
      Value* c0 = g_.mul(bc, g_.i64(taskC));
      Value* c1 = g_.min(g_.add(c0, g_.i64(taskC)), g_.i64(v_.oc.value));
      g_.loop(h0, g_.min(g_.add(h0, g_.i64(taskH)), oh_), 1, [&](Value* h) { row(h, c0, c1); });
    });
    e_.endKernel();
  }

 private:
  void row(Value* h, Value* c0, Value* c1) {
    h_ = h;
    Value* first = g_.sub(g_.mul(h, g_.i64(v_.sh)), g_.i64(v_.pt));
    auto tapsBefore = [&](Value* room) {
      return g_.div(g_.max(g_.add(room, g_.i64(v_.dh - 1)), g_.i64(0)), g_.i64(v_.dh));
    };
    a0_ = tapsBefore(g_.sub(g_.i64(0), first));
    a1_ = g_.min(tapsBefore(g_.sub(ih_, first)), g_.i64(v_.kh));
    rowBase_ = g_.at(x_, g_.mul(first, g_.dim(v_.xh)));
    auto channels = [&](const std::function<void(Value*, const Values&)>& body) {
      Value* whole = g_.floorTo(g_.i64(v_.oc.value), step_);
      g_.loop(c0, g_.min(c1, whole), step_, [&](Value* ch) { body(ch, Values(size_t(vectors_))); });
      if (v_.oc.value % step_ == 0) return;
      g_.ifThen(g_.isBelow(g_.max(c0, whole), c1), [&] {
        Values masks;
        for (int j = 0; j < vectors_; j++) {
          Value* m = g_.maskBelow(g_.i64(v_.oc.value % step_ - int64_t(j) * g_.isa.lanes));
          masks.push_back(m);
        }
        body(whole, masks);
      });
    };
    // A tile is an edge if some tap of it may lie outside sideways, or some pixel of it past the row's end.
    auto pixels = [&](const std::function<void(Value*, bool)>& body) {
      g_.loop(g_.i64(0), ow_, pixels_, [&](Value* w) {
        if (pixels_ == 1 && v_.kw == 1 && v_.pl == 0 && v_.pr == 0) {
          body(w, false);
          return;
        }
        Value* x = g_.sub(g_.mul(w, g_.i64(v_.sw)), g_.i64(v_.pl));
        Value* last = g_.add(x, g_.i64((pixels_ - 1) * v_.sw + (v_.kw - 1) * v_.dw));
        Value* inside = g_.b.CreateAnd(g_.b.CreateICmpSGE(x, g_.i64(0)), g_.isBelow(last, iw_));
        inside = g_.b.CreateAnd(inside, g_.b.CreateICmpSLE(g_.add(w, g_.i64(pixels_)), ow_));
        e_.branch(
            inside,
            [&] {
              body(w, false);
              return Values{};
            },
            [&] {
              body(w, true);
              return Values{};
            });
      });
    };
    if (c_.get("channels_outer"))
      channels([&](Value* ch, const Values& masks) { pixels([&](Value* w, bool edge) { tile(w, edge, ch, masks); }); });
    else
      pixels([&](Value* w, bool edge) { channels([&](Value* ch, const Values& masks) { tile(w, edge, ch, masks); }); });
  }

  void tile(Value* w, bool edge, Value* ch, const Values& masks) {
    Value* xw = g_.dim(v_.xw);
    Value* x = g_.sub(g_.mul(w, g_.i64(v_.sw)), g_.i64(v_.pl));
    Value* base = g_.at(g_.at(rowBase_, g_.mul(x, xw)), ch);
    Value* weights = g_.at(e_.ptr(1), g_.mul(ch, g_.i64(v_.kh * v_.kw)));
    // Input columns that the tile reads; at an edge those outside are masked off and count as zeros.
    int64_t columns = (pixels_ - 1) * v_.sw + (v_.kw - 1) * v_.dw + 1;
    std::vector<bool> used(size_t(columns), false);
    for (int i = 0; i < pixels_; i++)
      for (int64_t b = 0; b < v_.kw; b++) used[size_t(i * v_.sw + b * v_.dw)] = true;
    auto boolVec = g_.vec(g_.b.getInt1Ty());
    std::vector<Values> columnMask(static_cast<size_t>(columns), masks);
    if (edge)
      for (int64_t i = 0; i < columns; i++)
        if (used[size_t(i)]) {
          Value* at = g_.add(x, g_.i64(i));
          Value* inside = g_.b.CreateAnd(g_.b.CreateICmpSGE(at, g_.i64(0)), g_.isBelow(at, iw_));
          for (int j = 0; j < vectors_; j++) {
            Value* whole = masks[size_t(j)] ? masks[size_t(j)] : llvm::Constant::getAllOnesValue(boolVec);
            columnMask[size_t(i)][size_t(j)] = g_.b.CreateSelect(inside, whole, llvm::Constant::getNullValue(boolVec));
          }
        }
    Values acc(size_t(pixels_ * vectors_), g_.zero());
    acc = g_.loop(a0_, a1_, 1, acc, [&](Value* a, const Values& carried) {
      Values sum = carried;
      Value* in = g_.at(base, g_.mul(a, g_.mul(g_.i64(v_.dh), g_.dim(v_.xh))));
      Value* wt = g_.at(weights, g_.mul(a, g_.i64(v_.kw * step_)));
      for (int j = 0; j < vectors_; j++) {
        Values loaded(static_cast<size_t>(columns));
        for (int64_t b = 0; b < v_.kw; b++) {
          Value* f = g_.loadVec(g_.f32(), g_.at(wt, b * step_ + int64_t(j) * g_.isa.lanes), nullptr, g_.isa.lanes * 4);
          for (int i = 0; i < pixels_; i++) {
            size_t col = size_t(i * v_.sw + b * v_.dw);
            if (!loaded[col]) {
              Value* at = g_.at(g_.at(in, g_.mul(g_.i64(int64_t(col)), xw)), int64_t(j) * g_.isa.lanes);
              loaded[col] = g_.loadVec(g_.f32(), at, columnMask[col][size_t(j)], 4);
            }
            Value*& s = sum[size_t(i * vectors_ + j)];
            s = g_.mulAdd(loaded[col], f, s);
          }
        }
      }
      return sum;
    });
    Values origin(p_.space.size(), g_.i64(0));
    origin[0] = image_;
    origin[1] = ch;
    if (v_.hAxis >= 0) origin[size_t(v_.hAxis)] = h_;
    origin[size_t(v_.wAxis)] = w;
    if (!edge) {
      epilogue_->emit(origin, pixels_, pixels_, vectors_, masks, acc);
      return;
    }
    for (int i = 0; i < pixels_; i++)
      g_.ifThen(g_.isBelow(g_.add(w, g_.i64(i)), ow_), [&] {
        Values at = origin;
        at[size_t(v_.wAxis)] = g_.add(w, g_.i64(i));
        epilogue_->emit(at, 1, 1, vectors_, masks,
                        Values(acc.begin() + i * vectors_, acc.begin() + (i + 1) * vectors_));
      });
  }

  const Problem& p_;
  const Config& c_;
  ConvView v_;
  Emitter& e_;
  Gen g_;
  int pixels_, vectors_;
  int64_t step_ = 0;
  TileEpilogue* epilogue_ = nullptr;
  Value *oh_ = nullptr, *ow_ = nullptr, *ih_ = nullptr, *iw_ = nullptr, *x_ = nullptr, *image_ = nullptr, *h_ = nullptr;
  Value *a0_ = nullptr, *a1_ = nullptr, *rowBase_ = nullptr;
};

class ConvDepthwise final : public CpuTactic {
 public:
  std::string_view name() const override { return "conv_depthwise"; }
  codegen::ProblemKind kind() const override { return codegen::ProblemKind::kConv; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    std::string why;
    auto v = convView(p, &why);
    if (!v) return why;
    if (!v->depthwise()) return "not one filter a channel";
    if (!v->xc.is(1) || !outputsContiguous(p, 1)) return "channels are not contiguous";
    return pwRefuses(p, m);
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    ConvView v = *convView(p, nullptr);
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    VectorIsa isa = vectorIsa(m, c.get("vector"));
    int64_t vectors = std::clamp<int64_t>(ceilOf(v.oc.value, isa.lanes), 1, k.getOr(knob::conv_dw_vectors, 1));
    // Accumulators, the inputs that they share and a weight stay in registers.
    auto fits = [&](int64_t t) { return t * vectors + (t - 1) * v.sw + (v.kw - 1) + 2 <= isa.registers; };
    int64_t most = isa.registers >= 32 ? 8 : 4, width = std::max<int64_t>(p.optOf(v.ow), 1), pixels = 1;
    for (int64_t t = 1; t <= most; t++)
      if (fits(t) && ceilOf(width, t) < ceilOf(width, pixels)) pixels = t;
    c.set("tile_w", k.getOr(knob::conv_dw_tile, pixels));
    c.set("tile_v", vectors);
    c.set("channels_outer", k.get(knob::conv_order) == "channels");
    int64_t step = vectors * isa.lanes, taskC = roundUp(v.oc.value, step);
    if (auto wish = k.get(knob::conv_block_oc)) taskC = std::min(roundUp(*wish, step), taskC);
    c.set("task_c", taskC);
    // Rows that some tens of thousands of cycles take, and enough of them for all threads.
    int64_t height = std::max<int64_t>(p.optOf(v.oh), 1),
            images = std::max<int64_t>(p.optOf(v.n), 1) * ceilOf(v.oc.value, taskC);
    int64_t perRow = width * taskC * v.taps() / isa.lanes;
    int64_t taskH = std::max<int64_t>(1, 40000 / std::max<int64_t>(perRow, 1));
    if (m.cores > 1) taskH = std::min(taskH, std::max<int64_t>(1, height * images / (4 * m.cores)));
    c.set("task_h",
          std::min(k.getOr(knob::conv_task_rows, std::min(taskH, height)), std::max<int64_t>(p.maxOf(v.oh), 1)));
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile&) const override {
    double lanes = double(c.get("vector")) / 4, points = 1;
    for (const KDim& d : p.space) points *= double(p.optOf(d));
    return points / lanes * double(convView(p, nullptr)->taps()) * 1.5 / kVectorFmaPerSecond +
           p.bytes() / kBytesPerSecond;
  }
  Lowering lower(const Problem& p, const Config& c) const override {
    ConvView v = *convView(p, nullptr);
    int64_t step = c.get("tile_v") * c.get("vector") / 4, channels = v.oc.value;
    Lowering r;
    PackSpec s{1,
               fmt::format("depthwise {} {}x{}x{} strides {},{},{}", step, channels, v.kh, v.kw, v.wo, v.wh, v.ww),
               roundUp(channels, step) * v.taps() * 4,
               {}};
    s.pack = [v, step, channels](const ir::Tensor& in, void* out) {
      const float* w = in.as<float>();
      float* o = static_cast<float*>(out);
      for (int64_t c0 = 0; c0 < channels; c0 += step)
        for (int64_t a = 0; a < v.kh; a++)
          for (int64_t b = 0; b < v.kw; b++)
            for (int64_t j = 0; j < step; j++)
              *o++ = c0 + j < channels ? w[(c0 + j) * v.wo + a * v.wh + b * v.ww] : 0.f;
    };
    r.packs.push_back(std::move(s));
    codegen::LaunchSpec l;
    for (size_t i = 0; i < p.operands.size(); i++) l.refs.push_back(i == 1 ? 1000 : int(i));
    l.tasks = v.n.dim() * ceilDiv(v.oh.dim(), Dim(c.get("task_h"))) * Dim(ceilOf(channels, c.get("task_c")));
    r.launches.push_back(l);
    return r;
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    DepthwiseEmitter(p, c, e).emit();
  }
};
}  // namespace

const CpuTactic& convDepthwise() {
  static const ConvDepthwise t;
  return t;
}

}  // namespace rutter::cpu
