// Encodings of weights: raw and typed, inline and external; views where they can be.
#include "onnx/tensors.h"

#include <gmock/gmock.h>

#include "onnx_writer.h"

namespace rutter::onnxwriter {
namespace {

using testing::ElementsAre;

std::vector<double> contents(const ir::Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.size(); i++) v.push_back(t.getDouble(i));
  return v;
}
Model withWeight(const std::string& tensor) {
  Model m = reluModel();
  m.nodes = {node("Add", {"x", "w"}, {"y"})};
  m.initialisers = {tensor};
  return m;
}
const ir::Tensor& weight(const frontend::Model& m) {
  return *m.graph->top().nodes.front()->inputs[1]->constant;
}
ir::Tensor decode(const std::string& tensor) {
  Model m = reluModel();
  m.initialisers = {tensor};
  const std::string bytes = m.bytes();
  ir::Tensor t = frontend::TensorStore(nullptr, "").decode(frontend::parseModel(bytes).graph->initialisers[0], "w");
  // The store was given no owner: copy what may be a view of `bytes`.
  if (t.dtype() == ir::DType::kString) return t;
  ir::Tensor copy(t.dtype(), t.shape());
  if (t.bytes()) std::memcpy(copy.mutableData(), t.data(), size_t(t.bytes()));
  return copy;
}

TEST(Tensors, RawDataIsAViewThatKeepsTheBytes) {
  std::vector<float> big(40000);
  for (size_t i = 0; i < big.size(); i++) big[i] = float(i);
  auto bytes = std::make_shared<const std::string>(withWeight(floats("w", {40000}, big)).bytes());
  frontend::Model r = frontend::importBytes(std::as_bytes(std::span(*bytes)), {}, bytes);
  const ir::Tensor w = weight(r);
  const char* p = static_cast<const char*>(w.data());
  EXPECT_TRUE(p >= bytes->data() && p < bytes->data() + bytes->size());
  r = {};
  EXPECT_GT(bytes.use_count(), 1);
  bytes.reset();
  EXPECT_EQ(w.getDouble(39999), 39999);
}
TEST(Tensors, BytesWithoutAnOwnerAreCopied) {
  auto bytes = std::make_unique<std::string>(withWeight(floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})).bytes());
  frontend::Model r = importText(*bytes);
  std::fill(bytes->begin(), bytes->end(), 0);
  bytes.reset();
  EXPECT_THAT(contents(weight(r)), ElementsAre(1, 2, 3, 4, 5, 6));
}

struct Encoding {
  const char* name;
  int type;
  std::function<void(protozero::pbf_writer&)> data;
  std::vector<double> wanted;
};
void PrintTo(const Encoding& e, std::ostream* os) {
  *os << e.name;
}
class TypedData : public testing::TestWithParam<Encoding> {};
TEST_P(TypedData, Decodes) {
  const Encoding& e = GetParam();
  ir::Tensor t = decode(message([&](auto& w) {
    w.add_int64(1, int64_t(e.wanted.size()));  // dims not packed: both forms are legal
    w.add_int32(2, e.type);
    w.add_string(8, "w");
    e.data(w);
  }));
  EXPECT_EQ(ir::dtypeToOnnx(t.dtype()), e.type);
  EXPECT_EQ(contents(t), e.wanted);
}
const std::vector<float> kFloats = {1.5f, -2};
const std::vector<double> kDoubles = {1.5, -2};
const std::vector<int32_t> kInts = {3, -4};
const std::vector<int64_t> kLongs = {int64_t{1} << 40, -4};
const std::vector<uint64_t> kUnsigned = {7, 4000000000};
using Writer = protozero::pbf_writer;
INSTANTIATE_TEST_SUITE_P(
    All, TypedData,
    testing::Values(
        Encoding{"float_packed",
                 kFloat,
                 [](Writer& w) { w.add_packed_float(4, kFloats.begin(), kFloats.end()); },
                 {1.5, -2}},
        Encoding{"float_single", kFloat, [](Writer& w) { w.add_float(4, 1.5f), w.add_float(4, -2); }, {1.5, -2}},
        Encoding{"float_in_runs",
                 kFloat,
                 [](Writer& w) { w.add_packed_float(4, kFloats.begin(), kFloats.end()), w.add_float(4, 9); },
                 {1.5, -2, 9}},
        Encoding{
            "double", kDouble, [](Writer& w) { w.add_packed_double(10, kDoubles.begin(), kDoubles.end()); }, {1.5, -2}},
        Encoding{"int32", kInt32, [](Writer& w) { w.add_packed_int32(5, kInts.begin(), kInts.end()); }, {3, -4}},
        Encoding{"int8", kInt8, [](Writer& w) { w.add_packed_int32(5, kInts.begin(), kInts.end()); }, {3, -4}},
        Encoding{"int16", 5, [](Writer& w) { w.add_packed_int32(5, kInts.begin(), kInts.end()); }, {3, -4}},
        Encoding{"uint8", kUint8, [](Writer& w) { w.add_int32(5, 200); }, {200}},
        Encoding{"bool", kBool, [](Writer& w) { w.add_int32(5, 1), w.add_int32(5, 0); }, {1, 0}},
        Encoding{"float16", kHalf, [](Writer& w) { w.add_int32(5, 0x3e00), w.add_int32(5, 0xc000); }, {1.5, -2}},
        Encoding{"bfloat16", 16, [](Writer& w) { w.add_int32(5, 0x3fc0); }, {1.5}},
        Encoding{"int64",
                 kInt64,
                 [](Writer& w) { w.add_packed_int64(7, kLongs.begin(), kLongs.end()); },
                 {1099511627776.0, -4}},
        Encoding{
            "uint64", 13, [](Writer& w) { w.add_packed_uint64(11, kUnsigned.begin(), kUnsigned.end()); }, {7, 4e9}},
        Encoding{
            "uint32", 12, [](Writer& w) { w.add_packed_uint64(11, kUnsigned.begin(), kUnsigned.end()); }, {7, 4e9}}),
    [](const auto& i) { return std::string(i.param.name); });

