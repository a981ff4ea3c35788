// Softmax, log-softmax, layer and RMS normalisation over any axes.
#include "base/error.h"
#include "base/ints.h"
#include "cpu/math.h"
#include "cpu/reduction.h"
#include "cpu/tactic.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::MachineProfile;
using codegen::Problem;
using codegen::ProblemKind;
using ir::DType;

enum class Form { kTwoPass = 0, kOnePass = 1 };  // onepass: online softmax; sums and squares together

// Most values of a row at once: what the scratch must hold.
double longestRow(const Problem& p) {
  double n = 1;
  auto red = reducedFlags(p);
  for (size_t a = 0; a < red.size(); a++)
    if (red[a]) n *= double(p.maxOf(p.space[a]));
  return n;
}

class Row final : public CpuTactic {
 public:
  std::string_view name() const override { return "row"; }
  ProblemKind kind() const override { return ProblemKind::kRow; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    if (auto r = pwRefuses(p, m)) return r;
    DType t = p.prologue.code.at(size_t(p.prologue.outputs.at(0))).type;
    if (t != DType::kF32 && t != DType::kF16 && t != DType::kBF16)
      return fmt::format("{} of {}", p.word("op"), ir::dtypeName(t));
    return {};
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    bool soft = p.word("op") == "softmax" || p.word("op") == "logsoftmax";
    auto vector = k.get(knob::row_vector);
    int wish = vector == "auto" ? -1 : vector == "reduced";
    configureFold(c, p, m, wish, k.getOr(knob::row_unroll, 4), 3, 0);
    if (wish >= 0 && c.get("inner") != wish) k.refuse(knob::row_vector, "there is no such axis");
    if (auto n = k.get(knob::row_unroll); n && *n != c.get("unroll"))
      k.refuse(knob::row_unroll, "the vectors' axis is too short");
    Form form = Form::kTwoPass;
    if (soft && k.get(knob::row_softmax) == "online") form = Form::kOnePass;
    if (p.word("op") == "layernorm" && k.get(knob::row_norm) == "onepass") form = Form::kOnePass;
    c.set("form", int64_t(form));
    // Values that are kept between passes: exponentials, or what the prologue computes.
    double bytes = longestRow(p) * 4 * (c.get("inner") ? 1 : double(c.get("lanes") * c.get("unroll")));
    bool useful = p.word("op") == "softmax" || pwCost(p.prologue) > 3;
    bool online = soft && form == Form::kOnePass;
    bool buffer = useful && !online && bytes <= double(m.l1) * 0.5;
    if (auto wishBuffer = k.get(knob::row_buffer)) {
      if (*wishBuffer && online)
        k.refuse(knob::row_buffer, "online softmax keeps nothing between its passes");
      else if (*wishBuffer && bytes > double(m.l2))
        k.refuse(knob::row_buffer, "a row does not fit the second-level cache");
      else
        buffer = *wishBuffer;
    }
    c.set("buffer", buffer);
    c.set("scratch", buffer ? int64_t(bytes) + 64 : 0);
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    return estimate(m, foldInstructions(p, int(c.get("fold_axis")), c.get("lanes"), 3), p.bytes());
  }
  codegen::Lowering lower(const Problem& p, const Config& c) const override {
    return oneLaunch(p, foldRows(p, c).tasks(p), roundUp(c.get("scratch"), 64));
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    e.beginKernel();
    Fold f(e, p, c);
    forRows(e, p, foldRows(p, c), [&](const Values& coord, Value* from, Value* to) {
      if (f.inner)
        Rower(e, p, c, f, {coord, {}, nullptr}).run();
      else
        vectorLoop(e, from, to, f.lanes, f.unroll,
                   [&](const Values& starts, Value* mask) { Rower(e, p, c, f, {coord, starts, mask}).run(); });
    });
    e.endKernel();
  }

 private:
  // One row, or one row a lane.
  struct Rower {
    Emitter& e;
    const Problem& p;
    const Config& c;
    const Fold& f;
    Fold::Kept kept;
    bool buffer;
    size_t vectors;  // done together
    Rower(Emitter& emitter, const Problem& problem, const Config& config, const Fold& fold, Fold::Kept k)
        : e(emitter),
          p(problem),
          c(config),
          f(fold),
          kept(std::move(k)),
          buffer(config.get("buffer") != 0),
          vectors(f.inner ? 1 : kept.starts.size()) {}

