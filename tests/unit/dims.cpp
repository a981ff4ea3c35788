// Expressions of extents.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/dim.h"

using rutter::ir::Dim;

namespace {
Dim h() {
  return Dim::symbol("H");
}
}  // namespace

TEST(Dims, FloorDivisionIsCanonical) {
  EXPECT_EQ(floorDiv(h() * Dim(32), Dim(32)).text(), "H");
  EXPECT_EQ(floorDiv(h() * Dim(4) + Dim(7), Dim(2)), h() * Dim(2) + Dim(3));
  EXPECT_EQ(Dim(1) + floorDiv(h() - Dim(1), Dim(2)), floorDiv(h() + Dim(1), Dim(2)));
}
TEST(Dims, NestedDivisionsMerge) {
  // A convolution of stride 2 after another.
  auto half = [](const Dim& d) { return Dim(1) + floorDiv(d - Dim(1), Dim(2)); };
  Dim quarter = half(half(h()));
  EXPECT_EQ(quarter, floorDiv(h() + Dim(3), Dim(4)));
  for (int64_t v : {1, 2, 3, 4, 5, 31, 32, 33}) {
    int64_t once = 1 + (v - 1) / 2;
    EXPECT_EQ(quarter.evaluate({{"H", v}}), 1 + (once - 1) / 2) << v;
  }
}
TEST(Dim, TheLeastIntegerByMinusOneIsNoCrash) {
  const Dim least(INT64_MIN);
  EXPECT_FALSE(exactDiv(least, Dim(-1)));
  EXPECT_THROW(floorDiv(least, Dim(-1)), rutter::UserError);
  EXPECT_EQ(floorDiv(Dim(INT64_MAX), Dim(-1)).value(), -INT64_MAX);
  EXPECT_EQ(exactDiv(Dim(6), Dim(-1))->value(), -6);
}
TEST(Dims, FloorDivisionAgreesWithIntegers) {
  Dim x = Dim::symbol("x"), y = Dim::symbol("y");
  for (int64_t c : {1, 2, 3, 7})
    for (int64_t k : {-9, -4, -1, 0, 1, 5})
      for (int64_t d : {1, 2, 5}) {
        Dim e = floorDiv(x * Dim(3) + y + floorDiv(x + Dim(k), Dim(d)) * Dim(2) + Dim(k), Dim(c));
        Dim f = floorDiv(floorDiv(x + Dim(k), Dim(d)) + Dim(k), Dim(c));
        for (int64_t v : {-5, 0, 1, 6, 11}) {
          auto floor = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
          int64_t inner = floor(v + k, d);
          EXPECT_EQ(e.evaluate({{"x", v}, {"y", 2}}), floor(v * 3 + 2 + inner * 2 + k, c));
          EXPECT_EQ(f.evaluate({{"x", v}}), floor(inner + k, c));
        }
      }
}