TEST(Tensors, Strings) {
  ir::Tensor t = decode(message([](auto& w) {
    w.add_int64(1, 2), w.add_int32(2, kString), w.add_string(8, "w");
    w.add_string(6, "ab"), w.add_string(6, "");
  }));
  EXPECT_EQ(t.getString(0), "ab");
  EXPECT_EQ(t.getString(1), "");
}
TEST(Tensors, FourBitsTwoToAByte) {
  ir::Tensor t = decode(
      message([](auto& w) { w.add_int64(1, 3), w.add_int32(2, 22), w.add_int32(5, 0x21), w.add_int32(5, 0x03); }));
  EXPECT_EQ(t.dtype(), ir::DType::kI4);
  EXPECT_EQ(t.bytes(), 2);
  EXPECT_EQ(static_cast<const uint8_t*>(t.data())[0], 0x21);
}
TEST(Tensors, EmptyAndScalar) {
  EXPECT_EQ(decode(rawTensor("w", kFloat, {0, 4}, "")).size(), 0);
  EXPECT_THAT(contents(decode(floats("w", {}, {3}))), ElementsAre(3));
}

TEST(Tensors, ExternalData) {
  TempFolder folder;
  folder.write("w.bin", "12345678" + rawBytes(std::vector<float>{1, 2, 3, 4, 5, 6}));
  const std::string bytes =
      withWeight(externalTensor("w", kFloat, {2, 3}, {{"location", "w.bin"}, {"offset", "8"}, {"length", "24"}}))
          .bytes();
  frontend::Model r = frontend::importFile(folder.write("net.onnx", bytes));
  EXPECT_THAT(contents(weight(r)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(importText(bytes, folder.path()).hash, r.hash);
}
TEST(Tensors, HashFollowsEveryByte) {
  TempFolder folder;
  std::string path =
      folder.write("net.onnx", withWeight(externalTensor("w", kFloat, {1}, {{"location", "w.bin"}})).bytes());
  folder.write("w.bin", rawBytes(std::vector<float>{1}));
  Hash128 before = frontend::importFile(path).hash;
  EXPECT_EQ(frontend::importFile(path).hash, before);
  folder.write("w.bin", rawBytes(std::vector<float>{2}));
  EXPECT_NE(frontend::importFile(path).hash, before);
  EXPECT_NE(importText(withWeight(floats("w", {1}, {1})).bytes()).hash,
            importText(withWeight(floats("w", {1}, {2})).bytes()).hash);
}

}  // namespace
}  // namespace rutter::onnxwriter
