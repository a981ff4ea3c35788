#include <algorithm>

#include "cpu/conv_direct.h"
#include "cpu/gemm_block.h"
#include "cpu/tile_epilogue.h"

namespace rutter::cpu {
namespace {

int64_t floorDivide(int64_t x, int64_t y) {
  return x >= 0 ? x / y : -((-x + y - 1) / y);
}

}  // namespace

Value* convOutputs(Gen& g, const ConvPhase::Axis& a, Value* extent) {
  if (a.step == 1) return extent;
  // ceil((extent + pad - residue) / step), less those before the first: pad = skipped * step + residue - origin.
  int64_t pad = a.skipped * a.step + a.residue - a.origin, x = 0;
  Value* top = g.add(extent, g.i64(pad - a.residue + a.step - 1));
  if (Gen::isConst(top, &x)) return g.i64(std::max<int64_t>(floorDivide(x, a.step) - a.skipped, 0));
  return g.max(g.sub(g.div(g.max(top, g.i64(0)), g.i64(a.step)), g.i64(a.skipped)), g.i64(0));
}

namespace {
class ConvEmitter {
 public:
  ConvEmitter(const ConvPlan& plan, Emitter& e) : c_(plan), v_(plan.v), e_(e), g_(e) {}

  void emit() {
    e_.beginKernel();
    n_ = g_.dim(v_.n);
    oh_ = g_.dim(v_.oh);
    ow_ = g_.dim(v_.ow);
    ih_ = g_.dim(v_.ih);
    iw_ = g_.dim(v_.iw);
    partial_ = g_.at(e_.scratch(), c_.patchBytes(), 1);
    Value* tileBuffer = g_.at(partial_, c_.partialBytes(), 1);
    bool inLoop = c_.c.get("epilogue_loop");
    for (const ConvPhase& f : c_.phases)
      epilogues_.emplace_back(
          g_, TileEpilogue::Setup{&c_.p, v_.wAxis, 1, v_.hAxis, inLoop, tileBuffer, f.w.step, f.h.step});
    const ConvPhase& f0 = c_.phases[0];
    Value* blocksH = g_.ceilDiv(g_.ceilDiv(oh_, f0.h.step), c_.taskH);
    Value* blocksW = g_.ceilDiv(g_.ceilDiv(ow_, f0.w.step), c_.taskW);
    int64_t blocksN = (v_.ocg + c_.taskN - 1) / c_.taskN;
    bool channelsInner = c_.c.get("channels_inner");
    // Neighbouring tasks of one thread often read the same patch: it is copied once.
    bool keep = c_.copy && c_.phases.size() == 1;
    Values last;
    if (keep) last.push_back(g_.i64(-1));
    g_.loop(e_.begin(), e_.end(), 1, last, [&](Value* t, const Values& carried) {
      Value* rest = t;
      auto next = [&](Value* count) {
        Value* x = g_.rem(rest, count);
        rest = g_.div(rest, count);
        return x;
      };
      Value *bn, *bw, *bh, *image;
      if (channelsInner) {
        bn = next(g_.i64(blocksN));
        group_ = next(g_.i64(v_.groups));
        bw = next(blocksW);
        bh = next(blocksH);
        image = rest;
      } else {
        bw = next(blocksW);
        bh = next(blocksH);
        bn = next(g_.i64(blocksN));
        group_ = next(g_.i64(v_.groups));
        image = rest;
      }
      image_ = image;
      h0_ = g_.mul(bh, g_.i64(c_.taskH));
      w0_ = g_.mul(bw, g_.i64(c_.taskW));
      n0_ = g_.mul(bn, g_.i64(c_.taskN));
      n1_ = g_.min(g_.add(n0_, g_.i64(c_.taskN)), g_.i64(v_.ocg));
      x_ = g_.at(g_.at(e_.ptr(0), g_.mul(image, g_.dim(v_.xn))), g_.mul(g_.mul(group_, g_.i64(v_.icg)), g_.dim(v_.xc)));
      Value* patch = nullptr;
      if (keep) {
        patch =
            g_.add(g_.mul(g_.add(g_.mul(g_.add(g_.mul(image, blocksH), bh), blocksW), bw), g_.i64(v_.groups)), group_);
        phase(c_.phases[0], 0, g_.b.CreateICmpNE(patch, carried[0]));
        return Values{patch};
      }
      for (size_t i = 0; i < c_.phases.size(); i++) phase(c_.phases[i], i, g_.b.getTrue());
      return Values{};
    });
    e_.endKernel();
  }

