// Scalar evaluators of kernel problems in double precision, straight from the definitions in codegen/problem.h.
#include <cmath>

#include "ops/cpu_harness.h"

namespace rutter::cputest {
namespace {
using Ints = std::vector<int64_t>;

bool isSigned(DType t) {
  return t != DType::kU8 && t != DType::kU16 && t != DType::kU32 && t != DType::kU64 && t != DType::kBool;
}
int64_t wrap(DType t, int64_t v) {
  uint8_t b[8];
  writeNumber(t, b, {0, v});
  return readNumber(t, b).i;
}

class Evaluator {
 public:
  explicit Evaluator(const Case& c) : c_(c), p_(c.problem) {
    space_ = c.values(p_.space);
    for (size_t k = 0; k < p_.operands.size(); k++) {
      strides_.push_back(c.values(p_.operands[k].strides));
      dims_.push_back(c.values(p_.operands[k].dims));
      if (p_.operands[k].output) out_.emplace_back(size_t(c.elements(k)));
    }
  }
  Expected run() {
    switch (p_.kind) {
      case ProblemKind::kReduce:
        reduce();
        break;
      case ProblemKind::kRow:
        rows();
        break;
      default:
        each(space_, [&](const Ints& at) { finish(at, accumulate(at)); });
    }
    return out_;
  }

