#pragma once
// Tensors in files: raw element data, NumPy's .npy, ONNX's .pb (spec 5.3). Inputs and reference outputs come this way.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace rutter::tuner {

/// What the file must hold. Without dims the shape is taken from the file (.npy, .pb), or is an error (raw).
struct WantedTensor {
  std::string name;  ///< for messages
  ir::DType dtype = ir::DType::kF32;
  std::optional<std::vector<int64_t>> dims;
};

/// Reads `path`: by its ending .npy or .pb, else raw little-endian data in C order without a header. UserError naming
/// tensor and file: unreadable, of another size (both sizes), dtype or shape, or not well formed.
ir::Tensor readTensorFile(const std::string& path, const WantedTensor& wanted);

/// The bytes of a .npy file (format 1.0) for a tensor of a dtype that NumPy has. UserError for others.
/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
std::string npyBytes(const ir::Tensor& t);

}  // namespace rutter::tuner
