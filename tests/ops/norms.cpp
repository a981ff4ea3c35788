// Normalisations, softmax, reductions.
#include <cmath>

#include "net.h"

namespace rutter::ops::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

TEST(Norm, Batch) {
  Tensor x = f32({1, 2, 2}, {1, 2, 3, 4});
  Tensor scale = f32({2}, {2, 1}), bias = f32({2}, {0.5, -1}), mean = f32({2}, {1, 3}), variance = f32({2}, {3, 0});
  expectTensor(eval("BatchNormalization", {x, scale, bias, mean, variance}, {{"epsilon", 1.f}}), {1, 2, 2},
               {0.5, 1.5, -1, 0});
  EXPECT_THAT(
      userError([&] { eval("BatchNormalization", {x, scale, bias, mean, variance}, {{"training_mode", int64_t(1)}}); }),
      HasSubstr("only inference is"));
  EXPECT_THAT(userError([&] { eval("BatchNormalization", {x, scale, bias, mean, f32({3}, {1, 1, 1})}); }),
              HasSubstr("input_var must have one element a channel: 3 and 2 differ"));
}
TEST(Norm, Layer) {
  Tensor x = f32({2, 2}, {1, 3, -2, 2});
  auto y = evalAll("LayerNormalization", {x, f32({2}, {1, 2}), f32({2}, {0, 1})}, {{"epsilon", 0.f}}, 3);
  expectTensor(y[0], {2, 2}, {-1, 3, -1, 3});
  expectTensor(y[1], {2, 1}, {2, 0});
  expectTensor(y[2], {2, 1}, {1, 0.5});
  expectTensor(eval("LayerNormalization", {x, f32({2, 2}, {1, 1, 1, 1})}, {{"axis", int64_t(0)}, {"epsilon", 0.5f}}),
               {2, 2}, {0, 2 / std::sqrt(4.0), -3 / std::sqrt(4.0), 1 / std::sqrt(4.0)});
  expectTensor(eval("RMSNormalization", {f32({1, 2}, {1, 7}), f32({2}, {1, 2})}, {{"epsilon", 0.f}}), {1, 2},
               {0.2, 2.8});
}
TEST(Norm, GroupAndInstance) {
  Tensor x = f32({1, 2, 2}, {1, 3, 5, 7}), one = f32({2}, {1, 2}), zero = f32({2}, {0, 10});
  expectTensor(eval("InstanceNormalization", {x, one, zero}, {{"epsilon", 0.f}}), {1, 2, 2}, {-1, 1, 8, 12});
  double s = std::sqrt(5.0);
  expectTensor(eval("GroupNormalization", {x, one, zero}, {{"epsilon", 0.f}, {"num_groups", int64_t(1)}}), {1, 2, 2},
               {-3 / s, -1 / s, 10 + 2 / s, 10 + 6 / s});
  EXPECT_THAT(userError([&] { eval("GroupNormalization", {x, one, zero}); }), HasSubstr("num_groups must be given"));
}
TEST(Norm, Softmax) {
  Tensor x = f32({2, 2}, {0, float(std::log(3.0)), 1000, 1000});
  expectTensor(eval("Softmax", {x}), {2, 2}, {0.25, 0.75, 0.5, 0.5});
  expectTensor(eval("Softmax", {f32({2, 2}, {1, 2, 1, 2})}, {{"axis", int64_t(0)}}), {2, 2}, {0.5, 0.5, 0.5, 0.5});
  expectTensor(eval("LogSoftmax", {x}), {2, 2}, {std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)});
  expectTensor(eval("Softmax", {make(DType::kF32, {1, 2}, {-kInf, -kInf})}), {1, 2}, {kNan, kNan});
  expectTensor(eval("Softmax", {f32({0, 3}, {})}), {0, 3}, {});
  EXPECT_THAT(userError([&] { eval("Softmax", {x}, {{"axis", int64_t(2)}}); }), HasSubstr("axis 2 is outside [-2, 2)"));
  expectTensor(eval("LpNormalization", {f32({2, 2}, {3, 4, 0, 0})}), {2, 2}, {0.6, 0.8, 0, 0});
  expectTensor(eval("LpNormalization", {f32({1, 2}, {3, -1})}, {{"p", int64_t(1)}}), {1, 2}, {0.75, -0.25});
}

