#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "knobs/registry.h"
#include "knobs/route.h"
#include "knobs_test_registry.h"

namespace rutter::knobs {
namespace {

TEST(Text, Globs) {
  EXPECT_TRUE(globMatch("conv?_*", "conv1_relu"));
  EXPECT_TRUE(globMatch("*", ""));
  EXPECT_TRUE(globMatch("*a*b", "xaxbxb"));
  EXPECT_FALSE(globMatch("conv", "conv1"));
  EXPECT_FALSE(globMatch("Conv*", "conv1"));
  EXPECT_FALSE(globMatch("?", ""));
  EXPECT_FALSE(globMatch("*a*b", "xbxa"));
}

TEST(Text, EditDistance) {
  EXPECT_EQ(editDistance("tile", "tile"), 0u);
  EXPECT_EQ(editDistance("Tile", "tile"), 1u);
  EXPECT_EQ(editDistance("tiel", "tile"), 1u);
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
}

TEST(Registry, BuiltinIsWellFormed) {
  const auto& r = Registry::builtin();
  ASSERT_EQ(r.knobs().size(), static_cast<size_t>(KnobId::kCount));
  for (const auto& k : r.knobs()) {
    EXPECT_EQ(&r[k.id], &k);
    EXPECT_EQ(r.find(k.name), &k);
    EXPECT_TRUE(k.name.starts_with("-" + k.area + ":")) << k.name;
    EXPECT_TRUE(k.help.ends_with('.')) << k.name << ": help is a sentence";
    EXPECT_NE(k.numericsOf(k.defaultValue), Numerics::kLossy) << k.name << ": a default may not lose accuracy";
  }
  EXPECT_EQ(Route::parse(r.defaultRouteText()).assignments().size(), r.knobs().size());
}

TEST(Registry, HandlesNameTheirKnobs) {
  EXPECT_EQ(Registry::builtin()[knob::gemm_tile_m.id].name, "-gemm:tile_m");
  EXPECT_EQ(Registry::builtin()[knob::fuse_conv_activation.id].domain, Domain::kBool);
}

TEST(Registry, CanonicalValues) {
  const auto& r = exampleKnobs();
  const auto& c = r[exampleId("-c")];
  EXPECT_EQ(c.canonical("007"), "7");
  EXPECT_EQ(c.canonical("100"), "100");
  for (auto bad : {"101", "-1", "", "7x", "0x7", "auto", "99999999999999999999"})
    EXPECT_EQ(c.canonical(bad), std::nullopt) << bad;
  EXPECT_EQ(r[exampleId("-gemm:depth")].canonical("auto"), "auto");
  EXPECT_EQ(r[exampleId("-gemm:depth")].canonical("-4"), "-4");
  EXPECT_EQ(r[exampleId("-tile")].canonical("016"), std::nullopt);
}

TEST(Registry, Numerics) {
  const auto& k = exampleKnobs()[exampleId("-gemm:type")];
  EXPECT_EQ(k.numericsOf("bf16"), Numerics::kLossy);
  EXPECT_EQ(k.numericsOf("f32"), Numerics::kExact);
  EXPECT_EQ(exampleKnobs()[exampleId("-gemm:depth")].numericsOf("3"), Numerics::kReorders);
}

TEST(Registry, SelectTakesNameOrGlobWithOrWithoutDash) {
  const auto& r = exampleKnobs();
  EXPECT_EQ(r.select("tile").size(), 1u);
  EXPECT_EQ(r.select("-tile").size(), 1u);
  EXPECT_EQ(r.select("gemm:*").size(), 3u);
  EXPECT_TRUE(r.select("Tile").empty());
}

TEST(Registry, WrongDeclarationsAreBugs) {
  auto make = [](KnobSpec s) { return Registry({std::move(s)}); };
  KnobSpec good{Domain::kEnum, "a", "b", "x|y", 0, 0, "x", Target::kAny, "exact", "H."};
  EXPECT_NO_THROW(make(good));
  auto with = [&](auto change) {
    auto s = good;
    change(s);
    return s;
  };
  EXPECT_THROW(make(with([](auto& s) { s.defaultValue = "z"; })), InternalError);
  EXPECT_THROW(make(with([](auto& s) { s.values = "x|x"; })), InternalError);
  EXPECT_THROW(make(with([](auto& s) { s.values = "x|y z"; })), InternalError);
  EXPECT_THROW(make(with([](auto& s) { s.numerics = "fine"; })), InternalError);
  EXPECT_THROW(make(with([](auto& s) { s.numerics = "exact,z=lossy"; })), InternalError);
  EXPECT_THROW(make(with([](auto& s) { s.domain = Domain::kInts; })), InternalError);
  EXPECT_THROW(make(with([](auto& s) { s.domain = Domain::kBool; })), InternalError);
  EXPECT_THROW(Registry({good, good}), InternalError);
}

TEST(Registry, JsonHasTheFourKeysFirst) {
  auto doc = nlohmann::ordered_json::parse(allBuildRoutesJson(exampleKnobs()));
  ASSERT_EQ(doc.begin().key(), "tuner_version");
  ASSERT_EQ(doc["tuner_options"].size(), exampleKnobs().knobs().size());
  auto tile = doc["tuner_options"][1];
  std::vector<std::string> keys;
  for (auto& [k, v] : tile.items()) keys.push_back(k);
  EXPECT_EQ(keys, (std::vector<std::string>{"option", "allowed_values", "default_value", "help", "domain", "numerics",
                                            "target", "area"}));
  EXPECT_EQ(tile["option"], "-tile");
  EXPECT_EQ(tile["allowed_values"], "-tile=[16|32|64]");
  EXPECT_EQ(tile["default_value"], "32");
  auto c = doc["tuner_options"][5];
  EXPECT_EQ(c["allowed_values"], "-c=int32_t");
  EXPECT_EQ(c["domain"], "int");
  EXPECT_EQ(c["min"], 0);
  EXPECT_EQ(c["max"], 100);
  EXPECT_EQ(doc["tuner_options"][6]["numerics"]["bf16"], "lossy");
}

TEST(Registry, JsonOfOneKnobAndOfNone) {
  auto doc = nlohmann::json::parse(allBuildRoutesJson(exampleKnobs(), "gemm:type"));
  EXPECT_EQ(doc["tuner_options"].size(), 1u);
  try {
    allBuildRoutesJson(exampleKnobs(), "gemm:typ");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("-gemm:type"), std::string::npos) << e.what();
  }
}

TEST(Registry, MarkdownListsEveryKnobOnce) {
  auto text = knobsMarkdown(exampleKnobs());
  for (const auto& k : exampleKnobs().knobs()) {
    auto cell = "| `" + k.name + "` |";
    auto at = text.find(cell);
    ASSERT_NE(at, std::string::npos) << k.name;
    EXPECT_EQ(text.find(cell, at + 1), std::string::npos) << k.name;
  }
  EXPECT_NE(text.find("exact; bf16: lossy"), std::string::npos);
  EXPECT_NE(knobsMarkdown(exampleKnobs(), {{"-tile", "1.1"}}).find("Tile. | 1.1 |"), std::string::npos);
}

}  // namespace
}  // namespace rutter::knobs