    Value* number(double v) const { return floats(e, v, f.lanes); }
    Value* slot(const Fold::At& at) const {
      Value* i = f.inner
                     ? at.index
                     : e.add(e.mul(at.index, e.i64(int64_t(f.lanes) * f.unroll)), e.i64(int64_t(at.slot) * f.lanes));
      return e.at(e.scratch(), i, 4);
    }
    void keep(const Fold::At& at, Value* v) const { storeVector(e, v, slot(at), f.inner ? at.mask : nullptr); }
    Value* kept_(const Fold::At& at) const {
      return loadVector(e, e.f32(), slot(at), f.lanes, f.inner ? at.mask : nullptr);
    }
    Value* compute(const Fold::At& at) const {
      return emitPw(e, p, p.prologue, at.points.env(at.start, f.lanes, at.mask))[0];
    }
    // First visit computes (and keeps), later ones read.
    Value* first(const Fold::At& at) const {
      Value* v = compute(at);
      if (buffer) keep(at, v);
      return v;
    }
    Value* again(const Fold::At& at) const { return buffer ? kept_(at) : compute(at); }
    // What a lane of vector `slot` needs of a folded result.
    Value* of(const Values& r, const Fold::At& at) const {
      return f.inner ? splat(e, r[0], f.lanes) : r[size_t(at.slot)];
    }
    Values column(const std::vector<Values>& v, size_t w) const {
      Values r;
      for (const Values& x : v) r.push_back(x[w]);
      return r;
    }
    Values each(const Values& v, const std::function<Value*(Value*)>& g) const {
      Values r;
      for (Value* x : v) r.push_back(g(x));
      return r;
    }
    Value* like(Value* v, double x) const { return floats(e, x, lanesOf(v)); }
    Values fold(const Monoid& m, const std::function<Value*(const Fold::At&)>& item, bool reads = true) const {
      return column(
          f.fold(kept, m, reads ? &p.prologue : &kNothing, [&](const Fold::At& at) { return Values{item(at)}; }), 0);
    }
    void finish(const std::function<Value*(const Fold::At&)>& value, bool reads) const {
      f.visit(kept, reads ? &p.prologue : &kNothing,
              [&](const Fold::At& at) { at.out->epilogue({at.start}, f.lanes, at.mask, {value(at)}); });
    }
    void run() const {
      std::string op = p.word("op");
      if (op == "softmax" || op == "logsoftmax")
        soft(op == "logsoftmax");
      else
        norm(op == "layernorm");
    }

    void soft(bool logarithm) const {
      Monoid maximum = monoid::extreme(e, e.f32(), true, true);
      auto exponential = [&](Value* v, Value* m) { return emitExp(e, e.b.CreateFSub(v, m)); };
      Values top, sum;
      if (Form(c.get("form")) == Form::kOnePass) {
        // (m, s): s = sum of exp(v - m); exp(-inf - -inf) of an empty side is kept from being NaN.
        auto merge = [&](const Values& a, const Values& b) {
          Value* m = fmax(e, a[0], b[0]);
          Value* finite = e.b.CreateSelect(e.b.CreateFCmpOEQ(m, like(m, -INFINITY)), like(m, 0), m);
          Value* l = e.b.CreateFMul(a[1], exponential(a[0], finite));
          return Values{m, mulAdd(e, b[1], exponential(b[0], finite), l)};
        };
        auto step = [&](const Values& a, const Values& v) { return merge(a, {v[0], like(v[0], 1)}); };
        auto init = [&](int lanes) { return Values{floats(e, -INFINITY, lanes), floats(e, 0, lanes)}; };
        auto r =
            f.fold(kept, {init, step, merge}, &p.prologue, [&](const Fold::At& at) { return Values{compute(at)}; });
        top = column(r, 0);
        sum = column(r, 1);
      } else {
        top = fold(maximum, [&](const Fold::At& at) { return first(at); });
        bool keepExp = buffer && !logarithm;
        sum = fold(
            monoid::sum(e, e.f32()),
            [&](const Fold::At& at) {
              Value* x = exponential(again(at), of(top, at));
              if (keepExp) keep(at, x);
              return x;
            },
            !buffer);
      }
      if (logarithm) {
        Values shift;
        for (size_t i = 0; i < sum.size(); i++) shift.push_back(emitLog(e, sum[i]));
        finish(
            [&](const Fold::At& at) { return e.b.CreateFSub(e.b.CreateFSub(again(at), of(top, at)), of(shift, at)); },
            !buffer);
        return;
      }
      Values scale = each(sum, [&](Value* s) { return e.b.CreateFDiv(like(s, 1), s); });
      finish(
          [&](const Fold::At& at) {
            Value* x = buffer ? kept_(at) : exponential(compute(at), of(top, at));
            return e.b.CreateFMul(x, of(scale, at));
          },
          !buffer);
    }

