// Pooling, resizing and gathering through the CPU target.
#include "ops/cpu_harness.h"

namespace rutter::cputest {
namespace {
std::mt19937 g_rng(13);
using Ints = std::vector<int64_t>;

// Strides of [n, c, spatial…] in memory order NCHW or NHWC.
std::vector<KDim> layout(const Ints& dims, bool last) {
  if (!last) return dense(dims);
  std::vector<KDim> s(dims.size());
  int64_t at = dims[1];
  s[1] = KDim(1);
  for (size_t a = dims.size(); a-- > 2;) {
    s[a] = KDim(at);
    at *= dims[a];
  }
  s[0] = KDim(at);
  return s;
}
void finishWithAcc(Case& c, DType t, const Ints& space, bool last) {
  Problem& p = c.problem;
  p.space = kdims(space);
  p.operands.push_back(operand(t, layout(space, last), true));
  p.epilogue.outputs = {p.epilogue.add({PwOp::kAcc, t})};
}
Case pool(const std::string& op, const Ints& x, const Ints& kernel, const Ints& strides, const Ints& dilations,
          const Ints& pads, bool last, int64_t include = 0, int64_t extra = 0, DType t = DType::kF32) {
  Case c;
  Problem& p = c.problem;
  p.kind = ProblemKind::kPool;
  p.words["op"] = op;
  p.ints = {{"kernel", kdims(kernel)},
            {"strides", kdims(strides)},
            {"dilations", kdims(dilations)},
            {"pads", kdims(pads)},
            {"include_pad", {KDim(include)}}};
  p.anchors = 1;
  p.operands = {anchor(t, x, layout(x, last))};
  Ints space = {x[0], x[1]};
  size_t s = kernel.size();
  for (size_t i = 0; i < s; i++)
    space.push_back((x[2 + i] + pads[i] + pads[s + i] - (kernel[i] - 1) * dilations[i] - 1) / strides[i] + 1 + extra);
  finishWithAcc(c, t, space, last);
  c.fill(g_rng);
  return c;
}

TEST(CpuPool, StridesDilationsPadsAndLayouts) {
  for (const char* op : {"max", "average"})
    for (bool last : {false, true})
      for (int64_t include : {0, 1}) {
        if (include && op[0] == 'm') continue;
        for (const char* route : {"", "-pool:vector=channels", "-pool:vector=width -pool:unroll=1"}) {
          checkAll(pool(op, {2, 19, 9, 23}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, last, include), {.route = route});
          checkAll(pool(op, {1, 5, 8, 37}, {2, 3}, {1, 1}, {2, 3}, {1, 2, 0, 3}, last, include), {.route = route});
        }
        checkAll(pool(op, {1, 40, 6, 6}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, last, include));
        checkAll(pool(op, {1, 3, 7, 7}, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}, last, include, 0));
      }
}
TEST(CpuPool, OneAndThreeSpatialAxes) {
  for (const char* op : {"max", "average"})
    for (bool last : {false, true}) {
      checkAll(pool(op, {2, 18, 41}, {4}, {3}, {1}, {1, 2}, last, 1));
      checkAll(pool(op, {1, 17, 4, 5, 6}, {2, 3, 2}, {1, 2, 2}, {1, 1, 1}, {1, 1, 0, 0, 1, 1}, last));
    }
}
TEST(CpuPool, WindowsBeyondThePaddedInputOfCeilMode) {
  for (const char* op : {"max", "average"})
    for (bool last : {false, true})
      for (int64_t include : {0, 1})
        if (op[0] == 'a' || !include)
          checkAll(pool(op, {1, 6, 8, 8}, {3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}, last, include, 1));
}
TEST(CpuPool, Integers) {
  Case c = pool("max", {1, 20, 6, 9}, {2, 2}, {1, 1}, {1, 1}, {0, 0, 0, 0}, true, 0, 0, DType::kU8);
  c.fill(g_rng, 0, 200);
  checkAll(c);
  c = pool("max", {1, 3, 6, 21}, {2, 2}, {2, 1}, {1, 1}, {0, 0, 0, 0}, false, 0, 0, DType::kI8);
  c.fill(g_rng, -100, 100);
  checkAll(c);
}

Case resize(const std::string& mode, const std::string& coordinates, const std::string& nearest, const Ints& x,
            const std::vector<double>& scale, bool last, DType t = DType::kF32) {
  Case c;
  Problem& p = c.problem;
  p.kind = ProblemKind::kResize;
  p.words = {{"mode", mode}, {"coordinates", coordinates}, {"nearest_mode", nearest}};
  p.reals["cubic_a"] = -0.6;
  p.anchors = 1;
  p.operands = {anchor(t, x, layout(x, last))};
  Ints space;
  for (size_t a = 0; a < x.size(); a++) {
    space.push_back(int64_t(double(x[a]) * scale[a]));
    if (scale[a] != 1) p.reals["scale" + std::to_string(a)] = scale[a];
  }
  finishWithAcc(c, t, space, last);
  c.fill(g_rng);
  return c;
}
TEST(CpuResize, ModesAndCoordinates) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* coordinates :
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"})
      for (bool last : {false, true}) {
        checkAll(resize(mode, coordinates, "round_prefer_floor", {1, 19, 5, 9}, {1, 1, 2, 2}, last), {}, 1e-5);
        checkAll(resize(mode, coordinates, "floor", {1, 3, 6, 11}, {1, 1, 1.7, 2.6}, last), {}, 1e-5);
        checkAll(resize(mode, coordinates, "ceil", {2, 3, 9, 14}, {1, 1, 0.6, 0.5}, last), {}, 1e-5);
      }
}
TEST(CpuResize, NearestModes) {
  for (const char* n : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    for (bool last : {false, true})
      for (double s : {0.5, 1.5, 2.0, 3.0})
        checkAll(resize("nearest", "half_pixel", n, {1, 18, 6, 8}, {1, 1, s, s}, last));
}
TEST(CpuResize, OneAxisOtherTypesAndChannels) {
  checkAll(resize("linear", "half_pixel", "floor", {1, 4, 33}, {1, 1, 2.5}, false), {}, 1e-5);
  checkAll(resize("linear", "half_pixel", "floor", {1, 4, 33}, {1, 2, 1}, false), {}, 1e-5);
  Case c = resize("nearest", "asymmetric", "floor", {1, 21, 3, 3}, {1, 1, 2, 2}, true, DType::kI64);
  checkAll(c);
  checkAll(resize("nearest", "asymmetric", "floor", {1, 3, 3, 21}, {1, 1, 2, 2}, false, DType::kU8));
}

Case gather(const Ints& data, const Ints& indices, int64_t axis, DType t = DType::kF32, DType it = DType::kI64) {
  Case c;
  Problem& p = c.problem;
  p.kind = ProblemKind::kGather;
  p.ints["axis"] = {KDim(axis)};
  p.anchors = 2;
  p.operands = {anchor(t, data, dense(data)), anchor(it, indices, dense(indices))};
  Ints space(data.begin(), data.begin() + axis);
  space.insert(space.end(), indices.begin(), indices.end());
  space.insert(space.end(), data.begin() + axis + 1, data.end());
  p.space = kdims(space);
  p.operands.push_back(operand(t, dense(space), true));
  p.epilogue.outputs = {p.epilogue.add({PwOp::kAcc, t})};
  c.fill(g_rng, 0, 100);
  c.fill(1, g_rng, double(-data[size_t(axis)]), double(data[size_t(axis)] - 1));
  return c;
}
TEST(CpuGather, AxesRanksAndTypes) {
  for (DType it : {DType::kI64, DType::kI32}) {
    checkAll(gather({30, 67}, {5}, 0, DType::kF32, it));
    checkAll(gather({30, 67}, {2, 3}, 0, DType::kF32, it));
    checkAll(gather({6, 9, 20}, {4}, 1, DType::kF32, it));
    checkAll(gather({6, 40}, {37}, 1, DType::kF32, it));
    checkAll(gather({6, 40}, {}, 1, DType::kF32, it));
    checkAll(gather({40}, {}, 0, DType::kF32, it));
    checkAll(gather({40}, {3, 7}, 0, DType::kI64, it));
    checkAll(gather({7, 33}, {4}, 0, DType::kU8, it));
    checkAll(gather({7, 33}, {0}, 0, DType::kF32, it));
  }
}
TEST(CpuGather, IndicesOutsideFailTheKernel) {
  for (auto [axis, indices] : {std::pair<int64_t, Ints>{0, {5}}, {1, {19}}})
    for (int64_t bad : {-31, 30, 1000000000})
      for (const std::string& isa : isas()) {
        Case c = gather(axis == 0 ? Ints{30, 20} : Ints{3, 30}, indices, axis);
        EXPECT_EQ(run(c, {.isa = isa}).status, 0);
        writeNumber(DType::kI64, c.data[1].data() + 8 * (indices[0] - 1), {0, bad});
        EXPECT_EQ(run(c, {.isa = isa}).status, 1) << axis << " " << bad << " " << isa;
      }
}
TEST(CpuGather, LargeTablesInTasks) {
  checkAll(gather({1000, 384}, {128}, 0));
}
}  // namespace
}  // namespace rutter::cputest