TEST(Reduce, EachKind) {
  Tensor x = f32({2, 3}, {1, -2, 3, 4, 5, -6});
  auto last = [&](const char* op) { return eval(op, {x, i64({-1})}); };
  expectTensor(last("ReduceSum"), {2, 1}, {2, 3});
  expectTensor(last("ReduceMean"), {2, 1}, {2.0 / 3, 1});
  expectTensor(last("ReduceMax"), {2, 1}, {3, 5});
  expectTensor(last("ReduceMin"), {2, 1}, {-2, -6});
  expectTensor(last("ReduceProd"), {2, 1}, {-6, -120});
  expectTensor(last("ReduceL1"), {2, 1}, {6, 15});
  expectTensor(last("ReduceL2"), {2, 1}, {std::sqrt(14.0), std::sqrt(77.0)});
  expectTensor(last("ReduceSumSquare"), {2, 1}, {14, 77});
  expectTensor(last("ReduceLogSum"), {2, 1}, {std::log(2.0), std::log(3.0)});
  expectTensor(
      last("ReduceLogSumExp"), {2, 1},
      {std::log(std::exp(1) + std::exp(-2) + std::exp(3)), std::log(std::exp(4) + std::exp(5) + std::exp(-6))});
}
TEST(Reduce, AxesAndEdges) {
  Tensor x = f32({2, 3}, {1, -2, 3, 4, 5, -6});
  Attrs drop = {{"keepdims", int64_t(0)}};
  expectTensor(eval("ReduceSum", {x}, drop), {}, {5});
  expectTensor(eval("ReduceSum", {x}), {1, 1}, {5});
  expectTensor(eval("ReduceSum", {x, i64({0})}, drop), {3}, {5, 3, -3});
  expectTensor(eval("ReduceSum", {x, i64(Ints{})}, {{"noop_with_empty_axes", int64_t(1)}}), {2, 3}, numbers(x));
  expectTensor(eval("ReduceSumSquare", {x}, {{"noop_with_empty_axes", int64_t(1)}}), {2, 3}, {1, 4, 9, 16, 25, 36});
  expectTensor(eval("ReduceMean", {i64({4}, {1, 2, 2, 3})}, drop), {}, {2});
  expectTensor(eval("ReduceMax", {make(DType::kF32, {3}, {1, kNan, 2})}, drop), {}, {kNan});
  expectTensor(eval("ReduceMax", {f32({2, 0}, {}), i64({1})}, drop), {2}, {-kInf, -kInf});
  expectTensor(eval("ReduceSum", {f32({2, 0}, {}), i64({1})}, drop), {2}, {0, 0});
  expectTensor(eval("ReduceLogSumExp", {f32({2}, {1000, 1000})}, drop), {}, {1000 + std::log(2.0)}, 1e-4);
  expectTensor(eval("ReduceMin", {make(DType::kBool, {2}, {1, 0})}, drop), {}, {0});
  EXPECT_THAT(userError([&] { eval("ReduceSum", {x, i64({2})}); }), HasSubstr("axis 2 is outside [-2, 2)"));
  // The sum of a million tenths in float would be off in the fourth digit.
  Tensor many(DType::kF32, {1000000});
  for (int64_t i = 0; i < many.size(); i++) many.as<float>()[i] = 0.1f;
  EXPECT_FLOAT_EQ(eval("ReduceSum", {many}, drop).getDouble(0), 100000.0015f);
}
TEST(Reduce, ArgMaxAndMin) {
  Tensor x = f32({2, 3}, {1, 3, 3, 0, -1, 0});
  expectTensor(eval("ArgMax", {x}, {{"axis", int64_t(1)}}), {2, 1}, {1, 0});
  expectTensor(eval("ArgMax", {x}, {{"axis", int64_t(1)}, {"select_last_index", int64_t(1)}, {"keepdims", int64_t(0)}}),
               {2}, {2, 2});
  expectTensor(eval("ArgMin", {x}), {1, 3}, {1, 1, 1});
}
}  // namespace
}  // namespace rutter::ops::test
