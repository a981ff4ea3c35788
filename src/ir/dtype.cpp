#include "ir/dtype.h"

#include <bit>
#include <cmath>

#include "base/error.h"

namespace rutter::ir {
namespace {
struct Row {
  DType type;
  const char* name;
  int bits;
  int onnx;  // TensorProto.DataType
};
constexpr Row kRows[] = {
    {DType::kF32, "float32", 32, 1},
    {DType::kF16, "float16", 16, 10},
    {DType::kI8, "int8", 8, 3},
    {DType::kI32, "int32", 32, 6},
    {DType::kBool, "bool", 8, 9},
    {DType::kU8, "uint8", 8, 2},
    {DType::kF8E4M3, "float8e4m3fn", 8, 17},
    {DType::kBF16, "bfloat16", 16, 16},
    {DType::kI64, "int64", 64, 7},
    {DType::kI4, "int4", 4, 22},
    {DType::kF4, "float4e2m1", 4, 23},
    {DType::kE8M0, "float8e8m0", 8, 24},
    {DType::kF64, "float64", 64, 11},
    {DType::kI16, "int16", 16, 5},
    {DType::kU16, "uint16", 16, 4},
    {DType::kU32, "uint32", 32, 12},
    {DType::kU64, "uint64", 64, 13},
    {DType::kString, "string", 0, 8},
};
const Row& row(DType t) {
  return kRows[static_cast<int>(t)];
}
}  // namespace

int bitsOf(DType t) {
  return row(t).bits;
}
int64_t bytesOf(DType t, int64_t count) {
  int64_t bits;
  if (__builtin_mul_overflow(count, int64_t(row(t).bits), &bits) || bits > INT64_MAX - 4096)
    throw UserError("{} elements of {} are more than memory can address", count, row(t).name);
  return (bits + 7) / 8;
}
bool isFloat(DType t) {
  switch (t) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF64:
    case DType::kF8E4M3:
    case DType::kF4:
    case DType::kE8M0:
      return true;
    default:
      return false;
  }
}
bool isInteger(DType t) {
  return !isFloat(t) && t != DType::kBool && t != DType::kString;
}
std::string_view dtypeName(DType t) {
  return row(t).name;
}
std::optional<DType> dtypeFromOnnx(int onnx) {
  for (const Row& r : kRows)
    if (r.onnx == onnx) return r.type;
  return std::nullopt;
}
int dtypeToOnnx(DType t) {
  return row(t).onnx;
}

float halfToFloat(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 1023;
  if (exp == 31) return std::bit_cast<float>(sign | 0x7f800000u | (man << 13));
  if (exp == 0) return std::copysign(std::ldexp(float(man), -24), (h & 0x8000) ? -1.f : 1.f);
  return std::bit_cast<float>(sign | ((exp + 112) << 23) | (man << 13));
}
uint16_t floatToHalf(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f), sign = (x >> 16) & 0x8000;
  x &= 0x7fffffff;
  if (x > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (x >= 0x477ff000) return uint16_t(sign | 0x7c00);
  if (x < 0x38800000) {  // subnormal half: scaled integer, rounded to even by nearbyint's default mode
    float a = std::bit_cast<float>(x);
    return uint16_t(sign | uint32_t(std::nearbyint(std::ldexp(a, 24))));
  }
  uint32_t r = x + 0xfff + ((x >> 13) & 1) - 0x38000000;
  return uint16_t(sign | (r >> 13));
}
float bf16ToFloat(uint16_t h) {
  return std::bit_cast<float>(uint32_t(h) << 16);
}
uint16_t floatToBf16(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffff) > 0x7f800000) return uint16_t((x >> 16) | 0x40);
  return uint16_t((x + 0x7fff + ((x >> 16) & 1)) >> 16);
}

}  // namespace rutter::ir
