#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/shapes.h"

namespace rutter::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<InputInfo> kBert{{"input_ids", {-1, -1}}, {"attention_mask", {-1, -1}}};
const std::vector<InputInfo> kDet{{"x", {-1, 3, -1, -1}}};
const std::vector<InputInfo> kStatic{{"images", {1, 3, 416, 416}}};

ShapePlan plan(const std::vector<InputInfo>& inputs, std::vector<std::string> args) {
  args.push_back("--onnx=m");
  return planShapes(inputs, makeOptions(CommandLine::parse(args)));
}
std::string error(const std::vector<InputInfo>& inputs, std::vector<std::string> args) {
  try {
    plan(inputs, std::move(args));
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(CliShapes, ShapesAloneMakeAProfile) {
  auto p = plan(kDet, {"--shapes=x:1x3x320x320"});
  EXPECT_EQ(p.profiles, (std::vector<RangeMap>{{{"x", {{1, 3, 320, 320}, {1, 3, 320, 320}, {1, 3, 320, 320}}}}}));
  EXPECT_EQ(p.run, (ShapeMap{{"x", {1, 3, 320, 320}}}));
  EXPECT_THAT(p.warnings, IsEmpty());
}

TEST(CliShapes, InputsOfNoRankTakeAnyShapeAndNeedOne) {
  const std::vector<InputInfo> open{{"x", {}, false}};
  EXPECT_EQ(plan(open, {"--shapes=x:5x6x7"}).run.at("x"), (Shape{5, 6, 7}));
  EXPECT_THAT(error(open, {}), HasSubstr("input 'x' has no shape in the model"));
}

TEST(CliShapes, OneStar) {
  auto p = plan(kBert, {"--shapes=*:1x128"});
  EXPECT_EQ(p.run.size(), 2u);
  EXPECT_EQ(plan(kBert, {"--shapes=*mask:1x7,input*:1x9"}).run.at("attention_mask"), (Shape{1, 7}));
  // A star that matches nothing, also where its two ends would overlap.
  EXPECT_THAT(error({{"aba", {-1}}}, {"--shapes=ab*ba:1"}), HasSubstr("is no input"));
  EXPECT_THAT(error(kBert, {"--shapes=*:1x1,input_ids:1x2"}), HasSubstr("gets two shapes"));
}

TEST(CliShapes, ProfilesWithRunShapesInside) {
  const std::vector<std::string> flags{"--minShapes=*:1x1", "--optShapes=*:1x128", "--maxShapes=*:8x512"};
  auto p = plan(kBert, flags);
  EXPECT_EQ(p.run.at("input_ids"), (Shape{1, 128}));  // opt
  auto with = flags;
  with.push_back("--shapes=*:4x64");
  EXPECT_EQ(plan(kBert, with).run.at("input_ids"), (Shape{4, 64}));
  EXPECT_EQ(plan(kBert, with).profiles[0].at("input_ids").max, (Shape{8, 512}));
  with.back() = "--shapes=*:9x64";
  EXPECT_THAT(error(kBert, with), HasSubstr("is 9x64, outside profile 0 (1x1 to 8x512)"));
  with.back() = "--useProfile=1";
  EXPECT_THAT(error(kBert, with), HasSubstr("there is 1 profile"));
}

TEST(CliShapes, MissingDynamicDimsBecomeOneWithAWarning) {
  auto p = plan(kDet, {});
  EXPECT_EQ(p.run.at("x"), (Shape{1, 3, 1, 1}));
  ASSERT_EQ(p.warnings.size(), 1u);
  EXPECT_THAT(p.warnings[0], HasSubstr("'x' (?x3x?x?)"));
  EXPECT_THAT(p.warnings[0], HasSubstr("--shapes=x:1x3x224x224"));
  // One that looks like another is asked for in the same shape.
  p = plan(kBert, {"--shapes=input_ids:2x40"});
  ASSERT_EQ(p.warnings.size(), 1u);
  EXPECT_THAT(p.warnings[0], HasSubstr("--shapes=input_ids:2x40,attention_mask:2x40"));
  // An input that the profile leaves out.
  EXPECT_EQ(plan(kBert, {"--minShapes=input_ids:1x1", "--optShapes=input_ids:1x8", "--maxShapes=input_ids:1x9"})
                .warnings.size(),
            1u);
}

TEST(CliShapes, TuningWithoutShapesShowsWhatWouldDo) {
  EXPECT_THAT(error(kDet, {"--tune"}), HasSubstr("--shapes=x:1x3x224x224"));
  EXPECT_THAT(
      error(kBert, {"--tune"}),
      HasSubstr("input_ids, attention_mask have none; for example --shapes=input_ids:1x128,attention_mask:1x128"));
  EXPECT_THAT(error({{"in:0", {-1, 8}}}, {"--tune"}), HasSubstr("--shapes='in:0':1x8"));
}

TEST(CliShapes, StaticModels) {
  auto p = plan(kStatic, {});
  EXPECT_EQ(p.profiles.size(), 1u);
  EXPECT_TRUE(p.profiles[0].empty());
  EXPECT_EQ(p.run.at("images"), (Shape{1, 3, 416, 416}));
  EXPECT_THAT(error(kStatic, {"--shapes=images:1x3x416x416"}), HasSubstr("the model is static (images:1x3x416x416)"));
  EXPECT_THAT(error(kStatic, {"--shapes=image:1"}), HasSubstr("nearest: images"));
}

TEST(CliShapes, Errors) {
  EXPECT_THAT(error(kDet, {"--shapes=y:1x3x1x1"}), HasSubstr("'y' is no input of the model; nearest: x"));
  EXPECT_THAT(error(kDet, {"--shapes=x:1x4x1x1"}), HasSubstr("'x' is ?x3x?x? in the model, 1x4x1x1 does not fit"));
  EXPECT_THAT(error(kDet, {"--shapes=x:1x3x1"}), HasSubstr("does not fit"));
  EXPECT_THAT(error(kDet, {"--minShapes=x:1x3", "--optShapes=x:1x3", "--maxShapes=x:1x3"}), HasSubstr("--minShapes"));
}

}  // namespace
}  // namespace rutter::cli
