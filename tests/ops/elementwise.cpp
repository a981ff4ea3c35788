#include <cmath>

#include "net.h"

namespace rutter::ops::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

struct Case {
  const char* op;
  std::vector<double> x, y;
  Attrs attrs = {};
};
void PrintTo(const Case& c, std::ostream* o) {
  *o << c.op;
}
class Unary : public testing::TestWithParam<Case> {};
TEST_P(Unary, Values) {
  const Case& c = GetParam();
  int64_t n = int64_t(c.x.size());
  expectTensor(eval(c.op, {make(DType::kF64, {n}, c.x)}, c.attrs), {n}, c.y, 1e-7);
  // float16 in, float16 out
  Tensor half = eval(c.op, {make(DType::kF16, {n}, c.x)}, c.attrs);
  EXPECT_EQ(half.dtype(), DType::kF16);
}
INSTANTIATE_TEST_SUITE_P(
    Table, Unary,
    testing::Values(
        Case{"Exp", {0, 1, -kInf}, {1, 2.718281828, 0}}, Case{"Log", {1, 0, 2}, {0, -kInf, 0.69314718}},
        Case{"Sqrt", {4, 2, 0}, {2, 1.41421356, 0}}, Case{"Reciprocal", {4, -0.5, kInf}, {0.25, -2, 0}},
        Case{"Erf", {0, 0.5, -3}, {0, 0.52049988, -0.99997791}}, Case{"Sin", {0.5}, {0.47942554}},
        Case{"Cos", {0.5}, {0.87758256}}, Case{"Tan", {0.5}, {0.54630249}}, Case{"Asin", {0.5}, {0.52359878}},
        Case{"Acos", {0.5}, {1.04719755}}, Case{"Atan", {1}, {0.78539816}}, Case{"Sinh", {1}, {1.17520119}},
        Case{"Cosh", {1}, {1.54308063}}, Case{"Tanh", {1, -100}, {0.76159416, -1}}, Case{"Asinh", {1}, {0.88137359}},
        Case{"Acosh", {2}, {1.31695790}}, Case{"Atanh", {0.5}, {0.54930614}},
        Case{"Sigmoid", {0, 2, -1000, kNan}, {0.5, 0.88079708, 0, kNan}},
        Case{"HardSigmoid", {-3, 0, 1, 5}, {0, 0.5, 0.7, 1}},
        Case{"HardSigmoid", {1}, {1}, {{"alpha", 0.5f}, {"beta", 0.75f}}},
        Case{"HardSwish", {-4, -1, 0, 2, 5}, {0, -1.0 / 3, 0, 5.0 / 3, 5}}, Case{"Relu", {-1, 2, kNan}, {0, 2, kNan}},
        Case{"LeakyRelu", {-2, 3}, {-0.5, 3}, {{"alpha", 0.25f}}}, Case{"ThresholdedRelu", {0.5, 1, 1.5}, {0, 0, 1.5}},
        Case{"Elu", {-1, 2}, {-1.26424112, 2}, {{"alpha", 2.f}}},
        Case{"Celu", {-1, 2}, {-0.78693868, 2}, {{"alpha", 2.f}}}, Case{"Selu", {-1, 2}, {-1.11133074, 2.10140204}},
        Case{"Softplus", {0, 100, -100}, {0.69314718, 100, 0}}, Case{"Softsign", {1, -3}, {0.5, -0.75}},
        Case{"Mish", {1}, {0.86509839}}, Case{"Swish", {1}, {0.88079708}, {{"alpha", 2.f}}},
        Case{"Gelu", {1, -2}, {0.84134475, -0.04550026}},
        Case{"Gelu", {1, -2}, {0.84119199, -0.04540231}, {{"approximate", std::string("tanh")}}},
        Case{"Floor", {-1.5, 1.5}, {-2, 1}}, Case{"Ceil", {-1.5, 1.5}, {-1, 2}},
        Case{"Round", {0.5, 1.5, 2.5, -0.5, -1.6}, {0, 2, 2, 0, -2}}, Case{"Abs", {-2, 3}, {2, 3}},
        Case{"Neg", {-2, 3}, {2, -3}}, Case{"Sign", {-2, 0, 3, kNan}, {-1, 0, 1, kNan}}));

