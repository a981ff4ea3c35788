// Names are the identity of values: no two have the same, whatever is renamed.
#include <gtest/gtest.h>

#include "ir/graph.h"

namespace rutter::ir {
namespace {

TEST(GraphNames, ALaterValueNeverGetsAGivenName) {
  Graph g;
  Value *x = g.makeValue("x"), *y = g.makeValue("y");
  g.rename(x, "z");
  EXPECT_EQ(x->name, "z");
  EXPECT_EQ(g.makeValue("z")->name, "z.1");
  EXPECT_EQ(g.clone()->makeValue("z")->name, "z.2");  // a copy knows, too
  // Names as the graph makes them up itself.
  g.rename(y, "z.2");
  EXPECT_EQ(g.makeValue("z")->name, "z.3");
}

TEST(GraphNames, TakenNamesStayTheirs) {
  Graph g;
  Value *x = g.makeValue("x"), *y = g.makeValue("y");
  EXPECT_THROW(g.rename(x, "y"), UserError);
  EXPECT_EQ(x->name, "x");
  g.rename(x, "x");
  // An old name is free again: two values can change places.
  g.rename(x, "between");
  g.rename(y, "x");
  g.rename(x, "y");
  EXPECT_EQ(x->name, "y");
  EXPECT_EQ(y->name, "x");
  EXPECT_EQ(g.makeValue("x")->name, "x.1");
  EXPECT_EQ(g.makeValue("between")->name, "between");
}

}  // namespace
}  // namespace rutter::ir
