#include "ir/tensor.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace rutter::ir {

int64_t elementCount(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(n, d, &n))
      throw UserError("shape [{}] has no valid element count", fmt::join(shape, ","));
  return n;
}
std::vector<int64_t> rowMajorStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> s(shape.size());
  int64_t n = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    s[i] = n;
    n *= shape[i];
  }
  return s;
}

Tensor::Tensor(DType t, std::vector<int64_t> shape) : dtype_(t), shape_(std::move(shape)), size_(elementCount(shape_)) {
  owned_ = true;
  if (t == DType::kString) {
    strings_ = std::make_shared<std::vector<std::string>>(size_);
    return;
  }
  size_t n = (size_t(bytes()) + 127) / 64 * 64;  // one spare line: vector code may read a masked tail
  void* p = std::aligned_alloc(64, n);
  if (!p) throw DeviceError("out of memory: {} bytes for a tensor of shape [{}]", n, fmt::join(shape_, ","));
  std::memset(p, 0, n);
  data_ = p;
  owner_ = std::shared_ptr<const void>(p, [](const void* q) { std::free(const_cast<void*>(q)); });
}
Tensor::Tensor(DType t, std::vector<int64_t> shape, const void* data, std::shared_ptr<const void> owner)
    : dtype_(t), shape_(std::move(shape)), size_(elementCount(shape_)), data_(data), owner_(std::move(owner)) {}

namespace {
template <typename T>
T load(const void* p, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(p) + i * int64_t(sizeof(T)), sizeof v);
  return v;
}
template <typename T>
void store(void* p, int64_t i, T v) {
  std::memcpy(static_cast<char*>(p) + i * int64_t(sizeof(T)), &v, sizeof v);
}
template <typename T>
T saturate(double v) {
  if (std::isnan(v)) return 0;
  if (v <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (v >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return T(v);
}
}  // namespace

double Tensor::getDouble(int64_t i) const {
  switch (dtype_) {
    case DType::kF32:
      return load<float>(data_, i);
    case DType::kF64:
      return load<double>(data_, i);
    case DType::kF16:
      return halfToFloat(load<uint16_t>(data_, i));
    case DType::kBF16:
      return bf16ToFloat(load<uint16_t>(data_, i));
    case DType::kU64:
      return double(load<uint64_t>(data_, i));
    default:
      return double(getInt(i));
  }
}
int64_t Tensor::getInt(int64_t i) const {
  switch (dtype_) {
    case DType::kI8:
      return load<int8_t>(data_, i);
    case DType::kU8:
    case DType::kBool:
      return load<uint8_t>(data_, i);
    case DType::kI16:
      return load<int16_t>(data_, i);
    case DType::kU16:
      return load<uint16_t>(data_, i);
    case DType::kI32:
      return load<int32_t>(data_, i);
    case DType::kU32:
      return load<uint32_t>(data_, i);
    case DType::kI64:
      return load<int64_t>(data_, i);
    case DType::kU64:
      return int64_t(load<uint64_t>(data_, i));
    case DType::kF32:
    case DType::kF64:
    case DType::kF16:
    case DType::kBF16:
      return saturate<int64_t>(getDouble(i));
    default:
      throw UserError("elements of type {} cannot be read as numbers", dtypeName(dtype_));
  }
}
void Tensor::setDouble(int64_t i, double v) {
  void* p = mutableData();
  switch (dtype_) {
    case DType::kF32:
      return store(p, i, float(v));
    case DType::kF64:
      return store(p, i, v);
    case DType::kF16:
      return store(p, i, floatToHalf(float(v)));
    case DType::kBF16:
      return store(p, i, floatToBf16(float(v)));
    case DType::kBool:
      return store<uint8_t>(p, i, v != 0);
    case DType::kI8:
      return store(p, i, saturate<int8_t>(v));
    case DType::kU8:
      return store(p, i, saturate<uint8_t>(v));
    case DType::kI16:
      return store(p, i, saturate<int16_t>(v));
    case DType::kU16:
      return store(p, i, saturate<uint16_t>(v));
    case DType::kI32:
      return store(p, i, saturate<int32_t>(v));
    case DType::kU32:
      return store(p, i, saturate<uint32_t>(v));
    case DType::kU64:
      return store(p, i, saturate<uint64_t>(v));
    default:
      return setInt(i, saturate<int64_t>(v));
  }
}
void Tensor::setInt(int64_t i, int64_t v) {
  void* p = mutableData();
  switch (dtype_) {
    case DType::kI8:
    case DType::kU8:
      return store(p, i, uint8_t(v));
    case DType::kBool:
      return store<uint8_t>(p, i, v != 0);
    case DType::kI16:
    case DType::kU16:
      return store(p, i, uint16_t(v));
    case DType::kI32:
    case DType::kU32:
      return store(p, i, uint32_t(v));
    case DType::kI64:
    case DType::kU64:
      return store(p, i, v);
    case DType::kF32:
    case DType::kF64:
    case DType::kF16:
    case DType::kBF16:
      return setDouble(i, double(v));
    default:
      throw UserError("elements of type {} cannot be written as numbers", dtypeName(dtype_));
  }
}
std::vector<int64_t> Tensor::toInts() const {
  std::vector<int64_t> v(size_);
  for (int64_t i = 0; i < size_; i++) v[i] = getInt(i);
  return v;
}
Hash128 Tensor::contentHash() const {
  if (!hash_) hash_ = std::make_shared<const Hash128>(hashBytes(data_, size_t(bytes())));
  return *hash_;
}
Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  RUTTER_CHECK(elementCount(shape) == size_, "reshape of {} elements to [{}]", size_, fmt::join(shape, ","));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  t.owned_ = false;
  return t;
}
Tensor Tensor::ofInts(const std::vector<int64_t>& v) {
  Tensor t(DType::kI64, {int64_t(v.size())});
  std::copy(v.begin(), v.end(), t.as<int64_t>());
  return t;
}
Tensor Tensor::scalar(DType type, double v) {
  Tensor t(type, {});
  t.setDouble(0, v);
  return t;
}
Tensor Tensor::ofFloats(std::vector<int64_t> shape, const std::vector<float>& v) {
  Tensor t(DType::kF32, std::move(shape));
  RUTTER_CHECK(t.size() == int64_t(v.size()), "{} values for {} elements", v.size(), t.size());
  std::copy(v.begin(), v.end(), t.as<float>());
  return t;
}
Tensor Tensor::ofStrings(std::vector<int64_t> shape, std::vector<std::string> v) {
  Tensor t(DType::kString, std::move(shape));
  RUTTER_CHECK(t.size() == int64_t(v.size()), "{} strings for {} elements", v.size(), t.size());
  *t.strings_ = std::move(v);
  return t;
}

}  // namespace rutter::ir