    void norm(bool centred) const {
      Value* count = e.b.CreateSIToFP(f.count(), e.f32());
      auto over = [&](const Values& v) {
        return each(v, [&](Value* x) { return e.b.CreateFDiv(x, splat(e, count, lanesOf(x))); });
      };
      double eps = p.real("eps", 1e-5);
      Values mean, var;
      if (!centred) {
        var = over(fold(monoid::squares(e, e.f32()), [&](const Fold::At& at) { return first(at); }));
      } else if (Form(c.get("form")) == Form::kOnePass) {
        // Sums of v - v0 and of its square: the row's first value as pivot keeps the difference of squares accurate.
        Values pivot = firstValues();
        auto add = [&](const Values& a, const Values& b) {
          return Values{e.b.CreateFAdd(a[0], b[0]), e.b.CreateFAdd(a[1], b[1])};
        };
        auto step = [&](const Values& a, const Values& v) {
          return Values{e.b.CreateFAdd(a[0], v[0]), mulAdd(e, v[0], v[0], a[1])};
        };
        auto init = [&](int lanes) { return Values{floats(e, 0, lanes), floats(e, 0, lanes)}; };
        auto r = f.fold(kept, {init, step, add}, &p.prologue,
                        [&](const Fold::At& at) { return Values{e.b.CreateFSub(first(at), of(pivot, at))}; });
        Values shift = over(column(r, 0)), square = over(column(r, 1));
        for (size_t i = 0; i < shift.size(); i++) {
          mean.push_back(e.b.CreateFAdd(shift[i], pivot[i]));
          Value* v = e.b.CreateFSub(square[i], e.b.CreateFMul(shift[i], shift[i]));
          var.push_back(fmax(e, like(v, 0), v));
        }
      } else {
        mean = over(fold(monoid::sum(e, e.f32()), [&](const Fold::At& at) { return first(at); }));
        var = over(fold(
            monoid::squares(e, e.f32()), [&](const Fold::At& at) { return e.b.CreateFSub(again(at), of(mean, at)); },
            !buffer));
      }
      Values scale =
          each(var, [&](Value* v) { return e.b.CreateFDiv(like(v, 1), emitSqrt(e, e.b.CreateFAdd(v, like(v, eps)))); });
      finish(
          [&](const Fold::At& at) {
            Value* v = again(at);
            if (centred) v = e.b.CreateFSub(v, of(mean, at));
            return e.b.CreateFMul(v, of(scale, at));
          },
          !buffer);
    }
    // The prologue at the first reduced position of each row.
    Values firstValues() const {
      Points at(e, p, kept.coord, f.inner ? -1 : f.axis, &p.prologue);
      if (f.inner) return emitPw(e, p, p.prologue, at.env(e.i64(0), 1));
      Values r;
      for (Value* s : kept.starts) r.push_back(emitPw(e, p, p.prologue, at.env(s, f.lanes, kept.mask))[0]);
      return r;
    }
    inline static const codegen::PwProgram kNothing{};
  };
};
}  // namespace

const CpuTactic& rowTactic() {
  static const Row t;
  return t;
}

}  // namespace rutter::cpu
