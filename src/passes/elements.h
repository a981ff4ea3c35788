#pragma once
// Arithmetic on the elements of weights. fp32 has a fast path: candidates of a tuner run these over whole models.
#include <cstring>

#include "ir/tensor.h"

namespace rutter::passes {

/// out[i] = in[i] * factor(i - begin) for i in [begin, begin + count); the product in double, rounded once.
template <typename F>
void scaleRun(const ir::Tensor& in, ir::Tensor& out, int64_t begin, int64_t count, F factor) {
  if (in.dtype() != ir::DType::kF32) {
    for (int64_t i = 0; i < count; i++) out.setDouble(begin + i, in.getDouble(begin + i) * factor(i));
    return;
  }
  // Views into a model file have any alignment.
  const char* from = static_cast<const char*>(in.data()) + 4 * begin;
  float* to = static_cast<float*>(out.mutableData()) + begin;
  for (int64_t i = 0; i < count; i++) {
    float v;
    std::memcpy(&v, from + 4 * i, 4);
    to[i] = float(double(v) * factor(i));
  }
}

/// The matrix with rows and columns exchanged.
ir::Tensor transposed(const ir::Tensor& m);

}  // namespace rutter::passes
