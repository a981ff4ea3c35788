#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "knobs/expression.h"
#include "knobs_test_registry.h"

namespace rutter::knobs {
namespace {

std::vector<std::string> fastList(const Expression& e) {
  std::vector<std::string> out;
  for (size_t i = 0; i < e.fastCount(); i++) out.push_back(e.fast(i).print());
  return out;
}
std::vector<std::string> fullList(const Expression& e) {
  std::vector<std::string> out;
  for (uint64_t i = 0; i < e.fullCount().small().value(); i++) out.push_back(e.full(i).print());
  return out;
}

// The worked examples of the specification, section 3.
const char* const kExample = "-fuse=[on|off] -tile=[16|32|64] -unroll=[1|2]";

TEST(Expression, FastOrder) {
  EXPECT_EQ(fastList(Expression::parse(kExample, exampleKnobs())),
            (std::vector<std::string>{"-fuse=on -tile=32 -unroll=1", "-fuse=on -tile=32 -unroll=2",
                                      "-fuse=on -tile=16 -unroll=1", "-fuse=on -tile=64 -unroll=1",
                                      "-fuse=off -tile=32 -unroll=1"}));
}

TEST(Expression, FullOrder) {
  EXPECT_EQ(fullList(Expression::parse(kExample, exampleKnobs())),
            (std::vector<std::string>{
                "-fuse=on -tile=16 -unroll=1", "-fuse=on -tile=16 -unroll=2", "-fuse=on -tile=32 -unroll=1",
                "-fuse=on -tile=32 -unroll=2", "-fuse=on -tile=64 -unroll=1", "-fuse=on -tile=64 -unroll=2",
                "-fuse=off -tile=16 -unroll=1", "-fuse=off -tile=16 -unroll=2", "-fuse=off -tile=32 -unroll=1",
                "-fuse=off -tile=32 -unroll=2", "-fuse=off -tile=64 -unroll=1", "-fuse=off -tile=64 -unroll=2"}));
}

TEST(Expression, DefaultOutsideOrInsideTheListAndFixedTokens) {
  auto e = Expression::parse("-a=[x|y] -b=[0|1|2] -c=7", exampleKnobs());
  EXPECT_EQ(fastList(e),
            (std::vector<std::string>{"-a=y -b=2 -c=7", "-a=y -b=0 -c=7", "-a=y -b=1 -c=7", "-a=x -b=2 -c=7"}));
  EXPECT_EQ(fullList(e).size(), 6u);
  // The baseline has the declared default although the list does not.
  EXPECT_EQ(fastList(Expression::parse("-tile=[16|64]", exampleKnobs())),
            (std::vector<std::string>{"-tile=32", "-tile=16", "-tile=64"}));
  // A list of one: full uses it, fast counts it only if it is not the default.
  EXPECT_EQ(fastList(Expression::parse("-tile=[32]", exampleKnobs())), (std::vector<std::string>{"-tile=32"}));
  EXPECT_EQ(fastList(Expression::parse("-tile=[16]", exampleKnobs())),
            (std::vector<std::string>{"-tile=32", "-tile=16"}));
  EXPECT_EQ(fullList(Expression::parse("-tile=[16]", exampleKnobs())), (std::vector<std::string>{"-tile=16"}));
  EXPECT_EQ(fastList(Expression::parse("-tile=16", exampleKnobs())), (std::vector<std::string>{"-tile=16"}));
}

TEST(Expression, BlanksEmptyAlternativesAndUnboundedLists) {
  auto e = Expression::parse("\t-c=[ 1 || 2\t|\n03 ] \n -fuse=on ", exampleKnobs());
  EXPECT_EQ(fullList(e), (std::vector<std::string>{"-c=1 -fuse=on", "-c=2 -fuse=on", "-c=3 -fuse=on"}));
}

TEST(Expression, ScopedTokensAreTheirOwn) {
  auto e = Expression::parse("-tile=[16|32] -tile@conv*=[32|64]", exampleKnobs());
  EXPECT_EQ(fastList(e), (std::vector<std::string>{"-tile=32 -tile@conv*=32", "-tile=32 -tile@conv*=64",
                                                   "-tile=16 -tile@conv*=32"}));
}

std::vector<std::pair<size_t, std::string>> phaseTwoList(const Expression& e, std::vector<Positive> p) {
  PhaseTwo two(e, p);
  std::vector<std::pair<size_t, std::string>> out;
  while (auto item = two.next()) out.emplace_back(item->index, item->route.print());
  EXPECT_EQ(BigCount(out.size()), two.count());
  return out;
}

TEST(Mixed, WorkedExample) {
  auto e = Expression::parse(kExample, exampleKnobs());
  // Phase-1 times 10, 10.4, 9.1, 10.2, 9.5.
  using L = std::vector<std::pair<size_t, std::string>>;
  EXPECT_EQ(phaseTwoList(e, {{2, 10 / 9.1}, {4, 10 / 9.5}}),
            (L{{5, "-fuse=off -tile=16 -unroll=1"}, {6, "-fuse=off -tile=64 -unroll=1"}}));
}

TEST(Mixed, NeedsTwoPositiveKnobsNotTwoValues) {
  auto e = Expression::parse(kExample, exampleKnobs());
  EXPECT_FALSE(PhaseTwo(e, std::vector<Positive>{}).runs());
  EXPECT_FALSE(PhaseTwo(e, std::vector<Positive>{{2, 1.1}, {3, 1.2}}).runs());
  EXPECT_FALSE(PhaseTwo(e, std::vector<Positive>{{0, 1.1}, {3, 1.2}}).runs());
  EXPECT_TRUE(PhaseTwo(e, std::vector<Positive>{{1, 1.1}, {3, 1.2}}).runs());
  EXPECT_TRUE(phaseTwoList(e, {{2, 1.1}, {3, 1.2}}).empty());
}

TEST(Mixed, CountsWithDefaultsOutsideTheLists) {
  // Default of -tile is not listed: of phase 2, off/… with tile 32 cannot occur, on/16 and on/64 are known.
  auto one = Expression::parse("-fuse=[on|off] -tile=[16|64]", exampleKnobs());
  EXPECT_EQ(phaseTwoList(one, {{1, 1.1}, {3, 1.1}}).size(), 2u);
  auto both = Expression::parse("-b=[0|1] -tile=[16|64]", exampleKnobs());
  EXPECT_EQ(phaseTwoList(both, {{1, 1.1}, {3, 1.1}}).size(), 4u);
}

TEST(Mixed, AtMostTenKnobsThoseWithTheLargestGain) {
  std::vector<KnobSpec> specs;
  std::string text;
  for (int i = 0; i < 12; i++) {
    auto name = "k" + std::to_string(i);
    specs.push_back({Domain::kInts, "", name, "0|1|2", 0, 0, "0", Target::kAny, "exact", "K."});
    text += " -" + name + "=[0|1|2]";
  }
  Registry r(specs);
  auto e = Expression::parse(text, r);
  std::vector<Positive> p;
  for (size_t i = 1; i < e.fastCount(); i++) {
    auto v = *e.variation(i);
    // Knobs 3 and 7 gain least; the second value of each knob is its better one.
    p.push_back({i, (v.token == 3 ? 1.02 : v.token == 7 ? 1.01 : 1.1) + (v.value == 2 ? 0.001 : 0)});
  }
  PhaseTwo two(e, p);
  EXPECT_EQ(two.varied(), (std::vector<size_t>{0, 1, 2, 4, 5, 6, 8, 9, 10, 11}));
  EXPECT_EQ(two.leftOut(), (std::vector<size_t>{3, 7}));
  EXPECT_EQ(two.count().print(), std::to_string(59049 - 21));
  auto first = two.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->index, e.fastCount());
  EXPECT_EQ(first->route.assignments()[3].value, "0");
  EXPECT_EQ(e.mixedBound().print(), "59049");
}

TEST(Expression, CountsAreExactForAnySize) {
  std::vector<KnobSpec> specs;
  std::string text;
  for (int i = 0; i < 100; i++) {
    auto name = "k" + std::to_string(i);
    specs.push_back({Domain::kInts, "", name, "0|1|2", 0, 0, "0", Target::kAny, "exact", "K."});
    text += " -" + name + "=[0|1|2]";
  }
  Registry r(specs);
  auto e = Expression::parse(text, r);
  EXPECT_EQ(e.fullCount().print(), "515377520732011331036461129765621272702107522001");  // 3^100
  EXPECT_FALSE(e.fullCount().small());
  // Index 2^64 - 1 is far inside and needs no enumeration: its last digit in base 3 is 0.
  auto route = e.full(UINT64_MAX);
  EXPECT_EQ(route.assignments().back().value, "0");
  EXPECT_EQ(route.assignments()[98].value, "2");
}

TEST(BigCount, Arithmetic) {
  BigCount n = UINT64_MAX;
  EXPECT_EQ(n.print(), "18446744073709551615");
  EXPECT_EQ(n.small(), UINT64_MAX);
  n *= 10;
  EXPECT_EQ(n.print(), "184467440737095516150");
  EXPECT_FALSE(n.small());
  n -= UINT64_MAX;
  EXPECT_EQ(n.print(), "166020696663385964535");
  EXPECT_TRUE(BigCount(5) < n);
  EXPECT_FALSE(n < n);
  BigCount zero = 7;
  zero -= 7;
  EXPECT_EQ(zero.print(), "0");
  EXPECT_EQ(zero, BigCount());
  BigCount billion = 1'000'000'000;
  billion -= 1;
  EXPECT_EQ(billion.print(), "999999999");
  EXPECT_THROW(zero -= 1, InternalError);
}

class ExpressionFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    path_ = testing::TempDir() + "rutter_expr_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }
  void TearDown() override { std::remove(path_.c_str()); }
  std::string path_;
};

TEST_F(ExpressionFile, JoinsLinesAndDropsComments) {
  EXPECT_EQ(readExpressionFile(write("# tiles\n-tile=[16|32]\r\n-fuse=on # keep\n\n-c=1")),
            " -tile=[16|32] -fuse=on   -c=1");
}
TEST_F(ExpressionFile, EmptyFileIsEmptyInput) {
  EXPECT_EQ(readExpressionFile(write("")), "");
  try {
    Expression::parse(readExpressionFile(path_), exampleKnobs());
    FAIL();
  } catch (const RouteError& e) {
    EXPECT_EQ(e.kind, RouteErrorKind::kEmptyInput);
  }
}
TEST_F(ExpressionFile, UnreadableIsAnError) {
  EXPECT_THROW(readExpressionFile("/nonexistent/file"), UserError);
  EXPECT_THROW(readExpressionFile(testing::TempDir()), UserError);
}

}  // namespace
}  // namespace rutter::knobs
