// Operators outside of the families of the other files.
#include "net.h"

namespace rutter::ops::test {
namespace {
TEST(Others, TopK) {
  Tensor x = f32({2, 4}, {1, 4, 4, 2, 7, 5, 6, 8});
  auto y = evalAll("TopK", {x, i64({2})}, {}, 2);
  expectTensor(y[0], {2, 2}, {4, 4, 8, 7});
  expectTensor(y[1], {2, 2}, {1, 2, 3, 0});
  y = evalAll("TopK", {x, i64({1})}, {{"axis", int64_t(0)}, {"largest", int64_t(0)}}, 2);
  expectTensor(y[0], {1, 4}, {1, 4, 4, 2});
  expectTensor(y[1], {1, 4}, {0, 0, 0, 0});
  EXPECT_THAT(userError([&] { evalAll("TopK", {x, i64({5})}, {}, 2); }), HasSubstr("K is 5, axis 1 has the extent 4"));
}
TEST(Others, Triangles) {
  Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expectTensor(eval("Trilu", {x}), {2, 3}, {1, 2, 3, 0, 5, 6});
  expectTensor(eval("Trilu", {x, scalar(-1)}, {{"upper", int64_t(0)}}), {2, 3}, {0, 0, 0, 4, 0, 0});
  expectTensor(eval("EyeLike", {x}, {{"k", int64_t(1)}, {"dtype", int64_t(7)}}), {2, 3}, {0, 1, 0, 0, 0, 1});
  expectTensor(eval("EyeLike", {x}, {{"k", int64_t(-1)}}), {2, 3}, {0, 0, 0, 1, 0, 0});
}
TEST(Others, Scatters) {
  Tensor x = f32({2, 2}, {1, 2, 3, 4}), u = f32({1, 2}, {10, 20});
  expectTensor(eval("ScatterElements", {x, i64({1, 2}, {1, -2}), u}), {2, 2}, {1, 20, 10, 4});
  expectTensor(
      eval("ScatterElements", {x, i64({1, 2}, {0, 0}), u}, {{"axis", int64_t(1)}, {"reduction", std::string("add")}}),
      {2, 2}, {31, 2, 3, 4});
  expectTensor(eval("ScatterND", {x, i64({1, 1}, {-1}), u}), {2, 2}, {1, 2, 10, 20});
  expectTensor(eval("ScatterND", {x, i64({2, 2}, {0, 1, 0, 1}), f32({2}, {3, 5})}, {{"reduction", std::string("mul")}}),
               {2, 2}, {1, 30, 3, 4});
  EXPECT_THAT(userError([&] { eval("ScatterND", {x, i64({1, 1}, {2}), u}); }),
              HasSubstr("index 2 is outside [-2, 2) of axis 0"));
  EXPECT_THAT(userError([&] { eval("ScatterND", {x, i64({1, 1}, {0}), u}, {{"reduction", std::string("avg")}}); }),
              HasSubstr("supported: none, add, mul, max, min"));
}
TEST(Others, OneHotAndHardmax) {
  Tensor off_on = f32({2}, {-1, 1});
  expectTensor(eval("OneHot", {i64({0, 2, -1, 7}), scalar(3), off_on}), {4, 3},
               {1, -1, -1, -1, -1, 1, -1, -1, 1, -1, -1, -1});
  expectTensor(eval("OneHot", {i64({0, 1}), scalar(2), off_on}, {{"axis", int64_t(0)}}), {2, 2}, {1, -1, -1, 1});
  expectTensor(eval("Hardmax", {f32({2, 3}, {1, 3, 3, 0, -1, -2})}), {2, 3}, {0, 1, 0, 1, 0, 0});
}
TEST(Others, Bits) {
  Tensor a = make(DType::kU8, {2}, {12, 10}), b = make(DType::kU8, {2}, {10, 3});
  expectTensor(eval("BitwiseAnd", {a, b}), {2}, {8, 2});
  expectTensor(eval("BitwiseOr", {a, b}), {2}, {14, 11});
  expectTensor(eval("BitwiseXor", {a, b}), {2}, {6, 9});
  expectTensor(eval("BitwiseNot", {a}), {2}, {243, 245});
  Attrs left = {{"direction", std::string("LEFT")}}, right = {{"direction", std::string("RIGHT")}};
  expectTensor(eval("BitShift", {make(DType::kU8, {3}, {129, 1, 1}), make(DType::kU8, {3}, {1, 7, 8})}, left), {3},
               {2, 128, 0});
  expectTensor(eval("BitShift", {make(DType::kI8, {3}, {-8, -8, 8}), make(DType::kI8, {3}, {1, 9, 9})}, right), {3},
               {-4, -1, 0});
}
TEST(Others, Einsum) {
  Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = f32({3, 2}, {1, 0, 0, 1, 1, 1});
  auto einsum = [](const char* e, std::vector<Tensor> in) {
    return eval("Einsum", in, {{"equation", std::string(e)}});
  };
  expectTensor(einsum("ij,jk->ik", {a, b}), {2, 2}, {4, 5, 10, 11});
  expectTensor(einsum("ij, jk", {a, b}), {2, 2}, {4, 5, 10, 11});
  expectTensor(einsum("ij->ji", {a}), {3, 2}, {1, 4, 2, 5, 3, 6});
  expectTensor(einsum("ij->", {a}), {}, {21});
  expectTensor(einsum("ii->i", {f32({2, 2}, {1, 2, 3, 4})}), {2}, {1, 4});
  expectTensor(einsum("...j,j->...", {a, f32({3}, {1, 0, 1})}), {2}, {4, 10});
  EXPECT_THAT(userError([&] { einsum("ij,jk->il", {a, b}); }), HasSubstr("'l' is in the result only"));
  EXPECT_THAT(userError([&] { einsum("ij,ik->jk", {a, b}); }), HasSubstr("axes of 'i' must agree: 2 and 3 differ"));
}
TEST(Others, LocalResponseAndLpPool) {
  // alpha / size = 1, beta 1, bias 0: x / (sum of squares of the neighbours)
  Attrs lrn = {{"size", int64_t(3)}, {"alpha", 3.f}, {"beta", 1.f}, {"bias", 0.f}};
  expectTensor(eval("LRN", {f32({1, 3, 1}, {1, 2, 3})}, lrn), {1, 3, 1}, {0.2, 2.0 / 14, 3.0 / 13});
  expectTensor(eval("LpPool", {f32({1, 1, 3}, {3, 4, 0})}, {{"kernel_shape", Ints{2}}}), {1, 1, 2}, {5, 4});
  expectTensor(eval("GlobalLpPool", {f32({1, 1, 2}, {3, -4})}, {{"p", int64_t(1)}}), {1, 1, 1}, {7});
}
TEST(Others, GatesAndProducts) {
  expectTensor(eval("SwiGLU", {f32({2}, {1, -1}), f32({2}, {2, 2})}), {2}, {1.4621172, -0.5378828});
  expectTensor(eval("Shrink", {f32({3}, {-2, 0.25, 2})}, {{"bias", 0.5f}}), {3}, {-1.5, 0, 1.5});
  expectTensor(eval("CumProd", {f32({3}, {1, 2, 3}), scalar(0)}, {{"exclusive", int64_t(1)}}), {3}, {1, 1, 2});
}
}  // namespace
}  // namespace rutter::ops::test
