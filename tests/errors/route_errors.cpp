// Every kind of error in a route or an expression: its kind, its column, and what it proposes instead.
#include <gtest/gtest.h>

#include "knobs/expression.h"
#include "unit/knobs_test_registry.h"

namespace rutter::knobs {
namespace {

using Kind = RouteErrorKind;

struct Case {
  const char* text;
  Kind kind;
  size_t column;
  const char* mentions;  // part of the message
};
void PrintTo(const Case& c, std::ostream* os) {
  *os << '"' << c.text << '"';
}

class ExpressionErrors : public testing::TestWithParam<Case> {};

TEST_P(ExpressionErrors, KindColumnAndAdvice) {
  const Case& c = GetParam();
  try {
    Expression::parse(c.text, exampleKnobs());
    FAIL() << "accepted";
  } catch (const RouteError& e) {
    std::string what = e.what();
    EXPECT_EQ(toString(e.kind), toString(c.kind)) << what;
    EXPECT_EQ(e.column, c.column) << what;
    EXPECT_NE(what.find(c.mentions), std::string::npos) << what;
    EXPECT_NE(what.find(toString(c.kind)), std::string::npos) << what;
    EXPECT_NE(what.find("column " + std::to_string(c.column)), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    if (!e.token.empty()) {
      EXPECT_NE(std::string_view(c.text).find(e.token), std::string_view::npos) << e.token;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Route, ExpressionErrors,
    testing::Values(
        Case{"", Kind::kEmptyInput, 1, "-gemm:tile_m=[8|12]"},
        Case{" \t\n ", Kind::kNoExpressions, 1, "-gemm:tile_m=[8|12]"},
        Case{"-tile=16 -fuse=[on|off", Kind::kUnbalancedBracket, 16, "never closed"},
        Case{"-tile=16] -fuse=on", Kind::kUnbalancedBracket, 9, "closes no ["},
        Case{"] -tile=16", Kind::kUnbalancedBracket, 1, "closes no ["},
        // Cutting comes before the checks of any token.
        Case{"-nosuch=1 -fuse=[on", Kind::kUnbalancedBracket, 17, "never closed"},
        Case{"-fuse=on -tile", Kind::kNoEquals, 10, "write -knob=value"},
        Case{"-fuse=on -tiel=16", Kind::kUnknownKnob, 10, "nearest: -tile"},
        Case{"tile=16", Kind::kUnknownKnob, 1, "nearest: -tile"},
        Case{"-Tile=16", Kind::kUnknownKnob, 1, "nearest: -tile"}, Case{"=16", Kind::kUnknownKnob, 1, "nearest:"},
        Case{"-tile@=16", Kind::kBadScope, 1, "nothing follows @"}, Case{"-tile@a%2=16", Kind::kBadScope, 1, "%25"},
        Case{"-tile@a%zz=16", Kind::kBadScope, 1, "%25"}, Case{"-tile@a@b=16", Kind::kBadScope, 1, "%40"},
        Case{"-tile@a|b=16", Kind::kBadScope, 1, "%7C"}, Case{"-tile@[ab]=16", Kind::kBadScope, 1, "%5B"},
        Case{"-fuse=on -tile=1[16|32]", Kind::kTextBeforeBracket, 10, "'1' stands before"},
        Case{"-tile=[16|32]x", Kind::kTextAfterBracket, 1, "'x' stands after"},
        Case{"-tile=[16|[32]]", Kind::kTextAfterBracket, 1, "']' stands after"},
        Case{"-tile=[16][32]", Kind::kTextAfterBracket, 1, "stands after"},
        Case{"-c=[0|1|...|9]", Kind::kOpenRange, 1, "list the values"},
        Case{"-tile=[16|...]", Kind::kOpenRange, 1, "list the values"},
        Case{"-tile=[]", Kind::kEmptyList, 1, "16, 32 or 64"},
        Case{"-tile=[ | \t| ]", Kind::kEmptyList, 1, "16, 32 or 64"},
        Case{"-tile=[16|32|16]", Kind::kDuplicateValue, 1, "16 is listed twice"},
        Case{"-c=[7|07]", Kind::kDuplicateValue, 1, "07 is listed twice"},
        Case{"-c=int32_t", Kind::kTypeWord, 1, "an integer from 0 to 100"},
        Case{"-c=[1|int32_t]", Kind::kTypeWord, 1, "an integer from 0 to 100"},
        Case{"-fuse=on  -tile=30", Kind::kInvalidValue, 11, "16, 32 or 64; nearest: 32"},
        Case{"-tile=[16|60]", Kind::kInvalidValue, 1, "nearest: 64"},
        Case{"-fuse=true", Kind::kInvalidValue, 1, "on or off"}, Case{"-fuse=", Kind::kInvalidValue, 1, "on or off"},
        Case{"-fuse=On", Kind::kInvalidValue, 1, "nearest: on"},
        Case{"-a=x=y", Kind::kInvalidValue, 1, "'x=y' is not allowed"},
        Case{"-c=101", Kind::kInvalidValue, 1, "an integer from 0 to 100"},
        Case{"-c=7x", Kind::kInvalidValue, 1, "an integer from 0 to 100"},
        Case{"-gemm:depth=5", Kind::kInvalidValue, 1, "auto or an integer from -4 to 4"},
        Case{"-tile=16|32", Kind::kInvalidValue, 1, "-tile=[16|32]"},
        Case{"-tile=16 -fuse=on -tile=[32]", Kind::kDuplicateKnob, 19, "columns 1 and 19"},
        Case{"-tile@a%2A=16 -tile@a*=32", Kind::kDuplicateKnob, 15, "columns 1 and 15"},
        // Left to right: the first token's error is the one reported.
        Case{"-tile=17 -nosuch=1", Kind::kInvalidValue, 1, "nearest: 16"}));

TEST(RouteErrors, AListIsNoRoute) {
  try {
    Route::parse("-fuse=on -tile=[16|32]", exampleKnobs());
    FAIL();
  } catch (const RouteError& e) {
    EXPECT_EQ(e.kind, Kind::kInvalidValue);
    EXPECT_EQ(e.column, 10u);
    EXPECT_NE(std::string(e.what()).find("--tuneBuildRoutes"), std::string::npos);
  }
}

TEST(RouteErrors, LongAndBinaryInputGivesOneShortLine) {
  std::string text = "-" + std::string(1 << 20, 'x') + "\x01=1";
  try {
    Route::parse(text, exampleKnobs());
    FAIL();
  } catch (const RouteError& e) {
    EXPECT_EQ(e.kind, Kind::kUnknownKnob);
    EXPECT_LT(std::string(e.what()).size(), 1000u);
  }
}

}  // namespace
}  // namespace rutter::knobs
