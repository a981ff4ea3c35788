// Resize, one axis after the other: each result position of an axis is a weighted sum of a few source positions.
#include <fmt/ranges.h>

#include "ops/support.h"

namespace rutter::ops {
namespace {
struct Options {
  std::string mode, coordinates, nearest, policy;
  double cubicA, extrapolation;
  bool excludeOutside, antialias;
  explicit Options(const ir::Node& n)
      : mode(pick(n, "mode", {"nearest", "linear", "cubic"})),
        coordinates(pick(n, "coordinate_transformation_mode",
                         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                          "tf_crop_and_resize"})),
        nearest(pick(n, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})),
        policy(pick(n, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"})),
        cubicA(n.getFloat("cubic_coeff_a", -0.75f)),
        extrapolation(n.getFloat("extrapolation_value", 0)),
        excludeOutside(n.getInt("exclude_outside", 0)),
        antialias(n.getInt("antialias", 0)) {}
  // The first one is the default.
  static std::string pick(const ir::Node& n, const char* name, const std::vector<std::string>& known) {
    std::string v = n.getString(name, known[0]);
    if (std::find(known.begin(), known.end(), v) == known.end())
      throw UserError("attribute {} is '{}'; supported: {}", name, v, fmt::join(known, ", "));
    return v;
  }
};
Extents axesOf(const ir::Node& n, int64_t rank) {
  Extents axes = n.getInts("axes");
  if (!n.has("axes"))
    for (int64_t i = 0; i < rank; i++) axes.push_back(i);
  std::vector<bool> seen(size_t(rank), false);
  for (int64_t& a : axes) {
    if (a < -rank || a >= rank) throw UserError("axis {} is outside [-{}, {})", a, rank, rank);
    if (a < 0) a += rank;
    if (seen[size_t(a)]) throw UserError("axis {} is given twice", a);
    seen[size_t(a)] = true;
  }
  return axes;
}
// Scales of exact small fractions, which symbolic extents can be multiplied by: p / q.
std::optional<std::pair<int64_t, int64_t>> fraction(double s) {
  for (int64_t q = 1; q <= 64; q++)
    if (double p = s * double(q); p == std::floor(p) && p < 1e6) return std::pair(int64_t(p), q);
  return std::nullopt;
}
// keep_aspect_ratio_policy: one scale for all axes, and the extents that it gives.
double fitAspect(const Options& o, const Extents& in, const Extents& axes, Extents& sizes) {
  double scale = o.policy == "not_larger" ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); i++) {
    double s = double(sizes[i]) / double(in[size_t(axes[i])]);
    scale = o.policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
  }
  for (size_t i = 0; i < axes.size(); i++) sizes[i] = int64_t(std::floor(scale * double(in[size_t(axes[i])]) + 0.5));
  return scale;
}
bool given(const ir::Type& t) {
  return !(t.rank() == 1 && t.dims[0].is(0));
}

