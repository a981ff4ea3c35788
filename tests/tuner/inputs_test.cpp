#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tuner/make_inputs.h"
#include "tuner/tensor_files.h"

namespace rutter::tuner {
namespace {

using ir::DType;
using testing::HasSubstr;

class TensorFiles : public testing::Test {
 protected:
  std::string dir_ =
      testing::TempDir() + "rutter_tensors_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  void SetUp() override { std::filesystem::create_directories(dir_); }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string write(const std::string& name, const std::string& bytes) {
    auto path = dir_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string error(const std::string& path, const WantedTensor& w) {
    try {
      readTensorFile(path, w);
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), HasSubstr("tensor '" + w.name + "'"));
      return e.what();
    }
    return "accepted";
  }
};

const std::string kTwoFloats("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);  // 1, -2

TEST_F(TensorFiles, Raw) {
  auto path = write("x.bin", kTwoFloats);
  auto t = readTensorFile(path, {"x", DType::kF32, std::vector<int64_t>{2, 1}});
  EXPECT_EQ(t.shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(t.getDouble(0), 1);
  EXPECT_EQ(t.getDouble(1), -2);
}

TEST_F(TensorFiles, RawOfAnotherSizeIsAnErrorWithBothSizes) {
  auto path = write("x.bin", kTwoFloats);
  // Twice the size included: nothing is read by half.
  EXPECT_THAT(error(path, {"x", DType::kF32, std::vector<int64_t>{1}}),
              HasSubstr("holds 8 bytes, but float32 of shape 1 take 4"));
  EXPECT_THAT(error(path, {"x", DType::kF32, std::vector<int64_t>{3}}), HasSubstr("take 12"));
  EXPECT_THAT(error(path, {"x", DType::kF32, std::nullopt}), HasSubstr("has no shape"));
  EXPECT_THAT(error(dir_ + "/none", {"x", DType::kF32, std::vector<int64_t>{1}}), HasSubstr("No such file"));
  EXPECT_THAT(error(dir_, {"x", DType::kF32, std::vector<int64_t>{1}}), HasSubstr("folder"));
}

TEST_F(TensorFiles, NpyRoundTrip) {
  for (DType d : {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kI32, DType::kI64, DType::kU8, DType::kBool,
                  DType::kBF16}) {
    ir::Tensor t(d, {2, 3});
    for (int i = 0; i < 6; i++) t.setInt(i, i % 2);
    auto back = readTensorFile(write("x.npy", npyBytes(t)), {"x", d, std::nullopt});
    EXPECT_EQ(back.shape(), t.shape());
    for (int i = 0; i < 6; i++) EXPECT_EQ(back.getInt(i), i % 2) << dtypeName(d);
  }
  auto scalar = readTensorFile(write("s.npy", npyBytes(ir::Tensor::scalar(DType::kF32, 7))),
                               {"s", DType::kF32, std::vector<int64_t>{}});
  EXPECT_EQ(scalar.getDouble(0), 7);
}

std::string npy(const std::string& dict, const std::string& data) {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dict.size()) + '\0' + dict + data;
}

TEST_F(TensorFiles, NpyErrors) {
  const WantedTensor w{"x", DType::kF32, std::vector<int64_t>{2}};
  auto of = [&](const std::string& dict, const std::string& data = kTwoFloats) {
    return error(write("x.npy", npy(dict, data)), w);
  };
  EXPECT_EQ(of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), "accepted");
  EXPECT_THAT(of("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"), HasSubstr("its type is '<f8'"));
  EXPECT_THAT(of("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), HasSubstr("its type is '>f4'"));
  EXPECT_THAT(of("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"),
              HasSubstr("its shape is 1x2, but 2 is wanted"));
  EXPECT_THAT(of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "123"), HasSubstr("holds 3 bytes"));
  EXPECT_THAT(of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,"), HasSubstr("damaged"));
  EXPECT_THAT(of("{'descr': '<f4', 'shape': (2,), }"), HasSubstr("damaged"));
  EXPECT_THAT(error(write("y.npy", "\x93NUMPY"), w), HasSubstr("damaged"));
  EXPECT_THAT(error(write("f.npy", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", kTwoFloats)),
                    {"x", DType::kF32, std::nullopt}),
              HasSubstr("Fortran"));
}

TEST_F(TensorFiles, OnnxPb) {
  // TensorProto: dims 2, data_type FLOAT, raw_data.
  const std::string proto = std::string("\x08\x02\x10\x01\x4a\x08", 6) + kTwoFloats;
  auto t = readTensorFile(write("x.pb", proto), {"x", DType::kF32, std::vector<int64_t>{2}});
  EXPECT_EQ(t.getDouble(1), -2);
  EXPECT_THAT(error(write("x.pb", proto), {"x", DType::kI64, std::vector<int64_t>{2}}),
              HasSubstr("its type is float32"));
  EXPECT_THAT(error(write("x.pb", proto), {"x", DType::kF32, std::vector<int64_t>{3}}),
              HasSubstr("its shape is 2, but 3"));
  for (size_t n = 1; n < proto.size(); n++)
    EXPECT_NE(error(write("x.pb", proto.substr(0, n)), {"x", DType::kF32, std::vector<int64_t>{2}}), "accepted") << n;
}

// A graph of one integer input `v` and what `build` makes of it.
InputRule ruleOf(const std::function<void(ir::Graph&, ir::Value*)>& build, DType dtype = DType::kI64) {
  ir::Graph g;
  auto* v = g.makeValue("v", ir::Type::tensor(dtype, {2, 8}));
  g.top().inputs.push_back(v);
  build(g, v);
  return inputRules(g).at("v");
}
ir::Value* typed(ir::Graph& g, DType t, ir::Dims dims) {
  return g.makeValue("t", ir::Type::tensor(t, std::move(dims)));
}

TEST(InputRules, TableIndicesLieInTheTable) {
  auto embed = [](ir::Graph& g, ir::Value* v) {
    auto* table = g.makeConstant("table", ir::Tensor(DType::kF32, {30, 4}));
    g.makeNode(g.top(), "Gather", {table, v}, {typed(g, DType::kF32, {2, 8, 4})});
  };
  EXPECT_EQ(ruleOf(embed), (InputRule{InputRule::Kind::kIndices, 30}));
  // The smallest of several tables counts, behind casts and reshapes too.
  EXPECT_EQ(ruleOf([&](ir::Graph& g, ir::Value* v) {
              embed(g, v);
              auto* cast = typed(g, DType::kI32, {2, 8});
              g.makeNode(g.top(), "Cast", {v}, {cast});
              auto* table = g.makeConstant("table", ir::Tensor(DType::kF32, {4, 7}));
              g.makeNode(g.top(), "Gather", {table, cast}, {typed(g, DType::kF32, {4, 2, 8})})->attrs["axis"] =
                  int64_t{1};
            }),
            (InputRule{InputRule::Kind::kIndices, 7}));
}

TEST(InputRules, MasksAndOthers) {
  auto cast = [](ir::Graph& g, ir::Value* v) {
    auto* u = typed(g, DType::kI64, {2, 1, 8});
    g.makeNode(g.top(), "Unsqueeze", {v}, {u});
    g.makeNode(g.top(), "Cast", {u}, {typed(g, DType::kF32, {2, 1, 8})});
  };
  EXPECT_EQ(ruleOf(cast).kind, InputRule::Kind::kMask);
  EXPECT_EQ(ruleOf([&](ir::Graph& g, ir::Value* v) {
              cast(g, v);
              g.makeNode(g.top(), "MatMulInteger", {v, v}, {typed(g, DType::kI32, {2, 2})});
            }).kind,
            InputRule::Kind::kPlain);
  EXPECT_EQ(ruleOf(cast, DType::kF32).kind, InputRule::Kind::kPlain);
  EXPECT_EQ(ruleOf([](ir::Graph& g, ir::Value* v) {
              g.makeNode(g.top(), "Reshape", {g.makeConstant("c", ir::Tensor(DType::kF32, {4})), v},
                         {typed(g, DType::kF32, {2, 2})});
            }).kind,
            InputRule::Kind::kExtent);
}

TEST(MakeInput, DomainsAndReproducibility) {
  auto same = [](const ir::Tensor& a, const ir::Tensor& b) { return std::memcmp(a.data(), b.data(), a.bytes()) == 0; };
  auto f = makeInput("x", DType::kF32, {1000}, {}, 1, 0);
  double lo = 0, hi = 0;
  for (int i = 0; i < 1000; i++) lo = std::min(lo, f.getDouble(i)), hi = std::max(hi, f.getDouble(i));
  EXPECT_GE(lo, -1);
  EXPECT_LT(lo, -0.95);
  EXPECT_LE(hi, 1);
  EXPECT_GT(hi, 0.95);
  EXPECT_TRUE(same(f, makeInput("x", DType::kF32, {1000}, {}, 1, 0)));
  EXPECT_FALSE(same(f, makeInput("y", DType::kF32, {1000}, {}, 1, 0)));
  EXPECT_FALSE(same(f, makeInput("x", DType::kF32, {1000}, {}, 2, 0)));
  EXPECT_FALSE(same(f, makeInput("x", DType::kF32, {1000}, {}, 1, 1)));

  auto idx = makeInput("i", DType::kI64, {1000}, {InputRule::Kind::kIndices, 3}, 1, 0);
  std::set<int64_t> values;
  for (int i = 0; i < 1000; i++) values.insert(idx.getInt(i));
  EXPECT_EQ(values, (std::set<int64_t>{0, 1, 2}));
  for (auto [dtype, low, high] : {std::tuple{DType::kI32, -128, 127}, {DType::kU8, 0, 255}, {DType::kBool, 0, 1}}) {
    auto t = makeInput("p", dtype, {5000}, {}, 1, 0);
    int64_t a = 1000, b = -1000;
    for (int i = 0; i < 5000; i++) a = std::min(a, t.getInt(i)), b = std::max(b, t.getInt(i));
    EXPECT_EQ(a, low) << dtypeName(dtype);
    EXPECT_EQ(b, high) << dtypeName(dtype);
  }
  EXPECT_THROW(makeInput("s", DType::kString, {1}, {}, 1, 0), UserError);
  EXPECT_EQ(makeInput("e", DType::kF32, {0, 3}, {}, 1, 0).size(), 0);
}

TEST(MakeInput, MasksBeginWithOnes) {
  for (int set = 0; set < 3; set++) {
    auto m = makeInput("m", DType::kI64, {4, 16}, {InputRule::Kind::kMask, 2}, 1, set);
    int64_t zeros = 0;
    for (int r = 0; r < 4; r++)
      for (int i = 0; i < 16; i++) {
        auto v = m.getInt(r * 16 + i);
        zeros += v == 0;
        EXPECT_TRUE(v == 0 || v == 1);
        if (i == 0)
          EXPECT_EQ(v, 1);
        else
          EXPECT_LE(v, m.getInt(r * 16 + i - 1));
      }
    EXPECT_EQ(zeros > 0, set > 0);
  }
}

TEST(MakeInput, OtherDrawsKeepWithinTheirBounds) {
  const InputRule plain;
  auto range = [&](DType t, Draw d, int set) {
    ir::Tensor x = makeInput("x", t, {1000}, plain, 1, set, d);
    double lo = 1e300, hi = -1e300;
    for (int64_t i = 0; i < x.size(); i++) lo = std::min(lo, x.getDouble(i)), hi = std::max(hi, x.getDouble(i));
    return std::pair(lo, hi);
  };
  for (int set : {0, 1}) {
    auto [a, b] = range(DType::kF32, Draw::kUsual, set);
    EXPECT_TRUE(a < -0.9 && b > 0.9 && a >= -1 && b <= 1);
    auto [c, d] = range(DType::kF32, Draw::kSmall, set);
    EXPECT_TRUE(c < -0.09 && d > 0.09 && c >= -0.1001 && d <= 0.1001);
    auto [e, f] = range(DType::kF32, Draw::kPositive, set);
    EXPECT_TRUE(e >= 0.0999 && e < 0.2 && f > 0.9 && f <= 1);
    EXPECT_EQ(range(DType::kF32, Draw::kOnes, set), std::pair(1 + set / 8.0, 1 + set / 8.0));
    EXPECT_GE(range(DType::kI32, Draw::kPositive, set).first, 1);
    EXPECT_LE(range(DType::kI32, Draw::kSmall, set).second, 12);
    EXPECT_LE(range(DType::kBool, Draw::kOnes, set).second, 1);
  }
  // Indices and masks are right as they are.
  const InputRule indices{InputRule::Kind::kIndices, 3};
  ir::Tensor x = makeInput("x", DType::kI64, {100}, indices, 1, 0, Draw::kOnes),
             y = makeInput("x", DType::kI64, {100}, indices, 1, 0);
  EXPECT_EQ(std::memcmp(x.data(), y.data(), 800), 0);
}

}  // namespace
}  // namespace rutter::tuner
