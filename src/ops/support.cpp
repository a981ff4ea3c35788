#include "ops/support.h"

#include <fmt/ranges.h>

#include "base/vectorised.h"

namespace rutter::ops {
namespace {
const char* listOf(Accept set) {
  switch (set) {
    case Accept::kFloat:
      return "float16, bfloat16, float32, float64";
    case Accept::kInteger:
      return "int8 to int64, uint8 to uint64";
    case Accept::kNumber:
      return "float16, bfloat16, float32, float64, int8 to int64, uint8 to uint64";
    case Accept::kBool:
      return "bool";
    case Accept::kNumberOrBool:
      return "float16, bfloat16, float32, float64, int8 to int64, uint8 to uint64, bool";
    case Accept::kIndex:
      return "int32, int64";
    case Accept::kMovable:
      return "types of at least 8 bits, without string";
  }
  return "";
}
template <typename From, typename T>
RUTTER_VECTORISED void convert(const Tensor& t, std::vector<T>& v) {
  for (size_t i = 0; i < v.size(); i++) v[i] = T(at<From>(t, int64_t(i)));
}
}  // namespace

bool accepts(Accept set, DType t) {
  bool number = t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
  bool integer = ir::isInteger(t) && ir::bitsOf(t) >= 8;
  switch (set) {
    case Accept::kFloat:
      return number;
    case Accept::kInteger:
      return integer;
    case Accept::kNumber:
      return number || integer;
    case Accept::kBool:
      return t == DType::kBool;
    case Accept::kNumberOrBool:
      return number || integer || t == DType::kBool;
    case Accept::kIndex:
      return t == DType::kI32 || t == DType::kI64;
    case Accept::kMovable:
      return ir::bitsOf(t) >= 8;
  }
  return false;
}
void accept(InferContext& c, size_t i, Accept set) {
  DType t = c.in(i).dtype;
  if (!accepts(set, t))
    throw UserError("input {} has dtype {}, which is not supported here; supported: {}", i, ir::dtypeName(t),
                    listOf(set));
}
void sameType(InferContext& c, size_t i, size_t j) {
  DType a = c.in(i).dtype, b = c.in(j).dtype;
  if (a != b)
    throw UserError("inputs {} and {} have dtypes {} and {}, which must be equal", i, j, ir::dtypeName(a),
                    ir::dtypeName(b));
}
void needRank(InferContext& c, size_t i, size_t rank, const char* what) {
  if (c.in(i).rank() != rank)
    throw UserError("input {} ({}) has {} axes and must have {}", i, what, c.in(i).rank(), rank);
}

template <typename T>
std::vector<T> load(const Tensor& t) {
  std::vector<T> v(t.size());
  switch (t.dtype()) {
    case DType::kF32:
      convert<float>(t, v);
      break;
    case DType::kF64:
      convert<double>(t, v);
      break;
    case DType::kI64:
      convert<int64_t>(t, v);
      break;
    case DType::kU64:
      convert<uint64_t>(t, v);
      break;
    case DType::kI32:
      convert<int32_t>(t, v);
      break;
    case DType::kBool:
    case DType::kU8:
      convert<uint8_t>(t, v);
      break;
    default:
      for (size_t i = 0; i < v.size(); i++)
        v[i] = std::is_same_v<T, double> ? T(t.getDouble(int64_t(i))) : T(t.getInt(int64_t(i)));
  }
  return v;
}
template std::vector<double> load(const Tensor&);
template std::vector<int64_t> load(const Tensor&);
template std::vector<uint64_t> load(const Tensor&);

template <typename T>
void store(Tensor& t, const std::vector<T>& v) {
  RUTTER_CHECK(t.size() == int64_t(v.size()), "{} values for {} elements", v.size(), t.size());
  if (std::is_same_v<T, double> && t.dtype() == DType::kF32) {
    float* p = t.as<float>();
    for (size_t i = 0; i < v.size(); i++) p[i] = float(v[i]);
  } else if (std::is_same_v<T, double>) {
    for (size_t i = 0; i < v.size(); i++) t.setDouble(int64_t(i), double(v[i]));
  } else {
    for (size_t i = 0; i < v.size(); i++) t.setInt(int64_t(i), int64_t(v[i]));
  }
}
template void store(Tensor&, const std::vector<double>&);
template void store(Tensor&, const std::vector<int64_t>&);
template void store(Tensor&, const std::vector<uint64_t>&);

void stridedCopy(Tensor& out, const Tensor& in, const Extents& strides, int64_t offset) {
  byWidth(in, [&](auto zero) {
    using T = decltype(zero);
    T* p = out.as<T>();
    forEach<1>(out.shape(), {strides}, [&](int64_t i, const auto& index) { p[i] = at<T>(in, offset + index[0]); });
  });
}

Extents broadcastShape(const Extents& a, const Extents& b) {
  size_t rank = std::max(a.size(), b.size());
  Extents out(rank);
  for (size_t i = 0; i < rank; i++) {
    int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      throw UserError("shapes [{}] and [{}] do not broadcast on axis {}", fmt::join(a, ","), fmt::join(b, ","), i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}
Extents broadcastStrides(const Extents& in, const Extents& out) {
  Extents dense = ir::rowMajorStrides(in), s(out.size(), 0);
  for (size_t i = 0; i < in.size(); i++)
    if (in[i] != 1) s[i + out.size() - in.size()] = dense[i];
  return s;
}

namespace {
const ir::Type* outputType(InferContext& c) {
  const ir::Value* v = c.node.output(0);
  return v && v->type.known && v->type.rank() <= 1 ? &v->type : nullptr;
}
}  // namespace
void symbolicBinary(InferContext& c, const std::function<std::optional<Dim>(const Dim&, const Dim&)>& f) {
  if (!outputType(c)) return;
  auto a = c.symbolic(0), b = c.symbolic(1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return;
  Dims r;
  for (size_t i = 0, n = a->empty() || b->empty() ? 0 : std::max(a->size(), b->size()); i < n; i++) {
    auto v = f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!v) return;
    r.push_back(*v);
  }
  c.setSymbolic(0, std::move(r));
}
void symbolicUnary(InferContext& c, const std::function<std::optional<Dim>(const Dim&)>& f) {
  auto a = c.symbolic(0);
  if (!a || !outputType(c)) return;
  Dims r;
  for (const Dim& d : *a) {
    auto v = f(d);
    if (!v) return;
    r.push_back(*v);
  }
  c.setSymbolic(0, std::move(r));
}
void symbolicCopy(InferContext& c, size_t i) {
  if (auto s = c.symbolic(i); s && outputType(c)) c.setSymbolic(0, *s);
}

Dim smaller(const ir::SymbolTable& s, const Dim& a, const Dim& b) {
  auto [lo, hi] = (a - b).range(s);
  return hi <= 0 ? a : lo >= 0 ? b : min(a, b);
}
Dim larger(const ir::SymbolTable& s, const Dim& a, const Dim& b) {
  auto [lo, hi] = (a - b).range(s);
  return lo >= 0 ? a : hi <= 0 ? b : max(a, b);
}
bool atLeast(const InferContext& c, const Dim& a, int64_t v) {
  return a.range(c.graph.symbols).first >= v;
}
bool below(const InferContext& c, const Dim& a, int64_t v) {
  return a.range(c.graph.symbols).second < v;
}

std::vector<int64_t> normalAxes(InferContext& c, std::vector<int64_t> axes, size_t rank) {
  std::vector<bool> seen(rank);
  for (int64_t& a : axes) {
    a = c.axis(a, rank);
    if (seen[a]) throw UserError("axis {} is given twice", a);
    seen[a] = true;
  }
  return axes;
}

}  // namespace rutter::ops