void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  Options o(c.node);
  Dims out = c.in(0).dims;
  Extents axes = axesOf(c.node, int64_t(out.size()));
  bool scales = c.has(2) && given(c.in(2)), sizes = c.has(3) && given(c.in(3));
  if (scales == sizes) throw UserError("exactly one of inputs 2 (scales) and 3 (sizes) must be given");
  if (o.coordinates == "tf_crop_and_resize") {
    if (!c.has(1)) throw UserError("coordinate_transformation_mode tf_crop_and_resize needs input 1 (roi)");
    accept(c, 1, Accept::kFloat);
  }
  if (scales) {
    const Tensor* s = c.constant(2);
    if (!s) throw UserError("input 2 (scales) must be constant when the engine is built; sizes may be expressions");
    if (s->size() != int64_t(axes.size()))
      throw UserError("input 2 (scales) has {} elements for {} axes", s->size(), axes.size());
    for (size_t i = 0; i < axes.size(); i++) {
      Dim& d = out[size_t(axes[i])];
      double f = s->getDouble(int64_t(i));
      if (!(f > 0)) throw UserError("input 2 (scales) holds {}", f);
      if (d.isConstant()) {
        d = Dim(int64_t(std::floor(double(d.value()) * f)));
      } else {
        auto q = fraction(f);
        if (!q)
          throw UserError("scale {} of axis {} with the symbolic extent {} is not a small fraction", f, axes[i],
                          d.text());
        d = floorDiv(d * Dim(q->first), Dim(q->second));
      }
    }
  } else {
    Dims s = c.needSymbolic(3, "sizes");
    if (s.size() != axes.size()) throw UserError("input 3 (sizes) has {} elements for {} axes", s.size(), axes.size());
    if (o.policy != "stretch") {
      auto want = ir::constants(s), have = ir::constants(out);
      if (!want || !have) throw UserError("keep_aspect_ratio_policy '{}' needs constant sizes and shapes", o.policy);
      fitAspect(o, *have, axes, *want);
      s = ir::toDims(*want);
    }
    for (size_t i = 0; i < axes.size(); i++) {
      if (s[i].isConstant() && s[i].value() < 0) throw UserError("input 3 (sizes) holds {}", s[i].value());
      out[size_t(axes[i])] = s[i];
    }
  }
  c.out(0, c.in(0).dtype, std::move(out));
}

// What one result position of an axis is made of.
struct Tap {
  int64_t index;
  double weight;
};
struct AxisPlan {
  std::vector<std::vector<Tap>> taps;  // of each result position
  std::vector<bool> outside;           // tf_crop_and_resize: takes the extrapolation value
};
double coordinate(const Options& o, int64_t x, int64_t in, int64_t out, double scale, double roiBegin, double roiEnd) {
  double i = double(x), length = double(in), resized = scale * length;
  if (o.coordinates == "asymmetric") return i / scale;
  if (o.coordinates == "pytorch_half_pixel") return resized > 1 ? (i + 0.5) / scale - 0.5 : 0;
  if (o.coordinates == "align_corners") return resized == 1 || out == 1 ? 0 : i * (length - 1) / (double(out) - 1);
  if (o.coordinates == "tf_crop_and_resize")
    return out > 1 ? roiBegin * (length - 1) + i * (roiEnd - roiBegin) * (length - 1) / (double(out) - 1)
                   : 0.5 * (roiBegin + roiEnd) * (length - 1);
  if (o.coordinates == "half_pixel_symmetric") {
    double adjustment = double(out) / resized, centre = length / 2, offset = centre * (1 - adjustment);
    return offset + (i + 0.5) / scale - 0.5;
  }
  return (i + 0.5) / scale - 0.5;
}
double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}
AxisPlan planAxis(const Options& o, int64_t in, int64_t out, double scale, double roiBegin, double roiEnd) {
  AxisPlan plan;
  for (int64_t x = 0; x < out; x++) {
    double p = coordinate(o, x, in, out, scale, roiBegin, roiEnd);
    plan.outside.push_back(o.coordinates == "tf_crop_and_resize" && (p < 0 || p > double(in - 1)));
    std::vector<Tap> taps;
    auto clamp = [&](double i) { return int64_t(std::clamp(i, 0.0, double(in - 1))); };
    if (o.mode == "nearest") {
      double f = std::floor(p), half = p - f;
      double i = o.nearest == "floor"  ? f
                 : o.nearest == "ceil" ? std::ceil(p)
                 : half == 0.5         ? (o.nearest == "round_prefer_floor" ? f : f + 1)
                                       : std::round(p);
      taps.push_back({clamp(i), 1});
    } else {
      // Antialiasing widens the kernel by the factor that the axis shrinks by.
      double narrow = o.antialias ? std::min(scale, 1.0) : 1, f = std::floor(p), sum = 0;
      int64_t first = int64_t(std::floor(-(o.mode == "linear" ? 1 : 2) / narrow)) + 1;
      for (int64_t k = first; k <= 1 - first; k++) {
        double i = f + double(k), arg = (p - i) * narrow;
        double w = o.mode == "linear" ? std::max(0.0, 1 - std::abs(arg)) : cubic(arg, o.cubicA);
        if (o.excludeOutside && (i < 0 || i > double(in - 1))) continue;
        taps.push_back({clamp(i), w});
        sum += w;
      }
      if (o.excludeOutside || o.antialias)
        for (Tap& t : taps) t.weight /= sum;
    }
    plan.taps.push_back(std::move(taps));
  }
  return plan;
}

