#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/attrs.h"

namespace rutter::runtime {
namespace {

Attrs everyKind() {
  Attrs a;
  a["int"] = int64_t(-7);
  a["float"] = 0.1f;
  a["string"] = std::string("a\0b", 3);
  a["tensor"] = ir::Tensor::ofFloats({2, 1}, {1.5f, -0.f});
  a["text"] = ir::Tensor::ofStrings({2}, {"x", ""});
  a["ints"] = std::vector<int64_t>{1, -2, INT64_MIN};
  a["floats"] = std::vector<float>{};
  a["strings"] = std::vector<std::string>{"", "two"};
  return a;
}

TEST(Attrs, EveryKindSurvives) {
  auto a = everyKind();
  auto b = decodeAttrs(encodeAttrs(a));
  ASSERT_EQ(b.size(), a.size());
  for (auto& [name, x] : a) EXPECT_EQ(x.index(), b.at(name).index()) << name;
  EXPECT_EQ(std::get<int64_t>(b["int"]), -7);
  EXPECT_EQ(std::get<float>(b["float"]), 0.1f);
  EXPECT_EQ(std::get<std::string>(b["string"]), std::string("a\0b", 3));
  EXPECT_EQ(std::get<ir::Tensor>(b["tensor"]).shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::get<ir::Tensor>(b["tensor"]).getDouble(0), 1.5);
  EXPECT_EQ(std::get<ir::Tensor>(b["text"]).getString(0), "x");
  EXPECT_EQ(std::get<std::vector<int64_t>>(b["ints"]).at(2), INT64_MIN);
  EXPECT_EQ(std::get<std::vector<std::string>>(b["strings"]).at(1), "two");
  EXPECT_EQ(encodeAttrs(a), encodeAttrs(b));
}
TEST(Attrs, NoneIsEmpty) {
  EXPECT_TRUE(decodeAttrs(encodeAttrs({})).empty());
}
TEST(Attrs, EveryTruncationIsAnError) {
  auto bytes = encodeAttrs(everyKind());
  for (size_t n = 0; n < bytes.size(); n++) EXPECT_THROW(decodeAttrs({bytes.data(), n}), UserError) << n;
  bytes.push_back(0);
  EXPECT_THROW(decodeAttrs(bytes), UserError);
}
TEST(Attrs, NoBitFlipDoesMoreThanThrow) {
  const auto good = encodeAttrs(everyKind());
  for (size_t i = 0; i < good.size() * 8; i++) {
    auto bad = good;
    bad[i / 8] ^= uint8_t(1 << i % 8);
    try {
      decodeAttrs(bad);
    } catch (const UserError&) {
    } catch (const DeviceError&) {
    }
  }
}

}  // namespace
}  // namespace rutter::runtime