TEST(Unary, SiluIsRuttersOwn) {
  expectTensor(evalAll("Silu", {f32({2}, {1, -1})}, {}, 1, "rutter")[0], {2}, {0.7310586, -0.2689414});
  EXPECT_EQ(findOp("", "Silu"), nullptr);
}
TEST(Unary, IntegersOfRelu) {
  Tensor y = eval("Relu", {make(DType::kI8, {3}, {-5, 0, 7})});
  EXPECT_EQ(y.dtype(), DType::kI8);
  expectTensor(y, {3}, {0, 0, 7});
  expectTensor(eval("Neg", {make(DType::kI8, {2}, {-128, 5})}), {2}, {-128, -5});
  expectTensor(eval("Abs", {make(DType::kI32, {2}, {-8, 5})}), {2}, {8, 5});
  expectTensor(eval("Abs", {make(DType::kU64, {1}, {1e19})}), {1}, {1e19});
}
TEST(Unary, Tests) {
  expectTensor(eval("IsNaN", {make(DType::kF32, {3}, {1, kNan, kInf})}), {3}, {0, 1, 0});
  expectTensor(eval("IsInf", {make(DType::kF32, {4}, {1, kNan, kInf, -kInf})}), {4}, {0, 0, 1, 1});
  expectTensor(eval("IsInf", {make(DType::kF32, {2}, {kInf, -kInf})}, {{"detect_negative", int64_t(0)}}), {2}, {1, 0});
  expectTensor(eval("Not", {make(DType::kBool, {2}, {1, 0})}), {2}, {0, 1});
}
TEST(Unary, Refusals) {
  EXPECT_THAT(
      userError([] { eval("Exp", {i64({1, 2})}); }),
      HasSubstr(
          "node Exp (Exp) on (int64[2]): input 0 has dtype int64, which is not supported here; supported: float16"));
  EXPECT_THAT(userError([] { eval("Gelu", {f32({1}, {1})}, {{"approximate", std::string("sigmoid")}}); }),
              HasSubstr("attribute approximate is 'sigmoid'; supported: none, tanh"));
}