void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  Options o(c.node);
  Extents in = x.shape(), shape = in, axes = axesOf(c.node, x.rank());
  std::vector<double> scale(in.size(), 1), roi(2 * in.size());
  bool bySizes = c.has(3) && c.in(3).size();
  if (bySizes == (c.has(2) && c.in(2).size() > 0))
    throw UserError("exactly one of inputs 2 (scales) and 3 (sizes) must be given");
  Extents sizes = bySizes ? c.in(3).toInts() : Extents();
  if (int64_t n = bySizes ? int64_t(sizes.size()) : c.in(2).size(); n != int64_t(axes.size()))
    throw UserError("{} scales or sizes for {} axes", n, axes.size());
  double common = bySizes && o.policy != "stretch" ? fitAspect(o, in, axes, sizes) : 0;
  for (size_t i = 0; i < axes.size(); i++) {
    size_t a = size_t(axes[i]);
    scale[a] = common > 0 ? common : bySizes ? double(sizes[i]) / double(in[a]) : c.in(2).getDouble(int64_t(i));
    shape[a] = bySizes ? sizes[i] : int64_t(std::floor(double(in[a]) * scale[a]));
    if (c.has(1) && c.in(1).size() == 2 * int64_t(axes.size())) {
      roi[a] = c.in(1).getDouble(int64_t(i));
      roi[in.size() + a] = c.in(1).getDouble(int64_t(axes.size() + i));
    }
  }
  auto v = load<double>(x);
  std::vector<std::pair<size_t, std::vector<bool>>> outside;
  Extents now = in;
  for (size_t a = 0; a < in.size(); a++) {
    if (std::find(axes.begin(), axes.end(), int64_t(a)) == axes.end()) continue;
    if (in[a] == shape[a] && scale[a] == 1 && o.coordinates != "tf_crop_and_resize") continue;
    if (in[a] == 0 && shape[a] > 0) throw UserError("axis {} is empty and cannot be resized", a);
    AxisPlan plan = planAxis(o, in[a], shape[a], scale[a], roi[a], roi[in.size() + a]);
    int64_t inner = ir::rowMajorStrides(now)[a], lines = 1;
    for (size_t i = 0; i < a; i++) lines *= now[i];
    now[a] = shape[a];
    std::vector<double> r(size_t(ir::elementCount(now)));
    for (int64_t l = 0; l < lines; l++)
      for (int64_t i = 0; i < shape[a]; i++) {
        double* to = r.data() + (l * shape[a] + i) * inner;
        for (const Tap& t : plan.taps[size_t(i)]) {
          const double* from = v.data() + (l * in[a] + t.index) * inner;
          if (plan.taps[size_t(i)].size() == 1)
            std::copy_n(from, inner, to);          // times 1, and keeps infinities as they are
          else if (t.weight != 0 || !o.antialias)  // 0 times infinity is NaN; a wide kernel ends within its taps
            for (int64_t k = 0; k < inner; k++) to[k] += t.weight * from[k];
        }
      }
    v = std::move(r);
    outside.emplace_back(a, std::move(plan.outside));
  }
  if (o.coordinates == "tf_crop_and_resize") {
    Extents dense = ir::rowMajorStrides(shape);
    for (size_t i = 0; i < v.size(); i++)
      for (const auto& [a, out] : outside)
        if (out[size_t(int64_t(i) / dense[a] % shape[a])]) v[i] = o.extrapolation;
  }
  Tensor& y = c.out(0, x.dtype(), shape);
  if (!ir::isFloat(x.dtype()))
    for (double& e : v) e = std::nearbyint(e);
  store(y, v);
}
}  // namespace
const OpDef op_Resize = {"Resize", "", 19, infer, eval};
}  // namespace rutter::ops