 private:
  void phase(const ConvPhase& f, size_t index, Value* fresh) {
    f_ = &f;
    epilogue_ = &epilogues_[index];
    rows_ = convOutputs(g_, f.h, oh_);
    columns_ = convOutputs(g_, f.w, ow_);
    h1_ = g_.min(g_.add(h0_, g_.i64(c_.taskH)), rows_);
    w1_ = g_.min(g_.add(w0_, g_.i64(c_.taskW)), columns_);
    weights_ = g_.at(e_.ptr(1), f.weights);
    weights_ = g_.at(weights_, g_.mul(group_, g_.i64(c_.tilesN() * c_.tileN * c_.sum(f))));
    if (c_.copy) {
      patch_ = c_.patch(f);
      g_.ifThen(fresh, [&] { copyPatch(); });
    }
    if (!c_.blockIc) {
      part_ = {};
      channel0_ = g_.i64(0);
      pixelsAndChannels();
      return;
    }
    g_.loop(g_.i64(0), g_.i64(v_.icg), c_.blockIc, [&](Value* ic) {
      channel0_ = ic;
      part_.first = g_.b.CreateICmpEQ(ic, g_.i64(0));
      part_.last = g_.b.CreateICmpEQ(ic, g_.i64(v_.icg - c_.blockIc));
      pixelsAndChannels();
    });
  }

