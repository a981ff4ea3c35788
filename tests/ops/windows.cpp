// Products, convolutions, pooling, resizing.
#include <random>

#include "net.h"
#include "ops/window.h"

namespace rutter::ops::test {
namespace {
Tensor iota(Ints shape, double start = 0) {
  Tensor t(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.size(); i++) t.setDouble(i, start + double(i));
  return t;
}
Tensor noise(Ints shape, int seed) {
  Tensor t(DType::kF32, std::move(shape));
  std::mt19937 r(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  for (int64_t i = 0; i < t.size(); i++) t.as<float>()[i] = d(r);
  return t;
}

TEST(MatMul, Values) {
  Tensor a = iota({2, 3}), b = iota({3, 2});
  expectTensor(eval("MatMul", {a, b}), {2, 2}, {10, 13, 28, 40});
  expectTensor(eval("MatMul", {iota({3}), b}), {2}, {10, 13});
  expectTensor(eval("MatMul", {a, iota({3})}), {2}, {5, 14});
  expectTensor(eval("MatMul", {iota({3}), iota({3})}), {}, {5});
  expectTensor(eval("MatMul", {iota({2, 1, 2}), iota({2, 2, 1})}), {2, 1, 1}, {1, 13});
  expectTensor(eval("MatMul", {iota({2, 1, 1, 2}), iota({3, 2, 1})}), {2, 3, 1, 1}, {1, 3, 5, 3, 13, 23});
  expectTensor(eval("MatMul", {i64({1, 2}, {3, -4}), i64({2, 1}, {5, 6})}), {1, 1}, {-9});
  expectTensor(eval("MatMul", {f32({2, 0}, {}), f32({0, 2}, {})}), {2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(userError([&] { eval("MatMul", {a, a}); }),
              HasSubstr("the last axis of input 0 and the last but one of input 1 must agree: 3 and 2 differ"));
}
TEST(MatMul, EveryRemainderOfTheTiles) {
  for (int64_t m : {1, 3, 5})
    for (int64_t n : {1, 2, 7, 515})
      for (int64_t k : {1, 6, 259}) {
        Tensor a = noise({m, k}, 1), b = noise({k, n}, 2), y = eval("MatMul", {a, b});
        for (int64_t i = 0; i < m; i++)
          for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++) sum += a.getDouble(i * k + p) * b.getDouble(p * n + j);
            ASSERT_FLOAT_EQ(y.getDouble(i * n + j), float(sum)) << m << "x" << n << "x" << k << " at " << i << "," << j;
          }
      }
}
TEST(Gemm, Values) {
  Tensor a = iota({2, 3}), b = iota({3, 2});
  Attrs half = {{"alpha", 0.5f}, {"beta", 2.f}};
  expectTensor(eval("Gemm", {a, b, f32({2}, {1, -1})}, half), {2, 2}, {7, 4.5, 16, 18});
  expectTensor(eval("Gemm", {a, b, f32({2, 1}, {1, -1})}), {2, 2}, {11, 14, 27, 39});
  expectTensor(eval("Gemm", {a, iota({2, 3})}, {{"transB", int64_t(1)}}), {2, 2}, {5, 14, 14, 50});
  expectTensor(eval("Gemm", {b, iota({3, 1}), f32({}, {1})}, {{"transA", int64_t(1)}}), {2, 1}, {11, 14});
  EXPECT_THAT(userError([&] { eval("Gemm", {a, b, f32({3}, {1, 2, 3})}); }),
              HasSubstr("C of shape 3 does not broadcast to 2x2"));
}

TEST(Conv, TwoAxes) {
  Tensor x = iota({1, 1, 3, 3}), w = f32({1, 1, 2, 2}, {1, 2, 3, 4});
  expectTensor(eval("Conv", {x, w}), {1, 1, 2, 2}, {27, 37, 57, 67});
  expectTensor(eval("Conv", {x, w, f32({1}, {0.5})}, {{"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{2, 2}}}),
               {1, 1, 2, 2}, {0.5, 11.5, 30.5, 67.5});
  expectTensor(eval("Conv", {x, w}, {{"auto_pad", std::string("SAME_UPPER")}}), {1, 1, 3, 3},
               {27, 37, 17, 57, 67, 29, 20, 23, 8});
  expectTensor(eval("Conv", {x, w}, {{"auto_pad", std::string("SAME_LOWER")}}), {1, 1, 3, 3},
               {0, 4, 11, 12, 27, 37, 30, 57, 67});
  expectTensor(eval("Conv", {x, w}, {{"dilations", Ints{2, 2}}}), {1, 1, 1, 1}, {0 + 4 + 18 + 32});
}
TEST(Conv, GroupsAndOtherRanks) {
  expectTensor(eval("Conv", {iota({1, 2, 3}), f32({2, 1, 2}, {1, 1, 1, -1})}, {{"group", int64_t(2)}}), {1, 2, 2},
               {1, 3, -1, -1});
  expectTensor(eval("Conv", {iota({2, 2, 2}), f32({1, 2, 1}, {1, 10})}), {2, 1, 2}, {20, 31, 64, 75});
  expectTensor(eval("Conv", {iota({1, 1, 2, 2, 2}), f32({1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1})}), {1, 1, 1, 1, 1},
               {28});
}
TEST(Conv, LargeAgreesWithPlainLoops) {
  Tensor x = noise({2, 6, 17, 31}, 1), w = noise({9, 2, 3, 3}, 2), b = noise({9}, 3);
  Tensor y =
      eval("Conv", {x, w, b},
           {{"group", int64_t(3)}, {"pads", Ints{1, 2, 1, 0}}, {"strides", Ints{1, 2}}, {"dilations", Ints{2, 1}}});
  ASSERT_EQ(y.shape(), (Ints{2, 9, 15, 16}));
  int64_t k = 0;
  for (int64_t n = 0; n < 2; n++)
    for (int64_t m = 0; m < 9; m++)
      for (int64_t i = 0; i < 15; i++)
        for (int64_t j = 0; j < 16; j++, k++) {
          double sum = b.getDouble(m);
          for (int64_t c = 0; c < 2; c++)
            for (int64_t r = 0; r < 3; r++)
              for (int64_t s = 0; s < 3; s++) {
                int64_t h = i - 1 + 2 * r, v = 2 * j - 2 + s;
                if (h >= 0 && h < 17 && v >= 0 && v < 31)
                  sum += x.getDouble(((n * 6 + m / 3 * 2 + c) * 17 + h) * 31 + v) *
                         w.getDouble(((m * 2 + c) * 3 + r) * 3 + s);
              }
          ASSERT_NEAR(y.getDouble(k), sum, 1e-6) << "element " << k;
        }
}
TEST(Conv, Errors) {
  Tensor x = iota({1, 2, 3, 3}), w = iota({1, 1, 2, 2});
  EXPECT_THAT(userError([&] { eval("Conv", {x, w}); }),
              HasSubstr("channels must be 1 groups of the weights' 1: 2 and 1 differ"));
  EXPECT_THAT(userError([&] { eval("Conv", {x, iota({3, 1, 2, 2})}, {{"group", int64_t(2)}}); }),
              HasSubstr("3 is not divisible by 2"));
  EXPECT_THAT(userError([&] { eval("Conv", {x, iota({1, 2, 5, 1})}); }),
              HasSubstr("a window of 5 is larger than the padded input of 3 on spatial axis 0"));
  EXPECT_THAT(userError([&] { eval("Conv", {x, iota({1, 2, 2, 2})}, {{"strides", Ints{0, 1}}}); }),
              HasSubstr("attribute strides holds 0; it must be at least 1"));
  EXPECT_THAT(userError([&] { eval("Conv", {x, iota({1, 2, 2, 2})}, {{"pads", Ints{1, 1}}}); }),
              HasSubstr("attribute pads has 2 entries; 2 spatial axes need 4"));
  EXPECT_THAT(userError([&] { eval("Conv", {x, iota({1, 2, 2, 2})}, {{"auto_pad", std::string("SAME")}}); }),
              HasSubstr("auto_pad is 'SAME'"));
}
// Strides that leave gaps: the extent is input times stride, nothing is cropped, the zeros are at the end.
TEST(ConvTranspose, SamePaddingOfStridesWiderThanTheKernel) {
  expectTensor(eval("ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 1}, {10})},
                    {{"strides", Ints{3}}, {"auto_pad", std::string("SAME_UPPER")}}),
               {1, 1, 6}, {10, 0, 0, 20, 0, 0});
}
TEST(ConvTranspose, Values) {
  Tensor x = f32({1, 1, 2, 2}, {1, 2, 3, 4}), w = f32({1, 1, 2, 2}, {1, 10, 100, 1000});
  expectTensor(eval("ConvTranspose", {x, w}), {1, 1, 3, 3}, {1, 12, 20, 103, 1234, 2040, 300, 3400, 4000});
  expectTensor(eval("ConvTranspose", {x, w, f32({1}, {1})}, {{"strides", Ints{2, 2}}}), {1, 1, 4, 4},
               {2, 11, 3, 21, 101, 1001, 201, 2001, 4, 31, 5, 41, 301, 3001, 401, 4001});
  expectTensor(eval("ConvTranspose", {x, w}, {{"pads", Ints{1, 1, 1, 1}}}), {1, 1, 1, 1}, {1234});
  EXPECT_EQ(eval("ConvTranspose", {x, w}, {{"strides", Ints{3, 3}}, {"output_shape", Ints{6, 7}}}).shape(),
            (Ints{1, 1, 6, 7}));
  EXPECT_EQ(eval("ConvTranspose", {x, w}, {{"strides", Ints{3, 3}}, {"auto_pad", std::string("SAME_UPPER")}}).shape(),
            (Ints{1, 1, 6, 6}));
  // two groups, two channels in each, one axis
  expectTensor(
      eval("ConvTranspose", {f32({1, 2, 2}, {1, 2, 3, 4}), f32({2, 2, 1}, {1, 10, 1, 10})}, {{"group", int64_t(2)}}),
      {1, 4, 2}, {1, 2, 10, 20, 3, 4, 30, 40});
}
TEST(Pool, Values) {
  Tensor x = iota({1, 1, 3, 3});
  Attrs two = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  auto with = [&](Attrs more) {
    more.insert(two.begin(), two.end());
    return more;
  };
  expectTensor(eval("MaxPool", {x}, two), {1, 1, 1, 1}, {4});
  expectTensor(eval("MaxPool", {x}, with({{"ceil_mode", int64_t(1)}})), {1, 1, 2, 2}, {4, 5, 7, 8});
  expectTensor(eval("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{2, 2}}}), {1, 1, 1, 1}, {8});
  expectTensor(eval("AveragePool", {x}, with({{"ceil_mode", int64_t(1)}})), {1, 1, 2, 2}, {2, 3.5, 6.5, 8});
  // A window larger than the input: it begins inside, so that it counts, as far as there is input.
  expectTensor(eval("MaxPool", {f32({1, 1, 2}, {1, 3})},
                    {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", int64_t(1)}}),
               {1, 1, 1}, {3});
  expectTensor(eval("AveragePool", {x}, with({{"pads", Ints{1, 1, 0, 0}}})), {1, 1, 2, 2}, {0, 1.5, 4.5, 6});
  expectTensor(eval("AveragePool", {x}, with({{"pads", Ints{1, 1, 0, 0}}, {"count_include_pad", int64_t(1)}})),
               {1, 1, 2, 2}, {0, 0.75, 2.25, 6});
  // A window beyond the padding divides by what lies inside of it.
  expectTensor(eval("AveragePool", {x}, with({{"ceil_mode", int64_t(1)}, {"count_include_pad", int64_t(1)}})),
               {1, 1, 2, 2}, {2, 3.5, 6.5, 8});
  // A window that would start in the end padding does not exist.
  EXPECT_EQ(eval("MaxPool", {iota({1, 1, 4})},
                 {{"kernel_shape", Ints{1}}, {"strides", Ints{4}}, {"pads", Ints{0, 1}}, {"ceil_mode", int64_t(1)}})
                .shape(),
            (Ints{1, 1, 1}));
  auto both = evalAll("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"storage_order", int64_t(1)}}, 2);
  expectTensor(both[1], {1, 1, 2, 2}, {4, 7, 5, 8});
  expectTensor(eval("GlobalAveragePool", {iota({1, 2, 2, 2})}), {1, 2, 1, 1}, {1.5, 5.5});
  expectTensor(eval("GlobalMaxPool", {iota({1, 2, 3})}), {1, 2, 1}, {2, 5});
  EXPECT_THAT(userError([&] { eval("MaxPool", {x}, {{"kernel_shape", Ints{2}}}); }),
              HasSubstr("the kernel has 1 axes; the input has 2 spatial axes"));
}

Tensor resize(const Tensor& x, Floats scales, Attrs attrs = {}) {
  return eval("Resize", {x, none(), f32({int64_t(scales.size())}, scales)}, std::move(attrs));
}
Attrs modes(const char* mode, const char* coordinates) {
  return {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinates)}};
}
TEST(Resize, OneAxis) {
  Tensor x = f32({4}, {0, 1, 2, 3});
  expectTensor(resize(x, {2}), {8}, {0, 0, 1, 1, 2, 2, 3, 3});
  expectTensor(resize(x, {0.5}, modes("nearest", "asymmetric")), {2}, {0, 2});
  expectTensor(resize(x, {2}, modes("linear", "half_pixel")), {8}, {0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3});
  expectTensor(resize(x, {0.5}, modes("linear", "half_pixel")), {2}, {0.5, 2.5});
  expectTensor(resize(x, {1.75}, modes("linear", "align_corners")), {7}, {0, 0.5, 1, 1.5, 2, 2.5, 3});
  expectTensor(resize(x, {1.5}, modes("linear", "asymmetric")), {6}, {0, 2.0 / 3, 4.0 / 3, 2, 8.0 / 3, 3});
  expectTensor(resize(f32({2}, {1, 5}), {0.5}, modes("linear", "pytorch_half_pixel")), {1}, {1});
  Attrs floor = modes("nearest", "half_pixel");
  floor["nearest_mode"] = std::string("floor");
  expectTensor(resize(x, {2}, floor), {8}, {0, 0, 0, 1, 1, 2, 2, 3});
  floor["nearest_mode"] = std::string("ceil");
  expectTensor(resize(x, {2}, floor), {8}, {0, 1, 1, 2, 2, 3, 3, 3});
  // Keys's kernel with a = -0.75 at 0.25 and 0.75.
  Tensor c = resize(f32({5}, {0, 0, 1, 0, 0}), {2}, modes("cubic", "half_pixel"));
  expectTensor(
      c, {10},
      {0, -0.03515625, -0.10546875, 0.26171875, 0.87890625, 0.87890625, 0.26171875, -0.10546875, -0.03515625, 0});
}
TEST(Resize, Antialias) {
  // Shrinking by 2 with a triangle of radius 2: weights 1, 3, 3, 1 of 8 around each result, edges repeated.
  Attrs a = modes("linear", "half_pixel");
  a["antialias"] = int64_t(1);
  expectTensor(resize(f32({4}, {8, 16, 24, 64}), {0.5}, a), {2},
               {(8 + 24 + 48 + 24) / 8.0, (16 + 72 + 192 + 64) / 8.0});
}
TEST(Resize, ManyAxes) {
  Tensor x = iota({1, 1, 2, 2});
  Tensor y = eval("Resize", {x, none(), none(), i64({1, 1, 4, 3})}, modes("linear", "half_pixel"));
  expectTensor(y, {1, 1, 4, 3}, {0, 0.5, 1, 0.5, 1, 1.5, 1.5, 2, 2.5, 2, 2.5, 3});
  Attrs a = {{"axes", Ints{3, -2}}};
  expectTensor(eval("Resize", {x, none(), none(), i64({1, 2})}, a).reshaped({2}), {2}, {0, 2});
  Attrs keep = {{"keep_aspect_ratio_policy", std::string("not_larger")}, {"axes", Ints{2, 3}}};
  EXPECT_EQ(eval("Resize", {x, none(), none(), i64({7, 8})}, keep).shape(), (Ints{1, 1, 7, 7}));
  Attrs crop = modes("linear", "tf_crop_and_resize");
  crop["extrapolation_value"] = 9.f;
  expectTensor(eval("Resize", {f32({3}, {1, 2, 3}), f32({2}, {0.5f, 1.5f}), none(), i64({3})}, crop), {3}, {2, 3, 9});
  EXPECT_THAT(userError([&] { resize(x, {1, 1, 2}); }), HasSubstr("input 2 (scales) has 3 elements for 4 axes"));
  EXPECT_THAT(userError([&] { resize(x, {1, 1, 2, 2}, {{"mode", std::string("area")}}); }),
              HasSubstr("supported: nearest, linear, cubic"));
}

// A window over a symbolic axis is an expression.
TEST(Window, Symbolic) {
  ir::Node n;
  n.attrs = {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
  Window w = windowOf(n, {Dim::symbol("H"), Dim(5)}, {3, 3}, {});
  EXPECT_EQ(ir::toString(w.out), (floorDiv(Dim::symbol("H") - Dim(1), Dim(2)) + Dim(1)).text() + "x3");
  n.attrs["auto_pad"] = std::string("SAME_UPPER");
  w = windowOf(n, {Dim(32) * Dim::symbol("H"), Dim(5)}, {3, 3}, {});
  EXPECT_EQ(ir::toString(w.out), "16*Hx3");
  EXPECT_EQ(ir::toString(w.padBegin), "0x1");
  EXPECT_EQ(ir::toString(w.padEnd), "1x1");
}
}  // namespace
}  // namespace rutter::ops::test
