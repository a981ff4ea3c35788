// Shapes within the profile that the model cannot take: one line at run time, and the engine still loads.
#include <gmock/gmock.h>

#include "compiler/compile.h"
#include "net.h"
#include "runtime/context.h"
#include "runtime/engine.h"

namespace rutter::test {
namespace {

using Ints = std::vector<int64_t>;

std::string runError(const Net& n, const passes::ShapeRange& range, const Ints& shape) {
  frontend::Model m;
  m.graph = n.graph->clone();
  compiler::BuildOptions o;
  o.profiles = {{{"x", range}}};
  o.threads = 1;
  compiler::KernelCache cache;
  const auto built = compiler::buildEngine(m, o, cache);
  const auto engine = runtime::Engine::load(runtime::Blob::copy(runtime::writeEngine(built.parts)));
  runtime::Context context(engine, std::make_shared<runtime::Pool>(runtime::PoolOptions{.threads = 1}));
  try {
    context.setInputShape(0, shape);
    context.shape(1);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}
const passes::ShapeRange kImage = {{1, 3, 1, 1}, {1, 3, 8, 8}, {1, 3, 16, 16}};
ir::Dims image() {
  return {1, 3, ir::Dim::symbol("H"), ir::Dim::symbol("W")};
}

TEST(RunShapes, AWindowLargerThanTheInput) {
  Net n;
  n.output(n.op("Conv", {n.input("x", image()), n.random({4, 3, 3, 3})}));
  EXPECT_EQ(runError(n, kImage, {1, 3, 3, 5}), "");
  EXPECT_THAT(runError(n, kImage, {1, 3, 2, 5}),
              testing::AllOf(testing::HasSubstr("Conv"), testing::HasSubstr("spatial axis 0: -1 must be at least 0")));
}
TEST(RunShapes, NegativePadsThatTakeTooMuch) {
  Net n;
  n.output(n.op("Pad", {n.input("x", image()), n.ints({0, 0, -2, 0, 0, 0, -2, 0})}));
  EXPECT_EQ(runError(n, kImage, {1, 3, 5, 1}), "");
  EXPECT_THAT(runError(n, kImage, {1, 3, 3, 1}), testing::HasSubstr("at least 0"));
}
TEST(RunShapes, TooLittleToSplit) {
  Net n;
  for (ir::Value* part :
       n.many("Split", {n.input("x", image())}, 3, {{"axis", int64_t(2)}, {"num_outputs", int64_t(3)}}))
    n.output(part);
  EXPECT_EQ(runError(n, kImage, {1, 3, 5, 1}), "");                                  // 2, 2 and 1
  EXPECT_THAT(runError(n, kImage, {1, 3, 1, 1}), testing::HasSubstr("at least 0"));  // 1, 1 and -1
}

}  // namespace
}  // namespace rutter::test
