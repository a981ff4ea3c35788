#pragma once
// The sliding window of convolutions and pooling: attributes of the node, checked and completed, with the padding that
// auto_pad stands for.
#include "ops/op.h"

namespace rutter::ops {

struct Window {
  std::vector<int64_t> kernel, stride, dilation;  ///< one a spatial axis
  ir::Dims padBegin, padEnd;                      ///< zero elements before and after each spatial axis
  ir::Dims out;                                   ///< spatial extents of the result
  ir::Dims room;                                  ///< where it depends on run-time extents, must not be negative
  size_t axes() const { return kernel.size(); }
  /// Extent of the dilated kernel on axis i.
  int64_t reach(size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
};

/// Window of a Conv, MaxPool, AveragePool or LpPool node whose input has the spatial extents `in`. `kernel` is the
/// attribute kernel_shape, or comes from the weights. Honours auto_pad, and ceil_mode where the node has it (windows
/// that would start in the end padding are dropped). `symbols` simplifies the expressions. UserError for attributes
/// that do not fit, and for a window that is larger than its padded input.
Window windowOf(const ir::Node& n, const ir::Dims& in, std::vector<int64_t> kernel, const ir::SymbolTable& symbols);
/// The same for ConvTranspose: padBegin and padEnd crop the result; negative ones extend it with zeros.
Window transposedWindowOf(const ir::Node& n, const ir::Dims& in, std::vector<int64_t> kernel);
/// Requires of run-time extents that every window fits and that nothing is cropped beyond what there is.
void requireRoom(InferContext& c, const Window& w);
/// kernel_shape of a pooling node.
std::vector<int64_t> poolKernel(const ir::Node& n);
/// Spatial extents of weights [M, C/group, k...], checked against the attribute kernel_shape where there is one.
std::vector<int64_t> convKernel(const ir::Node& n, const ir::Dims& weights);

}  // namespace rutter::ops