  // ---- the patch ----
  void fill(Value* out, Value* count) {
    g_.loop(g_.i64(0), count, g_.isa.lanes,
            [&](Value* i) { g_.storeVec(g_.zero(), g_.at(out, i), g_.maskBelow(g_.sub(count, i)), 4); });
  }
  void copyRun(Value* src, Value* out, Value* count) {
    emitCopyRows(g_, src, g_.i64(0), g_.i64(1), g_.i64(1), count, out, g_.i64(0));
  }
  void copyPatch() {
    const ConvPhase& f = *f_;
    auto need = [&](Value* lo, Value* hi, const ConvPhase::Axis& a, int64_t stride) {
      Value* n = g_.add(g_.mul(g_.sub(g_.sub(hi, lo), g_.i64(1)), g_.i64(stride)),
                        g_.i64(std::max<int64_t>(a.taps - 1, 0) * a.dilation + 1));
      return g_.b.CreateSelect(g_.isBelow(lo, hi), n, g_.i64(0));
    };
    Value* rows = need(h0_, h1_, f.h, patch_.strideH);
    Value* columns = need(w0_, w1_, f.w, patch_.strideW);
    // Steps of the input between patch rows and columns.
    int64_t stepH = f.h.taps == 1 ? f.h.stride : 1, stepW = f.w.taps == 1 ? f.w.stride : 1;
    Value* top = g_.sub(g_.mul(h0_, g_.i64(f.h.stride)), g_.i64(f.h.pad));
    Value* left = g_.sub(g_.mul(w0_, g_.i64(f.w.stride)), g_.i64(f.w.pad));
    // Columns [from, to) lie inside the image.
    auto inside = [&](Value* limit) {
      Value* n = g_.add(g_.sub(limit, left), g_.i64(stepW - 1));
      return g_.min(g_.div(g_.max(n, g_.i64(0)), g_.i64(stepW)), columns);
    };
    Value* from = inside(g_.i64(0));
    Value* to = g_.max(inside(iw_), from);
    auto row = [&](Value* r, Value* out, Value* x) {
      Value* y = g_.add(top, g_.mul(r, g_.i64(stepH)));
      Value* exists = g_.b.CreateAnd(g_.b.CreateICmpSGE(y, g_.i64(0)), g_.isBelow(y, ih_));
      auto pixels = [&](Value* n) { return g_.mul(n, g_.i64(patch_.pixel)); };
      e_.branch(
          exists,
          [&] {
            fill(out, pixels(from));
            Value* src = g_.at(g_.at(x, g_.mul(y, g_.dim(v_.xh))),
                               g_.mul(g_.add(left, g_.mul(from, g_.i64(stepW))), g_.dim(v_.xw)));
            copyColumns(src, g_.at(out, pixels(from)), g_.sub(to, from), stepW);
            fill(g_.at(out, pixels(to)), pixels(g_.sub(columns, to)));
            return Values{};
          },
          [&] {
            fill(out, pixels(columns));
            return Values{};
          });
    };
    Value* patch = e_.scratch();
    int64_t pitch = patch_.columns * patch_.pixel;
    if (c_.planar)
      g_.loop(g_.i64(0), g_.i64(v_.icg), 1, [&](Value* ch) {
        g_.loop(g_.i64(0), rows, 1, [&](Value* r) {
          row(r, g_.at(g_.at(patch, g_.mul(ch, g_.i64(patch_.plane))), g_.mul(r, g_.i64(pitch))),
              g_.at(x_, g_.mul(ch, g_.dim(v_.xc))));
        });
      });
    else
      g_.loop(g_.i64(0), rows, 1, [&](Value* r) { row(r, g_.at(patch, g_.mul(r, g_.i64(pitch))), x_); });
  }
  void copyColumns(Value* src, Value* out, Value* count, int64_t stepW) {
    bool dense = v_.xw.is(c_.planar ? 1 : v_.icg) && stepW == 1 && patch_.pixel == (c_.planar ? 1 : v_.icg);
    if (dense) {
      copyRun(src, out, g_.mul(count, g_.i64(patch_.pixel)));
      return;
    }
    Value* step = g_.mul(g_.dim(v_.xw), g_.i64(stepW));
    g_.loop(g_.i64(0), count, 1, [&](Value* i) {
      Value *s = g_.at(src, g_.mul(i, step)), *d = g_.at(out, g_.mul(i, g_.i64(patch_.pixel)));
      if (c_.planar || v_.icg == 1)
        g_.b.CreateAlignedStore(g_.load(g_.f32(), s), d, llvm::Align(4));
      else
        copyRun(s, d, g_.i64(v_.icg));
    });
  }

