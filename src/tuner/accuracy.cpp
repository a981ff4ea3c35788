#include "tuner/accuracy.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace rutter::tuner {
namespace {

using ir::DType;
using ir::Tensor;
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Name {
  LossKind kind;
  const char *flag, *header;
};
constexpr Name kNames[] = {{LossKind::kL0, "l0", "L0"},
                           {LossKind::kL1, "l1", "L1"},
                           {LossKind::kL2, "l2", "L2"},
                           {LossKind::kLInf, "lInf", "LInf"},
                           {LossKind::kCos, "cos", "Cosine"}};

// OCP 8-bit floating point, E4M3: no infinities, one NaN.
double e4m3ToDouble(uint8_t v) {
  const int exponent = (v >> 3) & 15, mantissa = v & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  const double m = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
  return v & 128 ? -m : m;
}

// One pair of elements: values as double, and their difference, exact for integers of any width.
struct Pair {
  double a, r, diff;
};

template <typename F>
void eachPair(const Tensor& a, const Tensor& r, F&& f) {
  const int64_t n = r.size();
  switch (r.dtype()) {
    case DType::kF32: {
      const float *x = a.as<float>(), *y = r.as<float>();
      for (int64_t i = 0; i < n; i++) f(Pair{x[i], y[i], double(x[i]) - double(y[i])});
      break;
    }
    case DType::kI64: {
      const int64_t *x = a.as<int64_t>(), *y = r.as<int64_t>();
      for (int64_t i = 0; i < n; i++) f(Pair{double(x[i]), double(y[i]), double(__int128(x[i]) - y[i])});
      break;
    }
    case DType::kU64: {
      const uint64_t *x = a.as<uint64_t>(), *y = r.as<uint64_t>();
      for (int64_t i = 0; i < n; i++) f(Pair{double(x[i]), double(y[i]), double(__int128(x[i]) - __int128(y[i]))});
      break;
    }
    case DType::kBool: {
      // A byte other than 0 and 1 is no bool: an output that was never written holds the poison.
      const uint8_t *x = a.as<uint8_t>(), *y = r.as<uint8_t>();
      for (int64_t i = 0; i < n; i++)
        f(Pair{x[i] > 1 ? kInf : double(x[i]), double(y[i]), double(x[i]) - double(y[i])});
      break;
    }
    case DType::kF8E4M3: {
      const uint8_t *x = a.as<uint8_t>(), *y = r.as<uint8_t>();
      for (int64_t i = 0; i < n; i++) {
        const double u = e4m3ToDouble(x[i]), v = e4m3ToDouble(y[i]);
        f(Pair{u, v, u - v});
      }
      break;
    }
    default:
      for (int64_t i = 0; i < n; i++) {
        const double x = a.getDouble(i), y = r.getDouble(i);
        f(Pair{x, y, x - y});
      }
  }
}

// Non-finite values: equal ones match, all others make the loss infinite. Returns true if the pair is to be counted.
bool finitePair(const Pair& p, bool& infinite) {
  if (std::isfinite(p.a) && std::isfinite(p.r)) return true;
  if (!(std::isnan(p.a) && std::isnan(p.r)) && p.a != p.r) infinite = true;
  return false;
}

double cosLoss(const Tensor& a, const Tensor& r) {
  bool infinite = false;
  double maxA = 0, maxR = 0;
  eachPair(a, r, [&](const Pair& p) {
    if (!finitePair(p, infinite)) return;
    maxA = std::max(maxA, std::fabs(p.a));
    maxR = std::max(maxR, std::fabs(p.r));
  });
  if (infinite) return kInf;
  if (maxA == 0 || maxR == 0) return maxA == maxR ? 0 : 1;
  double dot = 0, aa = 0, rr = 0;  // scaled by the maxima: neither overflow nor underflow
  eachPair(a, r, [&](const Pair& p) {
    if (!finitePair(p, infinite)) return;
    const double x = p.a / maxA, y = p.r / maxR;
    dot += x * y;
    aa += x * x;
    rr += y * y;
  });
  return std::max(0.0, 1 - dot / std::sqrt(aa * rr));
}

bool sameStrings(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < b.size(); i++)
    if (a.getString(i) != b.getString(i)) return false;
  return true;
}

// Norm allowed for the default engine's own error, relative to the oracle's norm.
double defaultAllowance(DType t) {
  switch (t) {
    case DType::kF16:
      return 5e-3;
    case DType::kBF16:
      return 4e-2;
    case DType::kF8E4M3:
    case DType::kF4:
    case DType::kE8M0:
      return 0.2;
    default:
      return 1e-4;
  }
}

double relativeOf(const Distance& d) {
  if (d.norm == 0) return 0;
  return d.refNorm > 0 ? d.norm / d.refNorm : kInf;
}

}  // namespace

LossKind parseLoss(const std::string& word) {
  for (const Name& n : kNames)
    if (word == n.flag) return n.kind;
  throw UserError("--accuracyAlgorithm={}: unknown; it is one of l0, l1, l2, lInf, cos", word);
}
const char* lossFlag(LossKind k) {
  return kNames[int(k)].flag;
}
const char* lossHeader(LossKind k) {
  return kNames[int(k)].header;
}

