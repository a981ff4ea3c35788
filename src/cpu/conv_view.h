#pragma once
// A convolution problem as two-dimensional: one spatial axis counts as height 1.
#include <optional>
#include <string>

#include "codegen/tactic.h"

namespace rutter::cpu {

using codegen::KDim;
using codegen::Problem;

struct ConvView {
  KDim n, ic, oc, ih, iw, oh, ow;
  int64_t groups = 1, icg = 1, ocg = 1;  ///< channels of a group
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1, pt = 0, pl = 0, pb = 0, pr = 0;
  KDim xn, xc, xh, xw;        ///< strides of X, elements
  int64_t wo, wi, wh, ww;     ///< strides of W: its first and second axis, height, width
  int hAxis = -1, wAxis = 2;  ///< axes of Problem::space; -1: there is no height
  bool depthwise() const { return icg == 1 && ocg == 1 && groups > 1; }
  int64_t taps() const { return kh * kw; }
  bool padded() const { return pt || pl || pb || pr; }
};
/// Of kConv and kDeconv problems. `why` says what is not supported.
std::optional<ConvView> convView(const Problem& p, std::string* why);

/// Every output has stride 1 along `axis` (or one point there).
bool outputsContiguous(const Problem& p, int axis);
/// In every operand behind the anchors, rows of pixels follow each other without a gap, so that (h, w) is one axis.
bool pixelsCollapse(const Problem& p, const ConvView& v);
/// The epilogue asks for coordinates along `axis`.
bool usesIndex(const Problem& p, int axis);

}  // namespace rutter::cpu
