// Resize: nearest, linear and cubic with all coordinate modes of ONNX. Coordinates are computed in double precision, as
// the definition is, once a row for the axes outside and lane by lane along a resized vector axis.
#include <cmath>

#include "base/error.h"
#include "cpu/math.h"
#include "cpu/nest.h"
#include "cpu/tactic.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::KDim;
using codegen::MachineProfile;
using codegen::Operand;
using codegen::Problem;
using codegen::ProblemKind;
using ir::DType;

std::optional<double> scaleOf(const Problem& p, size_t axis) {
  auto it = p.reals.find("scale" + std::to_string(axis));
  return it == p.reals.end() ? std::nullopt : std::optional(it->second);
}
int tapsOf(const Problem& p) {
  return p.word("mode") == "nearest" ? 1 : p.word("mode") == "linear" ? 2 : 4;
}

double resizeCost(const Problem& p, int axis, int64_t lanes) {
  size_t a = size_t(axis);
  double points = 1, n = double(std::max<int64_t>(1, p.optOf(p.space[a]))), taps = 1, coordinates = 0;
  for (const KDim& d : p.space) points *= double(std::max<int64_t>(1, p.optOf(d)));
  for (size_t i = 0; i < p.space.size(); i++)
    if (scaleOf(p, i)) {
      taps *= tapsOf(p);
      coordinates += 15 + 6 * tapsOf(p);
    }
  bool resized = scaleOf(p, a).has_value();
  double load = !resized && p.operands[0].strides[a].is(1) ? 1.0 : 2.5 * double(lanes), store = 0;
  for (const Operand& o : p.operands)
    if (o.output) store += o.strides[a].is(1) ? 1 : 2.0 * double(lanes);
  double per = taps * (load + 1) + store + pwCost(p.epilogue) + (resized ? coordinates : 0);
  return points / n * (std::ceil(n / double(lanes)) * per + 10 + coordinates);
}

// An axis as it is at one place: which input coordinates, and their weights. Scalars outside the vectors' axis, vectors
// of lanes along it.
struct Place {
  Values index;   // i64
  Values weight;  // f32; null: 1
};

