#include <gtest/gtest.h>

#include "knobs/expression.h"
#include "knobs/resolve.h"
#include "knobs/route.h"
#include "knobs_test_registry.h"

namespace rutter::knobs {
namespace {

Route parse(std::string_view text) {
  return Route::parse(text, exampleKnobs());
}

TEST(Route, KeepsItsOrder) {
  EXPECT_EQ(parse("-unroll=2 -fuse=off  -tile=16").print(), "-unroll=2 -fuse=off -tile=16");
  EXPECT_FALSE(parse("-unroll=2 -fuse=off") == parse("-fuse=off -unroll=2"));
  EXPECT_EQ(parse("-c=007"), parse("   -c=7"));
  EXPECT_EQ(parse("-c=007").hash(), parse("-c=7").hash());
  EXPECT_NE(parse("-c=8").hash(), parse("-c=7").hash());
}

TEST(Route, EmptyIsTheDefault) {
  EXPECT_TRUE(parse("").isDefault());
  EXPECT_EQ(parse("").print(), "");
}

TEST(Route, ScopesAreDecodedAndEncodedAgain) {
  auto r = parse("-tile@a%20b%3D%7C%5B%5D%40%25/*=16");
  EXPECT_EQ(r.assignments()[0].scope, "a b=|[]@%/*");
  EXPECT_EQ(r.print(), "-tile@a%20b%3D%7C%5B%5D%40%25/*=16");
  EXPECT_EQ(parse(r.print()), r);
  EXPECT_EQ(parse("-tile=16 -tile@x=32 -tile@y=64").assignments().size(), 3u);
}

TEST(Route, LossyAssignments) {
  auto lossy = lossyAssignments(parse("-tile=16 -gemm:type@x=bf16 -gemm:type=f32"));
  ASSERT_EQ(lossy.size(), 1u);
  EXPECT_EQ(printAssignment(lossy[0], exampleKnobs()), "-gemm:type@x=bf16");
  EXPECT_EQ(lossyAssignments(Expression::parse("-gemm:type=[auto|bf16]", exampleKnobs())).size(), 1u);
  EXPECT_TRUE(lossyAssignments(parse("")).empty());
}

const IntKnob kTile{exampleId("-tile")}, kDepth{exampleId("-gemm:depth")};
const BoolKnob kPack{exampleId("-gemm:pack")};
const EnumKnob kType{exampleId("-gemm:type")};

TEST(LayerKnobs, TypedReadsAndDefaults) {
  auto none = parse("");
  LayerKnobs k(none, {"conv1"});
  EXPECT_EQ(k.get(kTile), 32);
  EXPECT_EQ(k.get(kDepth), std::nullopt);
  EXPECT_EQ(k.getOr(kDepth, 3), 3);
  EXPECT_EQ(k.get(kPack), std::nullopt);
  EXPECT_EQ(k.get(kType), "auto");
  auto route = parse("-tile=64 -gemm:depth=-2 -gemm:pack=off -gemm:type=f32");
  LayerKnobs s(route, {"conv1"});
  EXPECT_EQ(s.get(kTile), 64);
  EXPECT_EQ(s.get(kDepth), -2);
  EXPECT_EQ(s.getOr(kPack, true), false);
  EXPECT_EQ(s.get(kType), "f32");
}

TEST(LayerKnobs, ReadingAHandleOfAnotherDomainIsABug) {
  auto none = parse("");
  LayerKnobs k(none, {});
  EXPECT_THROW(k.get(IntKnob{kPack.id}), InternalError);
  EXPECT_THROW(k.get(BoolKnob{kType.id}), InternalError);
}

TEST(LayerKnobs, ScopedWinsOverUnscopedAndLaterOverEarlier) {
  auto r = parse("-tile@conv*=16 -tile@*1=64 -tile=32");
  EXPECT_EQ(LayerKnobs(r, {"conv1"}).get(kTile), 64);
  EXPECT_EQ(LayerKnobs(r, {"conv2"}).get(kTile), 16);
  EXPECT_EQ(LayerKnobs(r, {"pool"}).get(kTile), 32);
  EXPECT_EQ(LayerKnobs::modelWide(r).get(kTile), 32);
  auto scopedOnly = parse("-tile@*=16");
  EXPECT_EQ(LayerKnobs::modelWide(scopedOnly).get(kTile), 32);
}

TEST(LayerKnobs, InAFusedLayerTheAnchorDecidesElseTheLastMatch) {
  auto r = parse("-tile@conv=16 -tile@relu=64");
  EXPECT_EQ(LayerKnobs(r, {"conv", "relu"}, 0).get(kTile), 16);
  EXPECT_EQ(LayerKnobs(r, {"conv", "relu"}, 1).get(kTile), 64);
  EXPECT_EQ(LayerKnobs(r, {"other", "conv", "relu"}, 0).get(kTile), 64);
  EXPECT_EQ(LayerKnobs(r, {"other", "relu", "conv"}, 0).get(kTile), 16);
}

TEST(LayerKnobs, ExplicitIsAWish) {
  auto r = parse("-gemm:depth=2 -gemm:depth@a=auto -tile=32");
  EXPECT_TRUE(LayerKnobs(r, {"b"}).explicitly(kDepth));
  EXPECT_FALSE(LayerKnobs(r, {"a"}).explicitly(kDepth));
  EXPECT_EQ(LayerKnobs(r, {"a"}).get(kDepth), std::nullopt);
  EXPECT_TRUE(LayerKnobs(r, {"b"}).explicitly(kTile));
  EXPECT_FALSE(LayerKnobs(r, {"b"}).explicitly(kPack));
}

TEST(LayerKnobs, RecordsReadsAndRefusals) {
  auto r = parse("-tile=64");
  LayerKnobs k(r, {"conv"});
  EXPECT_FALSE(k.explicitly(kPack));
  EXPECT_TRUE(k.reads().empty());
  k.get(kDepth);
  k.get(kTile);
  k.get(kTile);
  EXPECT_EQ(k.reads(), (std::set<KnobId>{kTile.id, kDepth.id}));
  k.refuse(kTile, "only 8 columns");
  k.refuse(kTile, "only 8 columns");
  k.refuse(kDepth, "not a wish, so not refused");
  ASSERT_EQ(k.refusals().size(), 1u);
  EXPECT_EQ(k.refusals()[0].value, "64");
  EXPECT_EQ(k.refusals()[0].reason, "only 8 columns");
}

TEST(UnmatchedScopes, NameTheClosestLayers) {
  auto r = parse("-tile@conv_1=16 -tile@conv*=64 -fuse=on");
  std::vector<std::string> names{"conv1", "pool", "conv2"};
  auto u = unmatchedScopes(r, names);
  ASSERT_EQ(u.size(), 1u);
  EXPECT_EQ(u[0].assignment.scope, "conv_1");
  EXPECT_EQ(u[0].closest.front(), "conv1");
  EXPECT_EQ(describe(u[0], exampleKnobs()),
            "the scope of '-tile@conv_1=16' (column 1) matches no layer; closest: conv1, conv2 or pool");
  // Names as a route has to write them.
  names = {"Conv@1"};
  EXPECT_EQ(unmatchedScopes(parse("-tile@Conv_1=16"), names)[0].closest.front(), "Conv%401");
}

}  // namespace
}  // namespace rutter::knobs
