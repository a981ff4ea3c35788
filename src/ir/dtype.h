#pragma once
// Element types. The first twelve numbers are those of the public DataType (TensorRT's).
#include <cstdint>
#include <optional>
#include <string_view>

namespace rutter::ir {

enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kI8 = 2,
  kI32 = 3,
  kBool = 4,
  kU8 = 5,
  kF8E4M3 = 6,
  kBF16 = 7,
  kI64 = 8,
  kI4 = 9,
  kF4 = 10,
  kE8M0 = 11,
  kF64 = 12,
  kI16 = 13,
  kU16 = 14,
  kU32 = 15,
  kU64 = 16,
  kString = 17,
};
/// Bits of one element in memory; 0 for strings.
int bitsOf(DType t);
/// Bytes that `count` elements take (sub-byte types are packed, rounded up).
int64_t bytesOf(DType t, int64_t count);
bool isFloat(DType t);
bool isInteger(DType t);              ///< signed or unsigned, bool excluded
std::string_view dtypeName(DType t);  ///< "float32", "int64" …
std::optional<DType> dtypeFromOnnx(int onnxElemType);
int dtypeToOnnx(DType t);

float halfToFloat(uint16_t h);  ///< IEEE binary16
uint16_t floatToHalf(float f);  ///< round to nearest even
float bf16ToFloat(uint16_t h);
uint16_t floatToBf16(float f);  ///< round to nearest even

}  // namespace rutter::ir