class Resize final : public CpuTactic {
 public:
  std::string_view name() const override { return "resize"; }
  ProblemKind kind() const override { return ProblemKind::kResize; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    if (auto r = pwRefuses(p, m)) return r;
    static const std::vector<std::string> modes = {"nearest", "linear", "cubic"};
    static const std::vector<std::string> coordinates = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                                         "align_corners", "asymmetric"};
    auto known = [](const std::vector<std::string>& list, const std::string& s) {
      return std::find(list.begin(), list.end(), s) != list.end();
    };
    if (!known(modes, p.word("mode"))) return "mode " + p.word("mode");
    if (!known(coordinates, p.word("coordinates"))) return "coordinates " + p.word("coordinates");
    DType t = p.operands[0].dtype;
    bool half = t == DType::kF32 || t == DType::kF16 || t == DType::kBF16;
    if (p.word("mode") != "nearest" && !half) return fmt::format("interpolation of {}", ir::dtypeName(t));
    for (size_t a = 0; a < p.space.size(); a++)
      if (scaleOf(p, a) && (p.maxOf(p.operands[0].dims[a]) > INT32_MAX || p.maxOf(p.space[a]) > INT32_MAX))
        return "an axis beyond 2^31";
    return {};
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    int64_t lanes = vectorLanes(p, c.get("vector"));
    configureRows(p, m, k, lanes, 2, bytesPerPoint(p) * 2, [&](int axis) { return resizeCost(p, axis, lanes); }, c);
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    int axis = int(c.get("axis"));
    return estimate(m, axis < 0 ? 10 : resizeCost(p, axis, c.get("lanes")), p.bytes());
  }
  codegen::Lowering lower(const Problem& p, const Config& c) const override {
    return oneLaunch(p, Rows::fromConfig(p, c).tasks(p));
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    Rows r = Rows::fromConfig(p, c);
    int lanes = r.axis < 0 ? 1 : int(c.get("lanes"));
    const Operand& x = p.operands[0];
    e.beginKernel();
    forRows(e, p, r, [&](const Values& coord, Value* from, Value* to) {
      Value* base = e.i64(0);
      std::vector<std::pair<size_t, Place>> outside;
      for (size_t a = 0; a < p.space.size(); a++) {
        if (int(a) == r.axis) continue;
        if (scaleOf(p, a))
          outside.emplace_back(a, place(e, p, a, coord[a], 1));
        else
          base = e.add(base, e.mul(coord[a], x.strides[a]));
      }
      // The product of the outer axes' taps: addresses and weights.
      std::vector<std::pair<Value*, Value*>> corners = {{base, nullptr}};
      for (auto& [a, at] : outside) {
        std::vector<std::pair<Value*, Value*>> more;
        for (auto& [index, weight] : corners)
          for (size_t t = 0; t < at.index.size(); t++) {
            Value* w = at.weight[t];
            if (weight) w = w ? e.b.CreateFMul(weight, w) : weight;
            more.emplace_back(e.add(index, e.mul(at.index[t], x.strides[a])), w);
          }
        corners = std::move(more);
      }
      Points out(e, p, coord, r.axis);
      vectorLoop(e, from, to, lanes, int(c.get("unroll")), [&](const Values& starts, Value* mask) {
        Values acc;
        for (Value* s : starts) acc.push_back(value(e, p, r.axis, corners, s, lanes, mask));
        out.epilogue(starts, lanes, mask, acc);
      });
    });
    e.endKernel();
  }

 private:
  static Value* value(Emitter& e, const Problem& p, int axis, const std::vector<std::pair<Value*, Value*>>& corners,
                      Value* start, int lanes, Value* mask) {
    const Operand& x = p.operands[0];
    bool resized = axis >= 0 && scaleOf(p, size_t(axis));
    Value* stride = axis < 0 ? e.i64(0) : e.dim(x.strides[size_t(axis)]);
    Place along;
    if (resized) along = place(e, p, size_t(axis), start, lanes);
    Value* sum = nullptr;
    for (auto& [index, weight] : corners) {
      for (size_t t = 0; t < (resized ? along.index.size() : 1); t++) {
        Value* v;
        if (resized)
          v = gatherLanes(e, x.dtype, e.operand(0),
                          e.add(splat(e, index, lanes), e.mul(along.index[t], splat(e, stride, lanes))), lanes, mask);
        else
          v = loadLanes(e, x.dtype, e.operand(0), e.add(index, e.mul(start, stride)), stride, lanes, mask);
        v = fromMemory(e, x.dtype, v);
        Value* w = weight ? splat(e, weight, lanes) : nullptr;
        if (resized && along.weight[t]) w = w ? e.b.CreateFMul(w, along.weight[t]) : along.weight[t];
        if (!w)
          sum = v;
        else
          sum = sum ? mulAdd(e, v, w, sum) : e.b.CreateFMul(v, w);
      }
    }
    return sum;
  }
  // Taps of output coordinates x, x + 1, … of an axis.
  static Place place(Emitter& e, const Problem& p, size_t axis, Value* x, int lanes) {
    double scale = *scaleOf(p, axis);
    auto& b = e.b;
    auto c = [&](double v) { return doubles(e, v, lanes); };
    llvm::Type* f64 = b.getDoubleTy();
    auto real = [&](const KDim& d) { return splat(e, b.CreateSIToFP(e.dim(d), f64), lanes); };
    Value *in = real(p.operands[0].dims[axis]), *out = real(p.space[axis]);
    Value* i = splat(e, b.CreateSIToFP(x, f64), lanes);
    if (lanes > 1) {
      std::vector<llvm::Constant*> steps;
      for (int l = 0; l < lanes; l++) steps.push_back(llvm::ConstantFP::get(f64, l));
      i = b.CreateFAdd(i, llvm::ConstantVector::get(steps));
    }
    std::string mode = p.word("coordinates");
    Value* half = b.CreateFSub(b.CreateFDiv(b.CreateFAdd(i, c(0.5)), c(scale)), c(0.5));
    Value* at = half;
    if (mode == "asymmetric") {
      at = b.CreateFDiv(i, c(scale));
    } else if (mode == "pytorch_half_pixel") {
      at = b.CreateSelect(b.CreateFCmpOGT(b.CreateFMul(in, c(scale)), c(1)), half, c(0));
    } else if (mode == "align_corners") {
      Value* single = b.CreateOr(b.CreateFCmpOEQ(b.CreateFMul(in, c(scale)), c(1)), b.CreateFCmpOEQ(out, c(1)));
      Value* q = b.CreateFDiv(b.CreateFMul(i, b.CreateFSub(in, c(1))), b.CreateFSub(out, c(1)));
      at = b.CreateSelect(single, c(0), q);
    } else if (mode == "half_pixel_symmetric") {
      Value* adjust = b.CreateFDiv(out, b.CreateFMul(in, c(scale)));
      Value* offset = b.CreateFMul(b.CreateFDiv(in, c(2)), b.CreateFSub(c(1), adjust));
      at = b.CreateFAdd(offset, half);
    }
    auto clamped = [&](Value* d) {
      d = b.CreateSelect(b.CreateFCmpOGT(d, c(0)), d, c(0));  // a NaN (an empty axis) becomes 0 too
      Value* top = b.CreateFSub(in, c(1));
      d = b.CreateSelect(b.CreateFCmpOLT(d, top), d, top);
      return b.CreateSExt(b.CreateFPToSI(d, vecType(b.getInt32Ty(), lanes)), vecType(b.getInt64Ty(), lanes));
    };
    Place r;
    if (p.word("mode") == "nearest") {
      std::string n = p.word("nearest_mode");
      Value* v = n == "floor"               ? emitFloor(e, at)
                 : n == "ceil"              ? emitCeil(e, at)
                 : n == "round_prefer_ceil" ? emitFloor(e, b.CreateFAdd(at, c(0.5)))
                                            : emitCeil(e, b.CreateFSub(at, c(0.5)));
      r.index = {clamped(v)};
      r.weight = {nullptr};
      return r;
    }
    Value* f = emitFloor(e, at);
    Value* t = b.CreateFSub(at, f);
    auto tap = [&](double offset, Value* weight) {
      r.index.push_back(clamped(b.CreateFAdd(f, c(offset))));
      r.weight.push_back(b.CreateFPTrunc(weight, vecType(b.getFloatTy(), lanes)));
    };
    if (p.word("mode") == "linear") {
      tap(0, b.CreateFSub(c(1), t));
      tap(1, t);
      return r;
    }
    double a = p.real("cubic_a", -0.75);
    // Keys' kernel: |d| <= 1, and 1 < |d| < 2.
    auto near = [&](Value* d) {
      Value* q = b.CreateFSub(b.CreateFMul(c(a + 2), d), c(a + 3));
      return b.CreateFAdd(b.CreateFMul(b.CreateFMul(q, d), d), c(1));
    };
    auto far = [&](Value* d) {
      Value* q = b.CreateFAdd(b.CreateFMul(b.CreateFSub(b.CreateFMul(c(a), d), c(5 * a)), d), c(8 * a));
      return b.CreateFSub(b.CreateFMul(q, d), c(4 * a));
    };
    Value* u = b.CreateFSub(c(1), t);
    tap(-1, far(b.CreateFAdd(c(1), t)));
    tap(0, near(t));
    tap(1, near(u));
    tap(2, far(b.CreateFAdd(c(1), u)));
    return r;
  }
};
}  // namespace

const CpuTactic& resizeTactic() {
  static const Resize t;
  return t;
}

}  // namespace rutter::cpu
