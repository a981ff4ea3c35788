#include "tuner/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace rutter::tuner {
namespace {

using ir::DType;
using ir::Tensor;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

Tensor f32(std::vector<float> v) {
  return Tensor::ofFloats({int64_t(v.size())}, v);
}
Tensor of(DType t, std::vector<double> v) {
  Tensor x(t, {int64_t(v.size())});
  for (size_t i = 0; i < v.size(); i++) x.setDouble(int64_t(i), v[i]);
  return x;
}
double lossOf(LossKind k, const Tensor& a, const Tensor& r, double atol = 1e-5, double rtol = 1e-5) {
  return loss({k, 0, atol, rtol}, a, r);
}
constexpr LossKind kAll[] = {LossKind::kL0, LossKind::kL1, LossKind::kL2, LossKind::kLInf, LossKind::kCos};

TEST(Accuracy, LossesByHand) {
  const Tensor r = f32({1, 2, 3, 4}), a = f32({1, 2, 3.5, 2});
  EXPECT_DOUBLE_EQ(lossOf(LossKind::kL0, a, r), 0.5);
  EXPECT_DOUBLE_EQ(lossOf(LossKind::kL1, a, r), 2.5 / 4);
  EXPECT_DOUBLE_EQ(lossOf(LossKind::kL2, a, r), 4.25 / 4);
  EXPECT_DOUBLE_EQ(lossOf(LossKind::kLInf, a, r), 2);
  const double dot = 1 + 4 + 10.5 + 8, aa = 1 + 4 + 12.25 + 4, rr = 30;
  EXPECT_NEAR(lossOf(LossKind::kCos, a, r), 1 - dot / std::sqrt(aa * rr), 1e-15);
}

TEST(Accuracy, L0CountsOnlyBeyondTheTolerance) {
  // NumPy's allclose: |a - r| > atol + rtol |r| is wrong, equality is right.
  EXPECT_EQ(lossOf(LossKind::kL0, f32({1.5f}), f32({1}), 0.25, 0.25), 0);
  EXPECT_EQ(lossOf(LossKind::kL0, f32({std::nextafter(1.5f, 2.f)}), f32({1}), 0.25, 0.25), 1);
  EXPECT_EQ(lossOf(LossKind::kL0, f32({-1.5f}), f32({-1}), 0.25, 0.25), 0);
}

TEST(Accuracy, NonFiniteOnOneSideIsInfiniteInEveryAlgorithm) {
  for (LossKind k : kAll) {
    EXPECT_EQ(lossOf(k, f32({1, kNan}), f32({1, 2})), kInf) << lossFlag(k);
    EXPECT_EQ(lossOf(k, f32({1, 2}), f32({1, kNan})), kInf) << lossFlag(k);
    EXPECT_EQ(lossOf(k, f32({1, kInf}), f32({1, 2})), kInf) << lossFlag(k);
    EXPECT_EQ(lossOf(k, f32({1, -kInf}), f32({1, kInf})), kInf) << lossFlag(k);
    EXPECT_EQ(lossOf(k, f32({1, kNan}), f32({1, kInf})), kInf) << lossFlag(k);
    EXPECT_EQ(lossOf(k, f32({1, kNan, kInf, -kInf}), f32({1, kNan, kInf, -kInf})), 0) << lossFlag(k);
  }
}

TEST(Accuracy, ZeroVectorsAndRoundingUnderCosine) {
  EXPECT_EQ(lossOf(LossKind::kCos, f32({0, 0}), f32({0, 0})), 0);
  EXPECT_EQ(lossOf(LossKind::kCos, f32({0, 0}), f32({0, 1})), 1);
  EXPECT_EQ(lossOf(LossKind::kCos, f32({1, 0}), f32({0, 0})), 1);
  EXPECT_NEAR(lossOf(LossKind::kCos, f32({1e-30f, 1e-30f}), f32({1e-30f, 1e-30f})), 0, 1e-15);  // tiny, yet equal
  EXPECT_NEAR(lossOf(LossKind::kCos, of(DType::kF64, {1e300, 1e300}), of(DType::kF64, {1e300, 1e300})), 0, 1e-15);
  for (int n = 1; n < 50; n++) {  // never below zero by rounding
    std::vector<float> v;
    for (int i = 0; i < n; i++) v.push_back(0.1f * float(i + 1));
    EXPECT_GE(lossOf(LossKind::kCos, f32(v), f32(v)), 0);
  }
  EXPECT_NEAR(lossOf(LossKind::kCos, f32({-1, -2}), f32({1, 2})), 2, 1e-15);
}

TEST(Accuracy, EveryTypeIsCompared) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kU8, DType::kI16, DType::kU16,
                  DType::kI32, DType::kU32, DType::kI64, DType::kU64, DType::kBool}) {
    EXPECT_TRUE(comparable(t));
    for (LossKind k : kAll) {
      EXPECT_EQ(lossOf(k, of(t, {1, 0, 1}), of(t, {1, 0, 1})), 0) << ir::dtypeName(t) << lossFlag(k);
      EXPECT_GT(lossOf(k, of(t, {1, 0, 1}), of(t, {1, 1, 1})), 0) << ir::dtypeName(t) << lossFlag(k);
    }
  }
  EXPECT_FALSE(comparable(DType::kString));
}

