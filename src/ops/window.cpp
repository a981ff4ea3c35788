#include "ops/window.h"

#include <fmt/ranges.h>

#include "ops/support.h"

namespace rutter::ops {
namespace {
using ir::Dim;
using ir::Dims;

std::vector<int64_t> perAxis(const ir::Node& n, const char* name, size_t axes, int64_t fallback, int64_t atLeast) {
  auto v = n.getInts(name);
  if (v.empty()) v.assign(axes, fallback);
  if (v.size() != axes)
    throw UserError("attribute {} has {} entries; {} spatial axes need {}", name, v.size(), axes, axes);
  for (int64_t x : v)
    if (x < atLeast) throw UserError("attribute {} holds {}; it must be at least {}", name, x, atLeast);
  return v;
}
std::string autoPad(const ir::Node& n) {
  std::string a = n.getString("auto_pad", "NOTSET");
  if (a.empty()) return "NOTSET";
  for (const char* known : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"})
    if (a == known) return a;
  throw UserError("attribute auto_pad is '{}'; supported: NOTSET, SAME_UPPER, SAME_LOWER, VALID", a);
}
Window begin(const ir::Node& n, const Dims& in, std::vector<int64_t> kernel) {
  Window w;
  if (kernel.size() != in.size())
    throw UserError("the kernel has {} axes; the input has {} spatial axes", kernel.size(), in.size());
  if (in.empty()) throw UserError("the input has no spatial axis");
  for (int64_t k : kernel)
    if (k < 1) throw UserError("the kernel has the extent {}", k);
  w.kernel = std::move(kernel);
  w.stride = perAxis(n, "strides", in.size(), 1, 1);
  w.dilation = perAxis(n, "dilations", in.size(), 1, 1);
  return w;
}
std::vector<int64_t> padsOf(const ir::Node& n, size_t axes) {
  auto p = n.getInts("pads");
  if (p.empty()) p.assign(2 * axes, 0);
  if (p.size() != 2 * axes)
    throw UserError("attribute pads has {} entries; {} spatial axes need {}", p.size(), axes, 2 * axes);
  for (int64_t x : p)
    if (x < 0) throw UserError("attribute pads holds the negative {}", x);
  return p;
}
}  // namespace

Window windowOf(const ir::Node& n, const Dims& in, std::vector<int64_t> kernel, const ir::SymbolTable& symbols) {
  Window w = begin(n, in, std::move(kernel));
  std::string mode = autoPad(n);
  bool ceil = n.getInt("ceil_mode", 0);
  auto pads = padsOf(n, in.size());
  for (size_t i = 0; i < in.size(); i++) {
    Dim s(w.stride[i]), reach(w.reach(i));
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      w.out.push_back(ceilDiv(in[i], s));
      Dim total = larger(symbols, (w.out[i] - Dim(1)) * s + reach - in[i], Dim(0));
      Dim half = floorDiv(total, Dim(2));
      w.padBegin.push_back(mode == "SAME_UPPER" ? half : total - half);
      w.padEnd.push_back(total - w.padBegin[i]);
      w.room.push_back(Dim(0));
      continue;
    }
    bool valid = mode == "VALID";
    w.padBegin.push_back(Dim(valid ? 0 : pads[i]));
    w.padEnd.push_back(Dim(valid ? 0 : pads[in.size() + i]));
    Dim room = in[i] + w.padBegin[i] + w.padEnd[i] - reach;
    // With ceil_mode a last window may begin inside and end beyond the padding.
    w.room.push_back(ceil && !valid ? room + s - Dim(1) : room);
    if (w.room[i].isConstant() && w.room[i].value() < 0)
      throw UserError("a window of {} is larger than the padded input of {} on spatial axis {}", reach.value(),
                      (room + reach).value(), i);
    if (ceil && !valid) {
      Dim starts = ceilDiv(in[i] + w.padBegin[i], s);  // windows that start before the end padding
      w.out.push_back(smaller(symbols, ceilDiv(room, s) + Dim(1), starts));
    } else {
      w.out.push_back(floorDiv(room, s) + Dim(1));
    }
  }
  return w;
}

Window transposedWindowOf(const ir::Node& n, const Dims& in, std::vector<int64_t> kernel) {
  Window w = begin(n, in, std::move(kernel));
  std::string mode = autoPad(n);
  auto pads = padsOf(n, in.size());
  auto extra = perAxis(n, "output_padding", in.size(), 0, 0);
  auto shape = n.getInts("output_shape");
  if (shape.size() == in.size() + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (!shape.empty() && shape.size() != in.size())
    throw UserError("attribute output_shape has {} entries for {} spatial axes", shape.size(), in.size());
  for (size_t i = 0; i < in.size(); i++) {
    Dim full = Dim(w.stride[i]) * (in[i] - Dim(1)) + Dim(extra[i] + w.reach(i));
    bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (shape.empty() && !same) {
      bool valid = mode == "VALID";
      w.padBegin.push_back(Dim(valid ? 0 : pads[i]));
      w.padEnd.push_back(Dim(valid ? 0 : pads[in.size() + i]));
      w.out.push_back(full - w.padBegin[i] - w.padEnd[i]);
      if (w.out[i].isConstant() && w.out[i].value() < 0)
        throw UserError("pads crop more than the result of {} on spatial axis {}", full.value(), i);
      w.room.push_back(w.out[i]);
      continue;
    }
    w.out.push_back(shape.empty() ? in[i] * Dim(w.stride[i]) : Dim(shape[i]));
    // A result wider than what the input reaches gets its zeros at the end.
    Dim total = max(full - w.out[i], Dim(0)), half = floorDiv(total, Dim(2));
    w.padBegin.push_back(mode == "SAME_UPPER" ? half : total - half);
    w.padEnd.push_back(full - w.out[i] - w.padBegin[i]);
    w.room.push_back(Dim(0));
  }
  return w;
}

void requireRoom(InferContext& c, const Window& w) {
  for (size_t i = 0; i < w.room.size(); i++)
    c.requireAtLeast(w.room[i], Dim(0), fmt::format("what remains for the window on spatial axis {}", i));
}

std::vector<int64_t> poolKernel(const ir::Node& n) {
  if (!n.has("kernel_shape")) throw UserError("attribute kernel_shape is missing");
  return n.getInts("kernel_shape");
}
std::vector<int64_t> convKernel(const ir::Node& n, const Dims& weights) {
  if (weights.size() < 3) throw UserError("the weights have {} axes and need at least 3", weights.size());
  auto k = ir::constants(Dims(weights.begin() + 2, weights.end()));
  if (!k) throw UserError("the kernel's extents must be known when the engine is built");
  if (n.has("kernel_shape") && n.getInts("kernel_shape") != *k)
    throw UserError("attribute kernel_shape [{}] and the weights' [{}] differ",
                    fmt::join(n.getInts("kernel_shape"), ","), fmt::join(*k, ","));
  return *k;
}

}  // namespace rutter::ops
