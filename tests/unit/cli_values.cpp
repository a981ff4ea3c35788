#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/values.h"

namespace rutter::cli {
namespace {

TEST(CliValues, Shapes) {
  using L = std::vector<NamedShape>;
  EXPECT_EQ(parseShapes("shapes", "x:1x3x224x224,other:scalar,last:"),
            (L{{"x", {1, 3, 224, 224}}, {"other", {}}, {"last", {}}}));
  EXPECT_EQ(parseShapes("shapes", "'in:0':0x2,a:b:7"), (L{{"in:0", {0, 2}}, {"a:b", {7}}}));
  EXPECT_EQ(parseShapes("shapes", "in*:4,'a,b':5"), (L{{"in*", {4}}, {"a,b", {5}}}));
  // As they are printed, they are read.
  for (const NamedShape& s : {NamedShape{"x", {1, 3, 7}}, {"in:0", {2}}, {"a,b", {}}})
    EXPECT_EQ(parseShapes("shapes", printShape(s.name, s.dims)), L{s});
  EXPECT_EQ(printShape("x", L{{"x", {1, 3, 7}}}[0].dims), "x:1x3x7");
  EXPECT_EQ(printShape("in:0", {}), "'in:0':scalar");
}

TEST(CliValues, Files) {
  using L = std::vector<NamedFile>;
  EXPECT_EQ(parseFiles("loadInputs", "x:a.bin,'in:0':c:d.npy"), (L{{"x", "a.bin"}, {"in:0", "c:d.npy"}}));
  EXPECT_EQ(parseFiles("loadInputs", "a:b:c.bin"), (L{{"a:b", "c.bin"}}));
}

TEST(CliValues, Sizes) {
  using L = std::vector<NamedSize>;
  EXPECT_EQ(parseSizes("memPoolSize", "workspace:512,tacticSharedMem:1.5K", 1 << 20),
            (L{{"workspace", 512ull << 20}, {"tacticSharedMem", 1536}}));
  EXPECT_EQ(parseSize("x", "3B", 1024), 3u);
  EXPECT_EQ(parseSize("x", "2G", 1), 2ull << 30);
  EXPECT_EQ(parseSize("x", "0", 1), 0u);
}

TEST(CliValues, Times) {
  EXPECT_DOUBLE_EQ(parseTime("warmUp", "200", 1e-3), 0.2);
  EXPECT_DOUBLE_EQ(parseTime("warmUp", "2s", 1e-3), 2);
  EXPECT_DOUBLE_EQ(parseTime("tune", "10m", 1), 600);
  EXPECT_DOUBLE_EQ(parseTime("tune", "1.5h", 1), 5400);
  EXPECT_DOUBLE_EQ(parseTime("tune", "250us", 1), 250e-6);
  EXPECT_DOUBLE_EQ(parseTime("duration", "-1", 1), -1);
}

TEST(CliValues, NumbersAndLists) {
  EXPECT_EQ(parseInt("seed", "-7"), -7);
  EXPECT_EQ(parseInt("seed", "5", 5, 5), 5);
  EXPECT_DOUBLE_EQ(parseReal("atol", "1e-3"), 1e-3);
  EXPECT_EQ(parseList("f", "a,b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parsePercentiles("percentile", "0,99.5,100"), (std::vector<double>{0, 99.5, 100}));
}

TEST(CliValues, HomeFolder) {
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(expandHome("~/m.onnx"), "/home/someone/m.onnx");
  EXPECT_EQ(expandHome("~"), "/home/someone");
  EXPECT_EQ(expandHome("~other/m.onnx"), "~other/m.onnx");
  EXPECT_EQ(expandHome("a/~/m.onnx"), "a/~/m.onnx");
}

TEST(CliValues, CommandLineForPeople) {
  EXPECT_EQ(shellJoin({"rutter", "--onnx=m.onnx", "--tuneBuildRoutes=-tile=[16|32]"}),
            "rutter --onnx=m.onnx '--tuneBuildRoutes=-tile=[16|32]'");
  EXPECT_EQ(shellJoin({"it's", ""}), "'it'\\''s' ''");
  EXPECT_EQ(shellJoin({"a\nb'\\"}), "$'a\\x0ab\\'\\\\'");
}

}  // namespace
}  // namespace rutter::cli