  // ---- the loops ----
  void pixelsAndChannels() {
    auto channels = [&](const std::function<void(Value*, int, const Values&)>& body) {
      emitColumns(g_, n0_, n1_, g_.i64(v_.ocg), int(c_.tileN / g_.isa.lanes), body);
    };
    if (c_.c.get("channels_outer"))
      channels([&](Value* n, int vectors, const Values& masks) {
        pixels([&](Value* h, Value* w, int th, int tw, bool edge) { tile(n, vectors, masks, h, w, th, tw, edge); });
      });
    else
      pixels([&](Value* h, Value* w, int th, int tw, bool edge) {
        channels([&](Value* n, int vectors, const Values& masks) { tile(n, vectors, masks, h, w, th, tw, edge); });
      });
  }
  // body(first row, first column, rows, columns of the tile, some taps of it may lie outside the image sideways).
  using PixelBody = std::function<void(Value*, Value*, int, int, bool)>;
  void pixels(const PixelBody& body) {
    int tw = int(c_.tileW);
    if (c_.tileH > 1) {
      // Tiles of whole rows.
      Value* to = g_.add(h0_, g_.floorTo(g_.sub(h1_, h0_), c_.tileH));
      Value* zero = g_.i64(0);
      g_.loop(h0_, to, c_.tileH, [&](Value* h) { body(h, zero, int(c_.tileH), tw, false); });
      g_.loop(to, h1_, 1, [&](Value* h) { body(h, zero, 1, tw, false); });
      return;
    }
    g_.loop(h0_, h1_, 1, [&](Value* h) {
      const ConvPhase::Axis& a = f_->w;
      bool clipped = !c_.copy && (v_.padded() || c_.transposed);
      if (!clipped || a.taps == 0) {
        emitTiles(g_, w0_, w1_, columns_, tw, [&](Value* w, int n) { body(h, w, 1, n, false); });
        return;
      }
      // Columns whose taps all lie inside: [left, right). Elsewhere one pixel at a time.
      Value* left = g_.i64(std::max<int64_t>(0, (a.pad + a.stride - 1) / a.stride));
      Value* room = g_.add(iw_, g_.i64(a.pad - (a.taps - 1) * a.dilation - 1));
      Value* right = g_.div(g_.max(g_.add(room, g_.i64(a.stride)), g_.i64(0)), g_.i64(a.stride));
      Value* l = g_.min(g_.max(w0_, left), w1_);
      Value* r = g_.max(g_.min(w1_, right), l);
      g_.loop(w0_, l, 1, [&](Value* w) { body(h, w, 1, 1, true); });
      Value* count = g_.sub(r, l);
      emitTiles(g_, g_.i64(0), count, count, tw, [&](Value* w, int n) { body(h, g_.add(l, w), 1, n, false); });
      g_.loop(r, w1_, 1, [&](Value* w) { body(h, w, 1, 1, true); });
    });
  }
  // Taps [lo, hi) that read inside [0, extent) from output q.
  std::pair<Value*, Value*> taps(const ConvPhase::Axis& a, Value* q, Value* extent) {
    Value* first = g_.sub(g_.mul(q, g_.i64(a.stride)), g_.i64(a.pad));
    Value* lo = g_.div(g_.max(g_.add(g_.sub(g_.i64(0), first), g_.i64(a.dilation - 1)), g_.i64(0)), g_.i64(a.dilation));
    Value* hi = g_.div(g_.max(g_.add(g_.sub(extent, first), g_.i64(a.dilation - 1)), g_.i64(0)), g_.i64(a.dilation));
    return {lo, g_.min(hi, g_.i64(a.taps))};
  }
  void tile(Value* n, int vectors, const Values& masks, Value* h, Value* w, int th, int tw, bool edge) {
    const ConvPhase& f = *f_;
    int64_t tn = c_.tileN, block = c_.blockIc ? c_.blockIc : v_.icg;
    SumTile t;
    t.rows = th * tw;
    t.vectors = vectors;
    t.unroll = int(c_.c.get("unroll"));
    t.prefetch = int(c_.c.get("prefetch"));
    t.bAlign = g_.isa.lanes * 4;
    t.lastLanes = leadingLanes(g_, masks.back());
    t.b = g_.at(weights_, g_.add(g_.mul(n, g_.i64(c_.sum(f))), g_.mul(channel0_, g_.i64(f.h.taps * f.w.taps * tn))));
    Value *stepH, *stepW, *stepC, *outH, *outW;
    if (c_.copy) {
      int64_t pitch = patch_.columns * patch_.pixel;
      stepH = g_.i64(f.h.dilation * pitch);
      stepW = g_.i64(f.w.dilation * patch_.pixel);
      stepC = g_.i64(patch_.plane);
      outH = g_.i64(patch_.strideH * pitch);
      outW = g_.i64(patch_.strideW * patch_.pixel);
      t.a = g_.at(g_.at(e_.scratch(), g_.mul(g_.sub(h, h0_), outH)), g_.mul(g_.sub(w, w0_), outW));
    } else {
      Value *xh = g_.dim(v_.xh), *xw = g_.dim(v_.xw);
      stepH = g_.mul(g_.i64(f.h.dilation), xh);
      stepW = g_.mul(g_.i64(f.w.dilation), xw);
      stepC = g_.dim(v_.xc);
      outH = g_.mul(g_.i64(f.h.stride), xh);
      outW = g_.mul(g_.i64(f.w.stride), xw);
      Value* y = g_.sub(g_.mul(h, g_.i64(f.h.stride)), g_.i64(f.h.pad));
      Value* x = g_.sub(g_.mul(w, g_.i64(f.w.stride)), g_.i64(f.w.pad));
      t.a = g_.at(g_.at(x_, g_.mul(y, xh)), g_.mul(x, xw));
    }
    t.a = g_.at(t.a, g_.mul(channel0_, stepC));
    t.rowOffset = [&, outH, outW, tw](int i) {
      return g_.add(g_.mul(g_.i64(i / tw), outH), g_.mul(g_.i64(i % tw), outW));
    };
    Value *a0 = g_.i64(0), *a1 = g_.i64(f.h.taps), *b0 = a0, *b1 = g_.i64(f.w.taps);
    if (!c_.copy && (v_.padded() || c_.transposed)) {
      std::tie(a0, a1) = taps(f.h, h, ih_);
      if (edge) std::tie(b0, b1) = taps(f.w, w, iw_);
    }
    if (c_.planar) {
      t.loops = {{g_.i64(0), g_.i64(block), stepC, g_.i64(f.h.taps * f.w.taps * tn)},
                 {a0, a1, stepH, g_.i64(f.w.taps * tn)},
                 {b0, b1, stepW, g_.i64(tn)}};
    } else {
      t.loops = {{a0, a1, stepH, g_.i64(f.w.taps * block * tn)}};
      int64_t pixel = 0;
      // A row of taps is one run where pixels follow each other and all channels are summed at once.
      if (!edge && !c_.blockIc && Gen::isConst(stepW, &pixel) && pixel == v_.icg && stepC == g_.i64(1)) {
        t.loops.push_back({g_.i64(0), g_.i64(f.w.taps * v_.icg), g_.i64(1), g_.i64(tn)});
      } else {
        t.loops.push_back({b0, b1, stepW, g_.i64(block * tn)});
        t.loops.push_back({g_.i64(0), g_.i64(block), stepC, g_.i64(tn)});
      }
    }
    Values origin(c_.p.space.size(), g_.i64(0));
    origin[0] = image_;
    origin[1] = g_.add(g_.mul(group_, g_.i64(v_.ocg)), n);
    auto point = [&](const ConvPhase::Axis& a, Value* q) {
      return g_.add(g_.mul(q, g_.i64(a.step)), g_.i64(a.origin));
    };
    if (v_.hAxis >= 0) origin[size_t(v_.hAxis)] = point(f.h, h);
    origin[size_t(v_.wAxis)] = point(f.w, w);
    auto finish = [&](const Values& acc) { epilogue_->emit(origin, t.rows, tw, vectors, masks, acc); };
    if (!part_.first) {
      finish(emitSumTile(g_, t));
      return;
    }
    SumPart part = part_;
    part.place = [&](int i, int j) {
      Value* pixel = g_.add(g_.mul(g_.sub(h, h0_), g_.i64(c_.taskW)), g_.sub(w, w0_));
      Value* at = g_.at(partial_, g_.add(g_.mul(pixel, g_.i64(c_.taskN)), g_.sub(n, n0_)));
      return g_.at(at, (i / tw * c_.taskW + i % tw) * c_.taskN + int64_t(j) * g_.isa.lanes);
    };
    emitSumPart(g_, t, part, finish);
  }

  const ConvPlan& c_;
  const ConvView& v_;
  Emitter& e_;
  Gen g_;
  std::vector<TileEpilogue> epilogues_;
  TileEpilogue* epilogue_ = nullptr;
  const ConvPhase* f_ = nullptr;
  ConvPlan::Patch patch_{};
  SumPart part_;
  Value *n_ = nullptr, *oh_ = nullptr, *ow_ = nullptr, *ih_ = nullptr, *iw_ = nullptr, *partial_ = nullptr;
  Value *x_ = nullptr, *weights_ = nullptr, *group_ = nullptr, *image_ = nullptr, *channel0_ = nullptr;
  Value *h0_ = nullptr, *h1_ = nullptr, *w0_ = nullptr, *w1_ = nullptr, *n0_ = nullptr, *n1_ = nullptr;
  Value *rows_ = nullptr, *columns_ = nullptr;
};
}  // namespace

void ConvPlan::emit(Emitter& e) const {
  ConvEmitter(*this, e).emit();
}

}  // namespace rutter::cpu
