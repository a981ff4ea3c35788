// The sets of inputs that a search checks outputs on: given, made up, varied from what is given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "onnx_writer.h"
#include "tuner/compiler_backend.h"
#include "tuner/make_inputs.h"
#include "tuner/wire.h"

namespace rutter::tuner {
namespace {

class InputSets : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rutter-input-sets-XXXXXX";
    dir_ = mkdtemp(name);
    onnxwriter::Model m;
    m.nodes = {onnxwriter::node("Gather", {"table", "i"}, {"g"}, {}, "gather"),
               onnxwriter::node("Add", {"g", "x"}, {"y"}, {}, "add")};
    m.initialisers = {onnxwriter::floats("table", {3, 4}, std::vector<float>(12, 1))};
    m.inputs = {onnxwriter::value("i", onnxwriter::kInt64, {"2"}),
                onnxwriter::value("x", onnxwriter::kFloat, {"2", "4"})};
    m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"2", "4"})};
    std::ofstream(dir_ + "/m.onnx", std::ios::binary) << m.bytes();
    write("x", std::vector<float>{1, 2, 3, 4, -5, -6, -7, 0});
    write("y", std::vector<float>(8, 0));
    write("i", std::vector<int64_t>{0, 2});
    options_.model.path = dir_ + "/m.onnx";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  template <typename T>
  void write(const std::string& name, const std::vector<T>& v) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << onnxwriter::rawBytes(v);
  }
  std::unique_ptr<Backend> prepared() {
    auto b = makeCompilerBackend();
    b->prepare(toJson(options_));
    return b;
  }
  static std::vector<double> numbers(const Tensors& set, const std::string& name) {
    std::vector<double> out;
    for (const auto& [n, t] : set)
      for (int64_t i = 0; n == name && i < t.size(); i++) out.push_back(t.getDouble(i));
    return out;
  }
  std::string dir_;
  TuneOptions options_;
};

TEST_F(InputSets, TwoAreMadeUp) {
  auto b = prepared();
  ASSERT_EQ(b->inputs().size(), 2u);
  EXPECT_NE(numbers(b->inputs()[0], "x"), numbers(b->inputs()[1], "x"));
  EXPECT_FALSE(b->otherInputs(kDraws)) << "there is no varied set to go without";
}

TEST_F(InputSets, ASecondIsVariedFromOneThatIsGiven) {
  options_.pairs = {{{{"x", dir_ + "/x"}, {"i", dir_ + "/i"}}, {}}};
  auto b = prepared();
  ASSERT_EQ(b->inputs().size(), 2u);
  const auto given = numbers(b->inputs()[0], "x"), varied = numbers(b->inputs()[1], "x");
  EXPECT_THAT(given, testing::ElementsAre(1, 2, 3, 4, -5, -6, -7, 0));
  int others = 0;
  for (size_t i = 0; i < given.size(); i++) {
    EXPECT_LE(std::abs(varied[i]), std::abs(given[i])) << i;
    EXPECT_GE(varied[i] * given[i], 0.5 * given[i] * given[i]) << i;
    others += varied[i] != given[i];
  }
  EXPECT_EQ(others, 7);
  EXPECT_THAT(numbers(b->inputs()[1], "i"), testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(3))));
  EXPECT_THAT(numbers(b->inputs()[0], "i"), testing::ElementsAre(0, 2));
  // Nothing else is made up: the only other way is without it.
  EXPECT_FALSE(b->otherInputs(1));
  ASSERT_TRUE(b->otherInputs(kDraws));
  ASSERT_EQ(b->inputs().size(), 1u);
  EXPECT_EQ(numbers(b->inputs()[0], "x"), given);
  EXPECT_FALSE(b->otherInputs(kDraws + 1));
  EXPECT_FALSE(b->otherInputs(kInputWays));
}

TEST_F(InputSets, ReferencesAndSeveralSetsStayAsTheyAre) {
  const std::map<std::string, std::string> in{{"x", dir_ + "/x"}, {"i", dir_ + "/i"}}, out{{"y", dir_ + "/y"}};
  options_.pairs = {{in, out}};
  EXPECT_EQ(prepared()->inputs().size(), 1u);
  options_.pairs = {{in, {}}, {{{"x", dir_ + "/x"}}, {}}};
  auto b = prepared();
  EXPECT_EQ(b->inputs().size(), 2u);
  EXPECT_EQ(numbers(b->inputs()[0], "x"), numbers(b->inputs()[1], "x"));
  EXPECT_TRUE(b->otherInputs(1));  // "i" of the second is made up
}

}  // namespace
}  // namespace rutter::tuner
