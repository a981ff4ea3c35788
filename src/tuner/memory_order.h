#pragma once
// Tensors whose axes lie in another order in memory, as an engine may want its inputs and give its outputs.
#include <span>

#include "ir/tensor.h"

namespace rutter::tuner {

/// `t` holds its elements in row-major order; the result holds them so that the axes lie as `order` says, outermost
/// first (ir::Layout::order). Its shape stays the logical one. An empty order: `t` itself.
ir::Tensor toMemoryOrder(const ir::Tensor& t, std::span<const uint8_t> order);
/// The way back.
ir::Tensor fromMemoryOrder(const ir::Tensor& t, std::span<const uint8_t> order);

}  // namespace rutter::tuner