TEST(Accuracy, Float8) {
  auto f8 = [](std::vector<uint8_t> bytes) {
    Tensor t(DType::kF8E4M3, {int64_t(bytes.size())});
    std::memcpy(t.mutableData(), bytes.data(), bytes.size());
    return t;
  };
  // 0x38 = 1, 0x40 = 2, 0xb8 = -1, 0x7e = 448, 0x01 = 2^-9, 0x7f = NaN
  EXPECT_EQ(lossOf(LossKind::kLInf, f8({0x40, 0xb8}), f8({0x38, 0x38})), 2);
  EXPECT_EQ(lossOf(LossKind::kLInf, f8({0x7e}), f8({0x38})), 447);
  EXPECT_EQ(lossOf(LossKind::kLInf, f8({0x01}), f8({0x00})), std::ldexp(1.0, -9));
  EXPECT_EQ(lossOf(LossKind::kLInf, f8({0x7f}), f8({0x38})), kInf);
  EXPECT_EQ(lossOf(LossKind::kLInf, f8({0x7f}), f8({0xff})), 0);
}

TEST(Accuracy, WideIntegersDifferExactly) {
  Tensor a(DType::kI64, {1}), r(DType::kI64, {1});
  a.setInt(0, (int64_t(1) << 62) + 1);
  r.setInt(0, int64_t(1) << 62);  // equal as doubles
  EXPECT_EQ(lossOf(LossKind::kLInf, a, r), 1);
  a.setInt(0, std::numeric_limits<int64_t>::min());
  r.setInt(0, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(lossOf(LossKind::kLInf, a, r), std::pow(2.0, 64));
}

TEST(Accuracy, ShapesAndEmptyOutputs) {
  EXPECT_EQ(lossOf(LossKind::kL1, f32({}), f32({})), 0);
  EXPECT_EQ(lossOf(LossKind::kL1, f32({1}), f32({})), kInf);
  EXPECT_EQ(lossOf(LossKind::kL1, f32({1, 2}), f32({1, 2}).reshaped({2, 1})), kInf);
}

TEST(Accuracy, LossEqualToTheThresholdRejects) {
  LossTable t;
  t.add("y", 0.25);
  t.add("y", 0.125);  // the largest over all sets counts, not the last
  t.add("z", 0);
  EXPECT_EQ(t.losses().at("y"), 0.25);
  EXPECT_EQ(t.rejectedBy(0.25), "y");
  EXPECT_EQ(t.rejectedBy(std::nextafter(0.25, 1.0)), std::nullopt);
}

TEST(Accuracy, Words) {
  for (LossKind k : kAll) EXPECT_EQ(parseLoss(lossFlag(k)), k);
  EXPECT_THROW(parseLoss("linf"), UserError);
  EXPECT_STREQ(lossHeader(LossKind::kCos), "Cosine");
}

TEST(Guard, AllowsASmallMultipleOfTheDefaultsOwnError) {
  const Tensor o = of(DType::kF64, {100, 0}), d = of(DType::kF64, {100.001, 0});
  // norm: 4 * 1e-3 + 1e-6 * 100 = 0.0041
  EXPECT_TRUE(guard(of(DType::kF64, {100.00409, 0}), d, o).ok);
  EXPECT_FALSE(guard(of(DType::kF64, {100.00411, 0}), d, o).ok);
  EXPECT_TRUE(guard(of(DType::kF64, {100, 0.00409}), d, o).ok);
  // an exact default leaves the floor alone
  EXPECT_TRUE(guard(of(DType::kF64, {100.00009, 0}), o, o).ok);
  EXPECT_FALSE(guard(of(DType::kF64, {100.00011, 0}), o, o).ok);
}

TEST(Guard, LargestElementIsBoundedApart) {
  // Many small errors of the default: the norm has room for one large error, the maximum does not.
  std::vector<double> ov(10000, 1), dv(10000, 1 + 1e-4), yv = ov;
  const Tensor o = of(DType::kF64, ov), d = of(DType::kF64, dv);
  yv[7] = 1 + 8e-4 + 0.9e-5;
  EXPECT_TRUE(guard(of(DType::kF64, yv), d, o).ok);
  yv[7] = 1 + 8e-4 + 1.1e-5;
  const auto v = guard(of(DType::kF64, yv), d, o);
  EXPECT_FALSE(v.ok);
  EXPECT_NE(v.reason.find("largest"), std::string::npos);
}

TEST(Guard, NonFiniteIntegersStrings) {
  EXPECT_FALSE(guard(f32({1, kNan}), f32({1, 2}), f32({1, 2})).ok);
  EXPECT_TRUE(guard(f32({1, kNan}), f32({1, kNan}), f32({1, kNan})).ok);
  EXPECT_FALSE(guard(f32({1}), f32({1, 2}), f32({1, 2})).ok);
  EXPECT_TRUE(guard(of(DType::kI64, {5}), of(DType::kI64, {5}), of(DType::kI64, {5})).ok);
  EXPECT_FALSE(guard(of(DType::kI64, {6}), of(DType::kI64, {5}), of(DType::kI64, {5})).ok);
  const Tensor s = Tensor::ofStrings({1}, {"a"}), u = Tensor::ofStrings({1}, {"b"});
  EXPECT_TRUE(guard(s, s, s).ok);
  EXPECT_FALSE(guard(u, s, s).ok);
}

TEST(Guard, TheDefaultItselfMustMeetTheOracle) {
  const Tensor o = of(DType::kF64, {1000});
  EXPECT_TRUE(guardDefault(of(DType::kF64, {1000.0999}), o).ok);
  EXPECT_FALSE(guardDefault(of(DType::kF64, {1000.1001}), o).ok);
  EXPECT_FALSE(guardDefault(f32({kNan}), f32({1})).ok);
  EXPECT_TRUE(guardDefault(f32({0}), f32({0})).ok);
}

TEST(Guard, BitsAndFiniteness) {
  EXPECT_TRUE(bitEqual(f32({1, kNan}), f32({1, kNan})));
  EXPECT_FALSE(bitEqual(f32({0.f}), f32({-0.f})));
  EXPECT_FALSE(allFinite(f32({1, kInf})));
  EXPECT_TRUE(allFinite(of(DType::kI32, {1})));
}

}  // namespace
}  // namespace rutter::tuner
