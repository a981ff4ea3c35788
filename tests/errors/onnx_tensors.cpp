// Weights whose data is not what their shape says, or not where it should be.
#include <gmock/gmock.h>

#include "onnx_writer.h"

namespace rutter::onnxwriter {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Model withWeight(const std::string& tensor) {
  Model m = reluModel();
  m.nodes = {node("Add", {"x", "w"}, {"y"}, {}, "add")};
  m.initialisers = {tensor};
  return m;
}

TEST(OnnxTensors, RawDataOfTheWrongSize) {
  EXPECT_THAT(importError(withWeight(rawTensor("w", kFloat, {2, 3}, std::string(20, 0))).bytes()),
              HasSubstr("initializer 'w': shape [2,3] of float32 needs 24 bytes, the model holds 20"));
  EXPECT_THAT(importError(withWeight(rawTensor("w", kFloat, {2, 3}, std::string(28, 0))).bytes()),
              HasSubstr("holds 28"));
}
TEST(OnnxTensors, TypedDataOfTheWrongSize) {
  std::vector<float> three = {1, 2, 3};
  EXPECT_THAT(importError(withWeight(message([&](auto& w) {
                            w.add_int64(1, 4), w.add_int32(2, kFloat), w.add_string(8, "w");
                            w.add_packed_float(4, three.begin(), three.end());
                          })).bytes()),
              HasSubstr("needs 16 bytes, the model holds 12"));
  EXPECT_THAT(importError(withWeight(message([&](auto& w) {
                            w.add_int64(1, 4), w.add_int32(2, kInt64), w.add_string(8, "w");
                            w.add_int64(7, 1);
                          })).bytes()),
              HasSubstr("needs 4 elements, the model holds 1"));
}
TEST(OnnxTensors, NoData) {
  EXPECT_THAT(importError(withWeight(message([](auto& w) {
                            w.add_int64(1, int64_t{1} << 40), w.add_int32(2, kFloat), w.add_string(8, "w");
                          })).bytes()),
              HasSubstr("the model holds 0"));
}
TEST(OnnxTensors, ImpossibleShapes) {
  EXPECT_THAT(importError(withWeight(rawTensor("w", kFloat, {-2}, "")).bytes()),
              AllOf(HasSubstr("initializer 'w'"), HasSubstr("[-2]")));
  EXPECT_THAT(importError(withWeight(rawTensor("w", kFloat, {int64_t{1} << 40, int64_t{1} << 40}, "")).bytes()),
              HasSubstr("initializer 'w'"));
  EXPECT_THAT(importError(withWeight(rawTensor("w", kFloat, {int64_t{1} << 60}, "")).bytes()), HasSubstr("too large"));
}
TEST(OnnxTensors, UnknownElementType) {
  EXPECT_THAT(importError(withWeight(rawTensor("w", 77, {1}, "1234")).bytes()),
              HasSubstr("initializer 'w': element type 77 is not supported"));
}
TEST(OnnxTensors, Sparse) {
  Model m = reluModel();
  m.sparse = {message([](auto& w) { w.add_message(1, floats("w", {1}, {1})); })};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("initializer 'w' is sparse"));
}

class OnnxExternal : public testing::Test {
 protected:
  std::string error(const std::map<std::string, std::string>& entries, const Ints& dims = {2, 3}) {
    return importError(withWeight(externalTensor("w", kFloat, dims, entries)).bytes(), folder_.path("model"));
  }
  void SetUp() override {
    std::filesystem::create_directory(folder_.path("model"));
    folder_.write("model/w.bin", std::string(24, 0));
    folder_.write("secret.bin", std::string(24, 0));
  }
  TempFolder folder_;
};
TEST_F(OnnxExternal, OutsideTheFolder) {
  EXPECT_THAT(error({{"location", "../secret.bin"}}),
              AllOf(HasSubstr("initializer 'w'"), HasSubstr("outside the model's folder")));
  EXPECT_THAT(error({{"location", "a/../../secret.bin"}}), HasSubstr("outside the model's folder"));
}
TEST_F(OnnxExternal, AbsolutePath) {
  EXPECT_THAT(error({{"location", folder_.path("model/w.bin")}}), HasSubstr("is an absolute path"));
}
TEST_F(OnnxExternal, LinkOutOfTheFolder) {
  std::filesystem::create_symlink(folder_.path("secret.bin"), folder_.path("model/link.bin"));
  EXPECT_THAT(error({{"location", "link.bin"}}), AllOf(HasSubstr("is a link to"), HasSubstr("secret.bin")));
  std::filesystem::create_directory_symlink(folder_.path(), folder_.path("model/up"));
  EXPECT_THAT(error({{"location", "up/secret.bin"}}), HasSubstr("is a link to"));
}
TEST_F(OnnxExternal, Missing) {
  EXPECT_THAT(error({{"location", "gone.bin"}}), AllOf(HasSubstr("gone.bin"), HasSubstr("No such file")));
}
TEST_F(OnnxExternal, TooShort) {
  EXPECT_THAT(error({{"location", "w.bin"}, {"offset", "4"}}),
              HasSubstr("too short: 24 bytes at offset 4 are wanted, the file has 24"));
  EXPECT_THAT(error({{"location", "w.bin"}, {"offset", "9223372036854775807"}}), HasSubstr("too short"));
}
TEST_F(OnnxExternal, LengthThatDisagrees) {
  EXPECT_THAT(error({{"location", "w.bin"}, {"length", "20"}}),
              HasSubstr("needs 24 bytes, its external data has length 20"));
}
TEST_F(OnnxExternal, NumbersThatAreNone) {
  EXPECT_THAT(error({{"location", "w.bin"}, {"offset", "-1"}}), HasSubstr("offset '-1'"));
  EXPECT_THAT(error({{"location", "w.bin"}, {"offset", "12x"}}), HasSubstr("offset '12x'"));
}
TEST_F(OnnxExternal, NoLocation) {
  EXPECT_THAT(error({{"offset", "0"}}), HasSubstr("without a location"));
  EXPECT_THAT(error({{"location", std::string("w.bin\0x", 7)}}), HasSubstr("zero byte"));
}
TEST_F(OnnxExternal, BytesWithoutAFolder) {
  EXPECT_THAT(importError(withWeight(externalTensor("w", kFloat, {2, 3}, {{"location", "w.bin"}})).bytes()),
              HasSubstr("without a folder"));
}
TEST_F(OnnxExternal, AFolderInPlaceOfAFile) {
  std::filesystem::create_directory(folder_.path("model/dir"));
  EXPECT_THAT(error({{"location", "dir"}}), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace rutter::onnxwriter