TEST(Binary, Broadcasting) {
  Tensor a = f32({2, 1}, {1, 2}), b = f32({3}, {10, 20, 30});
  expectTensor(eval("Add", {a, b}), {2, 3}, {11, 21, 31, 12, 22, 32});
  expectTensor(eval("Sub", {a, b}), {2, 3}, {-9, -19, -29, -8, -18, -28});
  expectTensor(eval("Mul", {b, a}), {2, 3}, {10, 20, 30, 20, 40, 60});
  expectTensor(eval("Div", {b, f32({}, {4})}), {3}, {2.5, 5, 7.5});
  expectTensor(eval("Add", {f32({0, 1}, {}), b}), {0, 3}, {});
  EXPECT_THAT(userError([&] { eval("Add", {f32({2}, {1, 2}), b}); }),
              HasSubstr("shapes 2 and 3 do not broadcast on axis 0: 2 and 3 differ"));
  EXPECT_THAT(userError([&] { eval("Add", {a, i64({1})}); }),
              HasSubstr("inputs 0 and 1 have dtypes float32 and int64, which must be equal"));
}
TEST(Binary, Integers) {
  expectTensor(eval("Div", {make(DType::kI32, {4}, {7, -7, 7, -7}), make(DType::kI32, {4}, {2, 2, -2, -2})}), {4},
               {3, -3, -3, 3});
  expectTensor(eval("Mod", {make(DType::kI32, {4}, {7, -7, 7, -7}), make(DType::kI32, {4}, {3, 3, -3, -3})}), {4},
               {1, 2, -2, -1});
  expectTensor(eval("Mod", {make(DType::kI32, {2}, {-7, 7}), make(DType::kI32, {2}, {3, -3})}, {{"fmod", int64_t(1)}}),
               {2}, {-1, 1});
  expectTensor(eval("Add", {make(DType::kI8, {1}, {127}), make(DType::kI8, {1}, {1})}), {1}, {-128});
  expectTensor(eval("Div", {make(DType::kU64, {1}, {1e19}), make(DType::kU64, {1}, {2})}), {1}, {5e18});
  EXPECT_THAT(userError([] { eval("Div", {i64({1}), i64({0})}); }), HasSubstr("integer division by zero"));
}
TEST(Binary, FloatModAndPow) {
  expectTensor(eval("Mod", {f32({2}, {-5.5, 5.5}), f32({}, {3})}, {{"fmod", int64_t(1)}}), {2}, {-2.5, 2.5});
  expectTensor(eval("Mod", {f32({2}, {-5.5, 5.5}), f32({}, {3})}), {2}, {0.5, 2.5});
  expectTensor(eval("Pow", {f32({3}, {2, 3, 4}), i64({2, 0, -1})}), {3}, {4, 1, 0.25});
  expectTensor(eval("Pow", {i64({2, -3}), i64({10, 3})}), {2}, {1024, -27});
  expectTensor(eval("PRelu", {f32({2, 2}, {-1, 2, -3, 4}), f32({2, 1}, {0.5, 0.1f})}), {2, 2}, {-0.5, 2, -0.3, 4});
}
TEST(Variadic, Values) {
  Tensor a = f32({3}, {1, 5, 3}), b = f32({3}, {4, 2, 3}), c = f32({1}, {2});
  expectTensor(eval("Max", {a, b, c}), {3}, {4, 5, 3});
  expectTensor(eval("Min", {a, b, c}), {3}, {1, 2, 2});
  expectTensor(eval("Sum", {a, b, c}), {3}, {7, 9, 8});
  expectTensor(eval("Mean", {a, b}), {3}, {2.5, 3.5, 3});
  expectTensor(eval("Max", {a}), {3}, {1, 5, 3});
  expectTensor(eval("Max", {make(DType::kF32, {2}, {kNan, 1}), make(DType::kF32, {2}, {1, kNan})}), {2}, {kNan, kNan});
}
TEST(Compare, Values) {
  Tensor a = f32({4}, {1, 2, 3, float(kNan)}), b = f32({4}, {2, 2, 2, float(kNan)});
  expectTensor(eval("Equal", {a, b}), {4}, {0, 1, 0, 0});
  expectTensor(eval("Less", {a, b}), {4}, {1, 0, 0, 0});
  expectTensor(eval("LessOrEqual", {a, b}), {4}, {1, 1, 0, 0});
  expectTensor(eval("Greater", {a, b}), {4}, {0, 0, 1, 0});
  expectTensor(eval("GreaterOrEqual", {a, b}), {4}, {0, 1, 1, 0});
  Tensor p = make(DType::kBool, {4}, {0, 0, 1, 1}), q = make(DType::kBool, {4}, {0, 1, 0, 1});
  expectTensor(eval("And", {p, q}), {4}, {0, 0, 0, 1});
  expectTensor(eval("Or", {p, q}), {4}, {0, 1, 1, 1});
  expectTensor(eval("Xor", {p, q}), {4}, {0, 1, 1, 0});
  expectTensor(eval("Where", {p, a, f32({}, {9})}), {4}, {9, 9, 3, kNan});
}
TEST(Clip, Bounds) {
  expectTensor(eval("Clip", {f32({4}, {-1, 0.5, 2, float(kNan)}), f32({}, {0}), f32({}, {1})}), {4}, {0, 0.5, 1, kNan});
  expectTensor(eval("Clip", {f32({2}, {-1, 2}), none(), f32({}, {1})}), {2}, {-1, 1});
  expectTensor(eval("Clip", {make(DType::kI8, {2}, {-9, 9}), make(DType::kI8, {}, {-3}), make(DType::kI8, {}, {4})}),
               {2}, {-3, 4});
}
TEST(Cast, Values) {
  auto cast = [](const Tensor& x, DType to) { return eval("Cast", {x}, {{"to", int64_t(ir::dtypeToOnnx(to))}}); };
  Tensor x = f32({4}, {-1.7f, 0, 2.5f, 300});
  expectTensor(cast(x, DType::kI32), {4}, {-1, 0, 2, 300});
  expectTensor(cast(x, DType::kBool), {4}, {1, 0, 1, 1});
  expectTensor(cast(make(DType::kI32, {2}, {300, -1}), DType::kU8), {2}, {44, 255});
  expectTensor(cast(f32({1}, {1.0005f}), DType::kF16), {1}, {1.0}, 1e-3);
  expectTensor(cast(make(DType::kU64, {1}, {1.5e19}), DType::kF64), {1}, {1.5e19});
  EXPECT_EQ(eval("CastLike", {x, make(DType::kF64, {1}, {0})}).dtype(), DType::kF64);
  EXPECT_THAT(userError([&] { eval("Cast", {x}, {{"to", int64_t(8)}}); }),
              HasSubstr("cast to string is not supported; supported: floats"));
}
}  // namespace
}  // namespace rutter::ops::test