 private:
  template <typename F>
  static void each(const Ints& extents, F&& f) {
    for (int64_t e : extents)
      if (e <= 0) return;
    Ints at(extents.size(), 0);
    for (;;) {
      f(at);
      size_t a = at.size();
      while (a > 0 && ++at[a - 1] == extents[a - 1]) at[--a] = 0;
      if (a == 0) return;
    }
  }
  Number element(size_t k, int64_t index) const {
    DType t = p_.operands[k].dtype;
    size_t size = size_t(ir::bitsOf(t) / 8);
    return readNumber(t, c_.data.at(k).data() + size_t(index) * size);
  }
  double real(size_t k, int64_t index) const {
    Number n = element(k, index);
    return ir::isFloat(p_.operands[k].dtype) ? n.d : double(n.i);
  }
  Number load(size_t k, const Ints& at) const {
    const Operand& o = p_.operands[k];
    int64_t index = 0;
    for (size_t a = 0; a < at.size(); a++) {
      int64_t x = at[a];
      if (!o.lo.empty()) {
        int64_t lo = c_.value(o.lo[a]), hi = c_.value(o.hi[a]);
        if (x < lo || x >= hi) return {o.fill, int64_t(o.fill)};
        x -= lo;
      }
      index += x * strides_[k][a];
    }
    return element(k, index);
  }
  // ---- pointwise programs ----
  std::vector<Number> program(const PwProgram& prog, const Ints& at, Number acc) const {
    std::vector<Number> v;
    for (const PwInstr& i : prog.code) v.push_back(instruction(prog, i, v, at, acc));
    std::vector<Number> out;
    for (int o : prog.outputs) out.push_back(v.at(size_t(o)));
    return out;
  }
  Number instruction(const PwProgram& prog, const PwInstr& i, const std::vector<Number>& v, const Ints& at,
                     Number acc) const {
    auto type = [&](int k) { return prog.code.at(size_t(i.args[k])).type; };
    auto arg = [&](int k) { return i.args[k] >= 0 ? v.at(size_t(i.args[k])) : Number{}; };
    switch (i.op) {
      case PwOp::kLoad:
        return load(size_t(i.args[0]), at);
      case PwOp::kAcc:
        return acc;
      case PwOp::kConst:
        return {i.imm, i.immInt};
      case PwOp::kIndex:
        return {0, at[size_t(i.args[0])]};
      case PwOp::kParam:
        return {0, c_.value(p_.getInts("param").at(size_t(i.args[0])))};
      default:
        break;
    }
    Number a = arg(0), b = i.op == PwOp::kSelect ? Number{} : arg(1);
    if (i.op >= PwOp::kEq && i.op <= PwOp::kGe) {
      auto compare = [&](auto x, auto y) -> int64_t {
        switch (i.op) {
          case PwOp::kEq:
            return x == y;
          case PwOp::kNe:
            return x != y;
          case PwOp::kLt:
            return x < y;
          case PwOp::kLe:
            return x <= y;
          case PwOp::kGt:
            return x > y;
          default:
            return x >= y;
        }
      };
      return {0, ir::isFloat(type(0)) ? compare(a.d, b.d) : compare(a.i, b.i)};
    }
    if (i.op == PwOp::kIsNan) return {0, std::isnan(a.d)};
    if (i.op == PwOp::kIsInf) return {0, std::isinf(a.d)};
    if (i.op == PwOp::kSelect) return a.i ? arg(1) : arg(2);
    if (i.op == PwOp::kCast) return cast(a, type(0), i.type);
    if (ir::isFloat(i.type)) {
      double r = real(i.op, a.d, b.d);
      uint8_t bytes[8];  // every operation rounds to its type
      writeNumber(i.type, bytes, {r, 0});
      return i.type == DType::kF32 ? Number{r, 0} : readNumber(i.type, bytes);
    }
    return {0, wrap(i.type, whole(i, a.i, b.i))};
  }
  static double real(PwOp op, double a, double b) {
    switch (op) {
      case PwOp::kAdd:
        return a + b;
      case PwOp::kSub:
        return a - b;
      case PwOp::kMul:
        return a * b;
      case PwOp::kDiv:
        return a / b;
      case PwOp::kPow:
        return std::pow(a, b);
      case PwOp::kMin:
        return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
      case PwOp::kMax:
        return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
      case PwOp::kNeg:
        return -a;
      case PwOp::kAbs:
        return std::abs(a);
      case PwOp::kSign:
        return a > 0 ? 1 : a < 0 ? -1 : a;
      case PwOp::kSqrt:
        return std::sqrt(a);
      case PwOp::kReciprocal:
        return 1 / a;
      case PwOp::kExp:
        return std::exp(a);
      case PwOp::kLog:
        return std::log(a);
      case PwOp::kSin:
        return std::sin(a);
      case PwOp::kCos:
        return std::cos(a);
      case PwOp::kTanh:
        return std::tanh(a);
      case PwOp::kErf:
        return std::erf(a);
      case PwOp::kSigmoid:
        return 1 / (1 + std::exp(-a));
      case PwOp::kFloor:
        return std::floor(a);
      case PwOp::kCeil:
        return std::ceil(a);
      case PwOp::kRound:
        return std::nearbyint(a);
      default:
        ADD_FAILURE() << "operation " << int(op);
        return 0;
    }
  }
  static int64_t whole(const PwInstr& i, int64_t a, int64_t b) {
    bool s = isSigned(i.type);
    auto u = [](int64_t x) { return uint64_t(x); };
    switch (i.op) {
      case PwOp::kAdd:
        return int64_t(u(a) + u(b));
      case PwOp::kSub:
        return int64_t(u(a) - u(b));
      case PwOp::kMul:
        return int64_t(u(a) * u(b));
      case PwOp::kDiv:
        return !s ? int64_t(u(a) / u(b)) : b == -1 ? int64_t(-u(a)) : a / b;
      case PwOp::kFmod:
        return !s ? int64_t(u(a) % u(b)) : b == -1 ? 0 : a % b;
      case PwOp::kMod: {
        if (!s) return int64_t(u(a) % u(b));
        int64_t r = b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
      }
      case PwOp::kMin:
        return s ? std::min(a, b) : int64_t(std::min(u(a), u(b)));
      case PwOp::kMax:
        return s ? std::max(a, b) : int64_t(std::max(u(a), u(b)));
      case PwOp::kNeg:
        return int64_t(-u(a));
      case PwOp::kAbs:
        return s && a < 0 ? int64_t(-u(a)) : a;
      case PwOp::kSign:
        return s ? (a > 0) - (a < 0) : a != 0;
      case PwOp::kFloor:
      case PwOp::kCeil:
      case PwOp::kRound:
        return a;
      case PwOp::kAnd:
        return a & b;
      case PwOp::kOr:
        return a | b;
      case PwOp::kXor:
        return a ^ b;
      case PwOp::kNot:
        return i.type == DType::kBool ? !a : ~a;
      default:
        ADD_FAILURE() << "operation " << int(i.op);
        return 0;
    }
  }
  static Number cast(Number a, DType from, DType to) {
    bool ff = ir::isFloat(from), tf = ir::isFloat(to);
    if (to == DType::kBool) return {0, ff ? a.d != 0 : a.i != 0};
    uint8_t bytes[8];
    Number r = tf ? Number{ff               ? a.d
                           : isSigned(from) ? double(a.i)
                                            : double(uint64_t(a.i)),
                           0}
                  : Number{0, ff ? int64_t(a.d) : a.i};
    writeNumber(to, bytes, r);
    return readNumber(to, bytes);
  }

