// A build shows its graph to whoever asks, before the first pass and after each.
#include "compiler/compile.h"
#include "net.h"

namespace rutter::test {
namespace {

TEST(PassesDump, OnceAPassInOrder) {
  Net n;
  ir::Value* x = n.input("x", {2, 3});
  n.output(n.op("Relu", {n.op("Identity", {n.op("Identity", {x})})}));
  frontend::Model m;
  m.graph = n.graph->clone();
  compiler::BuildOptions o;
  o.profiles = {{}};
  std::vector<std::string> names, wanted = {"input"};
  std::vector<int> nodes;
  o.dumpPass = [&](std::string_view pass, const ir::Graph& g) {
    names.emplace_back(pass);
    nodes.push_back(countNodes(g));
    EXPECT_NE(g.print().find("Relu"), std::string::npos) << pass;
  };
  compiler::decideModel(m, o);
  for (const auto& p : passes::pipeline()) wanted.push_back(p.name);
  EXPECT_EQ(names, wanted);
  EXPECT_EQ(nodes.front(), 3);
  EXPECT_EQ(nodes.back(), 1);
}

}  // namespace
}  // namespace rutter::test