bool comparable(DType t) {
  return t != DType::kString && t != DType::kI4 && t != DType::kF4 && t != DType::kE8M0;
}

double loss(const AccuracyOptions& how, const Tensor& a, const Tensor& r) {
  RUTTER_CHECK(a.dtype() == r.dtype() && comparable(r.dtype()), "loss of {} against {}", ir::dtypeName(a.dtype()),
               ir::dtypeName(r.dtype()));
  if (a.shape() != r.shape()) return kInf;
  if (r.size() == 0) return 0;
  if (how.algorithm == LossKind::kCos) return cosLoss(a, r);
  bool infinite = false;
  double sum = 0, largest = 0;
  eachPair(a, r, [&](const Pair& p) {
    if (!finitePair(p, infinite)) return;
    const double d = std::fabs(p.diff);
    switch (how.algorithm) {
      case LossKind::kL0:
        sum += d > how.atol + how.rtol * std::fabs(p.r);
        break;
      case LossKind::kL1:
        sum += d;
        break;
      case LossKind::kL2:
        sum += d * d;
        break;
      default:
        largest = std::max(largest, d);
    }
  });
  if (infinite) return kInf;
  return how.algorithm == LossKind::kLInf ? largest : sum / double(r.size());
}

Distance distance(const Tensor& y, const Tensor& o) {
  Distance d;
  if (y.shape() != o.shape()) return {kInf, kInf, 0, 0};
  bool infinite = false;
  double sum = 0, ref = 0;
  eachPair(y, o, [&](const Pair& p) {
    if (!finitePair(p, infinite)) return;
    sum += p.diff * p.diff;
    ref += p.r * p.r;
    d.max = std::max(d.max, std::fabs(p.diff));
    d.refMax = std::max(d.refMax, std::fabs(p.r));
  });
  d.norm = std::sqrt(sum);
  d.refNorm = std::sqrt(ref);
  if (infinite) d.norm = d.max = kInf;
  return d;
}

GuardVerdict guard(const Tensor& y, const Tensor& d, const Tensor& o) {
  if (y.dtype() == DType::kString) {
    const bool same = y.shape() == d.shape() && sameStrings(y, d);
    return {same, same ? 0 : kInf, same ? "" : "strings differ from the default's"};
  }
  if (!ir::isFloat(y.dtype())) {
    // The default may break a tie of an ArgMax otherwise than the oracle; either answer is right.
    const double toDefault = distance(y, d).max, toOracle = distance(y, o).max;
    const bool same = toDefault == 0 || toOracle == 0;
    return {same, relativeOf(distance(y, o)), same ? "" : "integers differ from the default's and the oracle's"};
  }
  const Distance yo = distance(y, o), dd = distance(d, o);
  GuardVerdict v{true, relativeOf(yo), ""};
  const double norm = 4 * dd.norm + 1e-6 * yo.refNorm, max = 8 * dd.max + 1e-5 * yo.refMax;
  if (!(yo.norm <= norm))
    v = {false, v.relative, fmt::format("error norm {:.3g} is above {:.3g}", yo.norm, norm)};
  else if (!(yo.max <= max))
    v = {false, v.relative, fmt::format("largest error {:.3g} is above {:.3g}", yo.max, max)};
  if (std::isinf(yo.norm)) v.reason = "NaN, infinity or another shape where the oracle has none";
  return v;
}

GuardVerdict guardDefault(const Tensor& d, const Tensor& o) {
  if (d.dtype() == DType::kString) {
    const bool same = d.shape() == o.shape() && sameStrings(d, o);
    return {same, same ? 0 : kInf, same ? "" : "strings differ from the oracle's"};
  }
  const Distance x = distance(d, o);
  if (!ir::isFloat(d.dtype())) {
    // A tie of an ArgMax may fall otherwise in a few places: those are counted, not measured.
    if (d.shape() != o.shape()) return {false, kInf, "another shape than the oracle's"};
    int64_t wrong = 0;
    eachPair(d, o, [&](const Pair& p) { wrong += p.diff != 0; });
    if (wrong * 1000 <= d.size()) return {true, relativeOf(x), ""};
    return {false, relativeOf(x), fmt::format("{} of {} integers differ from the oracle's", wrong, d.size())};
  }
  const double allowed = defaultAllowance(d.dtype()) * x.refNorm;
  if (x.norm <= allowed) return {true, relativeOf(x), ""};
  return {false, relativeOf(x), fmt::format("error norm {:.3g} is above {:.3g}", x.norm, allowed)};
}

bool allFinite(const Tensor& t) {
  if (!ir::isFloat(t.dtype())) return true;
  bool finite = true;
  eachPair(t, t, [&](const Pair& p) { finite &= std::isfinite(p.a); });
  return finite;
}

bool bitEqual(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return sameStrings(a, b);
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), size_t(a.bytes())) == 0;
}

void LossTable::add(const std::string& output, double loss) {
  auto [it, fresh] = losses_.try_emplace(output, loss);
  if (!fresh) it->second = std::max(it->second, loss);
}

std::optional<std::string> LossTable::rejectedBy(double threshold) const {
  for (const auto& [name, value] : losses_)
    if (!(value < threshold)) return name;
  return std::nullopt;
}

}  // namespace rutter::tuner