  void finish(const Ints& at, Number acc) {
    std::vector<Number> r = program(p_.epilogue, at, acc);
    size_t first = size_t(p_.firstOutput());
    for (size_t o = 0; o < r.size(); o++) {
      int64_t index = 0;
      for (size_t a = 0; a < at.size(); a++) index += at[a] * strides_[first + o][a];
      out_[o].at(size_t(index)) = r[o];
    }
  }

  // ---- reductions and rows ----
  Ints flags() const { return c_.values(p_.getInts("reduced")); }
  // For each kept point: all values over the reduced axes, with their coordinates.
  template <typename F>
  void eachRow(F&& f) {
    Ints red = flags(), kept = space_, inner = space_;
    for (size_t a = 0; a < red.size(); a++) (red[a] ? kept : inner)[a] = 1;
    each(kept, [&](const Ints& at) {
      std::vector<std::pair<Ints, Number>> values;
      each(inner, [&](const Ints& in) {
        Ints x = at;
        for (size_t a = 0; a < x.size(); a++) x[a] += in[a];
        values.emplace_back(x, program(p_.prologue, x, {}).at(0));
      });
      f(at, values);
    });
  }
  void reduce() {
    std::string op = p_.word("op");
    bool integer = !ir::isFloat(p_.prologue.code.at(size_t(p_.prologue.outputs.at(0))).type);
    DType type = p_.prologue.code.at(size_t(p_.prologue.outputs.at(0))).type;
    eachRow([&](const Ints& at, const std::vector<std::pair<Ints, Number>>& values) {
      auto get = [&](size_t i) { return integer ? double(values[i].second.i) : values[i].second.d; };
      size_t n = values.size();
      if (op == "argmax" || op == "argmin") {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
          if ((op == "argmax" ? get(i) > get(best) : get(i) < get(best)) ||
              (std::isnan(get(i)) && !std::isnan(get(best))))
            best = i;
        finish(at, {0, int64_t(best)});
        return;
      }
      if (integer) {
        int64_t r = op == "max" ? INT64_MIN : op == "min" ? INT64_MAX : op == "prod" ? 1 : 0;
        for (auto& [x, v] : values) {
          if (op == "max")
            r = std::max(r, v.i);
          else if (op == "min")
            r = std::min(r, v.i);
          else if (op == "prod")
            r *= v.i;
          else if (op == "sumsq")
            r += v.i * v.i;
          else if (op == "l1")
            r += std::abs(v.i);
          else
            r += v.i;
        }
        if (op == "mean") r = n ? r / int64_t(n) : 0;
        finish(at, {0, wrap(type, r)});
        return;
      }
      double r = op == "max" ? -INFINITY : op == "min" ? INFINITY : op == "prod" ? 1 : 0, top = -INFINITY;
      for (size_t i = 0; i < n; i++) top = std::max(top, get(i));
      for (size_t i = 0; i < n; i++) {
        double v = get(i);
        if (op == "max")
          r = std::isnan(v) || std::isnan(r) ? NAN : std::max(r, v);
        else if (op == "min")
          r = std::isnan(v) || std::isnan(r) ? NAN : std::min(r, v);
        else if (op == "prod")
          r *= v;
        else if (op == "sumsq" || op == "l2")
          r += v * v;
        else if (op == "l1")
          r += std::abs(v);
        else if (op == "logsumexp")
          r += std::exp(v - (std::isinf(top) ? 0 : top));
        else
          r += v;
      }
      if (op == "mean") r /= double(n);
      if (op == "l2") r = std::sqrt(r);
      if (op == "logsumexp") r = std::log(r) + (std::isinf(top) ? 0 : top);
      finish(at, {r, 0});
    });
  }
  void rows() {
    std::string op = p_.word("op");
    double eps = p_.real("eps", 1e-5);
    eachRow([&](const Ints&, const std::vector<std::pair<Ints, Number>>& values) {
      double top = -INFINITY, sum = 0, mean = 0, var = 0, n = double(values.size());
      for (auto& [x, v] : values) {
        top = std::max(top, v.d);
        mean += v.d / n;
      }
      for (auto& [x, v] : values) {
        sum += std::exp(v.d - top);
        double c = v.d - (op == "layernorm" ? mean : 0);
        var += c * c / n;
      }
      for (auto& [x, v] : values) {
        double r = op == "softmax"      ? std::exp(v.d - top) / sum
                   : op == "logsoftmax" ? v.d - top - std::log(sum)
                   : op == "layernorm"  ? (v.d - mean) / std::sqrt(var + eps)
                                        : v.d / std::sqrt(var + eps);
        finish(x, {r, 0});
      }
    });
  }

