// Models that parse but make no sense: one line that names the place.
#include <gmock/gmock.h>

#include "onnx_writer.h"

namespace rutter::onnxwriter {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(OnnxGraph, Cycle) {
  Model m = reluModel();
  m.nodes = {node("Add", {"x", "b"}, {"a"}, {}, "first"), node("Relu", {"a"}, {"b"}, {}, "second"),
             node("Relu", {"b"}, {"y"}, {}, "last")};
  EXPECT_THAT(importError(m.bytes()),
              AllOf(HasSubstr("cycle"), HasSubstr("first"), HasSubstr("second"), Not(HasSubstr("last"))));
}
TEST(OnnxGraph, NodeThatReadsItself) {
  Model m = reluModel();
  m.nodes = {node("Add", {"x", "y"}, {"y"}, {}, "knot")};
  EXPECT_THAT(importError(m.bytes()), AllOf(HasSubstr("cycle"), HasSubstr("knot")));
}
TEST(OnnxGraph, UndefinedInput) {
  Model m = reluModel();
  m.nodes = {node("Relu", {"ghost"}, {"y"}, {}, "relu")};
  EXPECT_THAT(importError(m.bytes()), AllOf(HasSubstr("node relu (Relu)"), HasSubstr("'ghost' is not defined")));
}
TEST(OnnxGraph, UndefinedOutput) {
  Model m = reluModel();
  m.outputs = {value("z", kFloat, {})};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("output 'z' is not defined"));
}
TEST(OnnxGraph, NoOutputs) {
  Model m = reluModel();
  m.outputs = {};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("no outputs"));
}
TEST(OnnxGraph, ValueDefinedTwice) {
  Model m = reluModel();
  m.nodes.push_back(node("Relu", {"x"}, {"y"}, {}, "again"));
  EXPECT_THAT(importError(m.bytes()), AllOf(HasSubstr("again"), HasSubstr("'y' is defined twice")));
}
TEST(OnnxGraph, InitializerDefinedTwice) {
  Model m = reluModel();
  m.initialisers = {floats("w", {1}, {1}), floats("w", {1}, {1})};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("initializer 'w' is defined twice"));
}
TEST(OnnxGraph, InputDefinedTwice) {
  Model m = reluModel();
  m.inputs.push_back(m.inputs[0]);
  EXPECT_THAT(importError(m.bytes()), HasSubstr("input 'x' is defined twice"));
}
TEST(OnnxGraph, OutputListedTwice) {
  Model m = reluModel();
  m.outputs.push_back(m.outputs[0]);
  EXPECT_THAT(importError(m.bytes()), HasSubstr("output 'y' is listed twice"));
}
TEST(OnnxGraph, UnknownIrVersion) {
  Model m = reluModel();
  m.irVersion = 99;
  EXPECT_THAT(importError(m.bytes()), HasSubstr("IR version 99 is not supported"));
  m.irVersion = 2;
  EXPECT_THAT(importError(m.bytes()), HasSubstr("IR version 2 is not supported"));
}
TEST(OnnxGraph, UnknownOpset) {
  Model m = reluModel();
  m.opsets[""] = 6;
  EXPECT_THAT(importError(m.bytes()),
              AllOf(HasSubstr("node relu (Relu)"), HasSubstr("opset 6 is not supported: 7 to")));
  m.opsets[""] = 1000;
  EXPECT_THAT(importError(m.bytes()), HasSubstr("opset 1000 is not supported"));
  m.opsets = {};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("imports no opset of domain 'ai.onnx'"));
}
TEST(OnnxGraph, OperatorNewerThanTheOpset) {
  Model m = reluModel();
  m.nodes = {node("Gelu", {"x"}, {"y"}, {}, "gelu")};
  EXPECT_THAT(importError(m.bytes()),
              AllOf(HasSubstr("node gelu (Gelu)"), HasSubstr("opset is 17"), HasSubstr("opset 20")));
}
TEST(OnnxGraph, UnknownOperatorsAllAtOnce) {
  Model m = reluModel();
  m.opsets["com.microsoft"] = 1;
  m.nodes = {node("Frobnicate", {"x"}, {"a"}, {}, "one"), node("FastGelu", {"a"}, {"b"}, {}, "two", "com.microsoft"),
             node("Relu", {"b"}, {"c"}), node("Frobnicate", {"c"}, {"y"})};
  try {
    importText(m.bytes());
    FAIL() << "imported";
  } catch (const frontend::UnsupportedOperators& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("3 nodes use unsupported operators"), HasSubstr("Frobnicate (one, Frobnicate_3)"),
                      HasSubstr("com.microsoft.FastGelu (two)"), HasSubstr("supported are"), HasSubstr("Relu")));
    ASSERT_EQ(e.nodes.size(), 3u);
    EXPECT_EQ(e.nodes[1].name, "two");
    EXPECT_EQ(e.nodes[1].domain, "com.microsoft");
    EXPECT_EQ(e.nodes[2].index, 3);
  }
}
TEST(OnnxGraph, PrivateOperatorsAreNotReadFromFiles) {
  Model m = reluModel();
  m.opsets["rutter"] = 1;
  m.nodes = {node("Silu", {"x"}, {"y"}, {}, "silu", "rutter")};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("rutter.Silu (silu)"));
}
TEST(OnnxGraph, UnknownAttribute) {
  Model m = reluModel();
  m.nodes = {node("Relu", {"x"}, {"y"}, {attr("slope", int64_t{1})}, "relu")};
  EXPECT_THAT(importError(m.bytes()), AllOf(HasSubstr("node relu (Relu)"), HasSubstr("unknown attribute 'slope'")));
}
TEST(OnnxGraph, AttributeOfUnknownType) {
  Model m = reluModel();
  m.nodes = {
      node("Flatten", {"x"}, {"y"}, {message([](auto& w) { w.add_string(1, "axis"), w.add_int32(20, 77); })}, "flat")};
  EXPECT_THAT(importError(m.bytes()), AllOf(HasSubstr("node flat (Flatten)"), HasSubstr("'axis' has type 77")));
}
TEST(OnnxGraph, AttributeTwice) {
  Model m = reluModel();
  m.nodes = {node("Flatten", {"x"}, {"y"}, {attr("axis", int64_t{1}), attr("axis", int64_t{0})}, "flat")};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("'axis' is given twice"));
}
TEST(OnnxGraph, WrongNumberOfInputs) {
  Model m = reluModel();
  m.nodes = {node("Add", {"x"}, {"y"}, {}, "sum")};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("node sum (Add) has 1 inputs: 2 wanted"));
  m.nodes = {node("Add", {"x", "x", "x"}, {"y"}, {}, "sum")};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("node sum (Add) has 3 inputs: 2 wanted"));
}
TEST(OnnxGraph, InputOfUnknownType) {
  Model m = reluModel();
  m.inputs = {value("x", 99, {"1"})};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("input 'x': element type 99 is not supported"));
}
TEST(OnnxGraph, NestingTooDeep) {
  std::string g = message([](auto& w) { w.add_string(2, "innermost"); });
  for (int i = 0; i < 300; i++)
    g = message([&](auto& w) { w.add_message(1, node("If", {"c"}, {"o"}, {attrGraph("then_branch", g)})); });
  EXPECT_THAT(importError(message([&](auto& w) { w.add_int64(1, 8), w.add_message(7, g); })),
              HasSubstr("nested more than"));
}
TEST(OnnxGraph, FunctionThatCallsItself) {
  Model m = reluModel();
  m.opsets["local"] = 1;
  m.functions = {function("F", {"a"}, {"b"}, {node("F", {"a"}, {"b"}, {}, "", "local")})};
  m.nodes = {node("F", {"x"}, {"y"}, {}, "call", "local")};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("nested more than"));
}
TEST(OnnxGraph, FunctionsThatGrowWithoutBound) {
  Model m = reluModel();
  m.opsets["local"] = 1;
  m.functions = {function("F0", {"a"}, {"b"}, {node("Relu", {"a"}, {"b"})})};
  for (int i = 1; i < 40; i++) {
    std::string inner = "F" + std::to_string(i - 1);
    m.functions.push_back(
        function("F" + std::to_string(i), {"a"}, {"b"},
                 {node(inner, {"a"}, {"t"}, {}, "", "local"), node(inner, {"t"}, {"b"}, {}, "", "local")}));
  }
  m.nodes = {node("F39", {"x"}, {"y"}, {}, "call", "local")};
  EXPECT_THAT(importError(m.bytes()), HasSubstr("once its functions are inlined"));
}
TEST(OnnxGraph, NamesAreShownOnOneLine) {
  Model m = reluModel();
  m.nodes = {node("Relu", {"gho\nst"}, {"y"}, {}, "re\nlu")};
  EXPECT_THAT(importError(m.bytes()), AllOf(HasSubstr("re\\x0alu"), HasSubstr("gho\\x0ast")));
}

}  // namespace
}  // namespace rutter::onnxwriter