  // ---- anchors ----
  Number accumulate(const Ints& at) {
    switch (p_.kind) {
      case ProblemKind::kGemm:
        return gemm(at);
      case ProblemKind::kConv:
        return conv(at);
      case ProblemKind::kDeconv:
        return deconv(at);
      case ProblemKind::kPool:
        return pool(at);
      case ProblemKind::kResize:
        return resize(at);
      case ProblemKind::kGather:
        return gather(at);
      default:
        return {};
    }
  }
  int64_t indexOf(size_t k, const Ints& at) const {
    int64_t i = 0;
    for (size_t a = 0; a < at.size(); a++) i += at[a] * strides_[k][a];
    return i;
  }
  Number gemm(const Ints& at) const {
    double sum = 0;
    size_t r = at.size();
    Ints a = at, b = at;
    for (int64_t k = 0; k < dims_[0].back(); k++) {
      a[r - 1] = k;
      b[r - 2] = k;
      sum += real(0, indexOf(0, a)) * real(1, indexOf(1, b));
    }
    return {sum, 0};
  }
  Number conv(const Ints& at) const {
    Ints kernel = c_.values(p_.getInts("kernel")), stride = c_.values(p_.getInts("strides")),
         dil = c_.values(p_.getInts("dilations")), pads = c_.values(p_.getInts("pads"));
    int64_t groups = p_.getInt("groups"), icg = dims_[1][1], ocg = space_[1] / groups, g = at[1] / ocg;
    double sum = 0;
    Ints taps = kernel;
    taps.insert(taps.begin(), icg);
    each(taps, [&](const Ints& t) {
      Ints x = at, w = t;
      w.insert(w.begin(), at[1]);
      x[1] = g * icg + t[0];
      for (size_t s = 0; s < kernel.size(); s++) {
        x[2 + s] = at[2 + s] * stride[s] - pads[s] + t[1 + s] * dil[s];
        if (x[2 + s] < 0 || x[2 + s] >= dims_[0][2 + s]) return;
      }
      sum += real(0, indexOf(0, x)) * real(1, indexOf(1, w));
    });
    return {sum, 0};
  }
  Number deconv(const Ints& at) const {
    Ints kernel = c_.values(p_.getInts("kernel")), stride = c_.values(p_.getInts("strides")),
         dil = c_.values(p_.getInts("dilations")), pads = c_.values(p_.getInts("pads"));
    int64_t groups = p_.getInt("groups"), ocg = dims_[1][1], icg = dims_[0][1] / groups, g = at[1] / ocg;
    double sum = 0;
    Ints taps = kernel;
    taps.insert(taps.begin(), icg);
    each(taps, [&](const Ints& t) {
      Ints x = at, w = t;
      w[0] = g * icg + t[0];
      w.insert(w.begin() + 1, at[1] % ocg);
      x[1] = w[0];
      for (size_t s = 0; s < kernel.size(); s++) {
        int64_t y = at[2 + s] + pads[s] - t[1 + s] * dil[s];
        if (y < 0 || y % stride[s]) return;
        x[2 + s] = y / stride[s];
        if (x[2 + s] >= dims_[0][2 + s]) return;
      }
      sum += real(0, indexOf(0, x)) * real(1, indexOf(1, w));
    });
    return {sum, 0};
  }
  // Average: over the window clipped to the input, or (include_pad) to the padded input.
  Number pool(const Ints& at) const {
    Ints kernel = c_.values(p_.getInts("kernel")), stride = c_.values(p_.getInts("strides")),
         dil = c_.values(p_.getInts("dilations")), pads = c_.values(p_.getInts("pads"));
    bool max = p_.word("op") == "max", include = !max && p_.getInt("include_pad");
    bool integer = !ir::isFloat(p_.operands[0].dtype);
    double r = max ? -INFINITY : 0;
    int64_t count = 0, whole = INT64_MIN;
    size_t spatial = kernel.size();
    each(kernel, [&](const Ints& t) {
      Ints x = at;
      bool inside = true;
      for (size_t s = 0; s < spatial; s++) {
        x[2 + s] = at[2 + s] * stride[s] - pads[s] + t[s] * dil[s];
        if (x[2 + s] >= dims_[0][2 + s] + pads[spatial + s]) return;
        inside = inside && x[2 + s] >= 0 && x[2 + s] < dims_[0][2 + s];
      }
      if (!inside) {
        count += include;
        return;
      }
      count++;
      Number v = element(0, indexOf(0, x));
      if (integer)
        whole = std::max(whole, v.i);
      else if (max)
        r = std::isnan(v.d) || std::isnan(r) ? NAN : std::max(r, v.d);
      else
        r += v.d;
    });
    return {max ? r : r / double(count), whole};
  }
  Number gather(const Ints& at) const {
    size_t axis = size_t(p_.getInt("axis")), q = dims_[1].size();
    Ints idx(at.begin() + long(axis), at.begin() + long(axis + q));
    int64_t i = element(1, indexOf(1, idx)).i;
    if (i < 0) i += dims_[0][axis];
    Ints x(at.begin(), at.begin() + long(axis));
    x.push_back(i);
    x.insert(x.end(), at.begin() + long(axis + q), at.end());
    return element(0, indexOf(0, x));
  }
  // ---- resize ----
  double original(int64_t x, double scale, int64_t in, int64_t out) const {
    std::string mode = p_.word("coordinates");
    if (mode == "asymmetric") return double(x) / scale;
    if (mode == "align_corners")
      return double(in) * scale == 1 || out == 1 ? 0 : double(x) * (double(in) - 1) / (double(out) - 1);
    if (mode == "pytorch_half_pixel") return double(in) * scale > 1 ? (double(x) + 0.5) / scale - 0.5 : 0;
    if (mode == "half_pixel_symmetric") {
      double adjust = double(out) / (scale * double(in)), center = double(in) / 2;
      return center * (1 - adjust) + (double(x) + 0.5) / scale - 0.5;
    }
    return (double(x) + 0.5) / scale - 0.5;
  }
  // Weights of one axis: (input coordinate, weight).
  std::vector<std::pair<int64_t, double>> taps(size_t axis, int64_t x) const {
    auto it = p_.reals.find("scale" + std::to_string(axis));
    if (it == p_.reals.end()) return {{x, 1.0}};
    int64_t in = dims_[0][axis];
    double o = original(x, it->second, in, space_[axis]);
    auto clip = [&](int64_t i) { return std::clamp<int64_t>(i, 0, in - 1); };
    std::string mode = p_.word("mode");
    if (mode == "nearest") {
      std::string n = p_.word("nearest_mode");
      double r = n == "floor"               ? std::floor(o)
                 : n == "ceil"              ? std::ceil(o)
                 : n == "round_prefer_ceil" ? std::floor(o + 0.5)
                                            : std::ceil(o - 0.5);
      return {{clip(int64_t(r)), 1.0}};
    }
    int64_t f = int64_t(std::floor(o));
    double t = o - double(f);
    if (mode == "linear") return {{clip(f), 1 - t}, {clip(f + 1), t}};
    double a = p_.real("cubic_a", -0.75), s = t + 1, u = 1 - t, v = 2 - t;
    auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    return {{clip(f - 1), far(s)}, {clip(f), near(t)}, {clip(f + 1), near(u)}, {clip(f + 2), far(v)}};
  }
  Number resize(const Ints& at) const {
    std::vector<std::vector<std::pair<int64_t, double>>> t;
    Ints counts;
    for (size_t a = 0; a < at.size(); a++) {
      t.push_back(taps(a, at[a]));
      counts.push_back(int64_t(t.back().size()));
    }
    double r = 0;
    int64_t whole = 0;
    each(counts, [&](const Ints& i) {
      double w = 1;
      Ints x(at.size());
      for (size_t a = 0; a < at.size(); a++) {
        x[a] = t[a][size_t(i[a])].first;
        w *= t[a][size_t(i[a])].second;
      }
      whole = element(0, indexOf(0, x)).i;
      r += w * real(0, indexOf(0, x));
    });
    return {r, whole};
  }

  const Case& c_;
  const Problem& p_;
  Ints space_;
  std::vector<Ints> strides_, dims_;
  Expected out_;
};
}  // namespace

Expected evaluate(const Case& c) {
  return Evaluator(c).run();
}

}  // namespace rutter::cputest
