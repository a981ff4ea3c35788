#include "net.h"

namespace rutter::ops::test {
namespace {
Tensor iota(Ints shape) {
  Tensor t(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.size(); i++) t.setDouble(i, double(i));
  return t;
}

TEST(Movement, Reshape) {
  Tensor x = iota({2, 3, 4});
  EXPECT_EQ(eval("Reshape", {x, i64({4, -1})}).shape(), (Ints{4, 6}));
  EXPECT_EQ(eval("Reshape", {x, i64({0, 0, 2, -1})}).shape(), (Ints{2, 3, 2, 2}));
  EXPECT_EQ(eval("Reshape", {iota({0, 3}), i64({3, 0})}, {{"allowzero", int64_t(1)}}).shape(), (Ints{3, 0}));
  EXPECT_THAT(userError([&] { eval("Reshape", {x, i64({5, -1})}); }), HasSubstr("24 is not divisible by 5"));
  EXPECT_THAT(userError([&] { eval("Reshape", {x, i64({5, 5})}); }),
              HasSubstr("does not hold the elements of 2x3x4: 24 and 25 differ"));
  EXPECT_THAT(userError([&] { eval("Reshape", {x, i64({-1, -1})}); }), HasSubstr("more than one -1"));
  EXPECT_EQ(eval("Flatten", {x}, {{"axis", int64_t(2)}}).shape(), (Ints{6, 4}));
  EXPECT_EQ(eval("Flatten", {x}, {{"axis", int64_t(0)}}).shape(), (Ints{1, 24}));
  EXPECT_EQ(eval("Unsqueeze", {x, i64({0, -1})}).shape(), (Ints{1, 2, 3, 4, 1}));
  EXPECT_EQ(eval("Squeeze", {iota({1, 3, 1}), i64({-1})}).shape(), (Ints{1, 3}));
  EXPECT_EQ(eval("Squeeze", {iota({1, 3, 1})}).shape(), (Ints{3}));
  EXPECT_THAT(userError([&] { eval("Squeeze", {x, i64({1})}); }),
              HasSubstr("axis 1 to squeeze out must have extent 1: 3 and 1 differ"));
}
TEST(Movement, Transpose) {
  expectTensor(eval("Transpose", {iota({2, 3})}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expectTensor(eval("Transpose", {iota({2, 1, 3})}, {{"perm", Ints{1, 2, 0}}}), {1, 3, 2}, {0, 3, 1, 4, 2, 5});
  EXPECT_THAT(userError([] { eval("Transpose", {iota({2, 3})}, {{"perm", Ints{0, 0}}}); }),
              HasSubstr("perm [0,0] is not a permutation of 2 axes"));
}
TEST(Movement, ExpandAndTile) {
  expectTensor(eval("Expand", {iota({2, 1}), i64({3, 1, 2})}), {3, 2, 2}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  expectTensor(eval("Tile", {iota({2, 2}), i64({2, 2})}), {4, 4}, {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
}
TEST(Movement, ConcatAndSplit) {
  expectTensor(eval("Concat", {iota({2, 2}), f32({2, 1}, {8, 9})}, {{"axis", int64_t(-1)}}), {2, 3},
               {0, 1, 8, 2, 3, 9});
  EXPECT_THAT(userError([] { eval("Concat", {iota({2, 2}), iota({3, 1})}, {{"axis", int64_t(1)}}); }),
              HasSubstr("parts 0 and 1 must agree on axis 0: 2 and 3 differ"));
  auto parts = evalAll("Split", {iota({1, 5}), i64({2, 3})}, {{"axis", int64_t(1)}}, 2);
  expectTensor(parts[0], {1, 2}, {0, 1});
  expectTensor(parts[1], {1, 3}, {2, 3, 4});
  parts = evalAll("Split", {iota({7})}, {{"num_outputs", int64_t(3)}}, 3);
  expectTensor(parts[1], {3}, {3, 4, 5});
  expectTensor(parts[2], {1}, {6});
  EXPECT_THAT(userError([] { evalAll("Split", {iota({5}), i64({2, 2})}, {}, 2); }),
              HasSubstr("must add up to axis 0: 4 and 5 differ"));
}
TEST(Movement, Slice) {
  Tensor x = iota({2, 5});
  auto slice = [&](Ints s, Ints e, Ints a, Ints st) { return eval("Slice", {x, i64(s), i64(e), i64(a), i64(st)}); };
  expectTensor(slice({1}, {4}, {1}, {2}), {2, 2}, {1, 3, 6, 8});
  expectTensor(slice({-1}, {INT64_MIN}, {1}, {-2}), {2, 3}, {4, 2, 0, 9, 7, 5});
  expectTensor(slice({0, -2}, {1, INT64_MAX}, {0, 1}, {1, 1}), {1, 2}, {3, 4});
  EXPECT_EQ(slice({3}, {1}, {1}, {1}).shape(), (Ints{2, 0}));
  EXPECT_EQ(slice({10}, {-10}, {1}, {-1}).shape(), (Ints{2, 5}));
  EXPECT_THAT(userError([&] { slice({0}, {1}, {1}, {0}); }), HasSubstr("a step is 0"));
}
TEST(Movement, Gathers) {
  Tensor x = iota({3, 2});
  expectTensor(eval("Gather", {x, i64({2}, {2, -3})}), {2, 2}, {4, 5, 0, 1});
  expectTensor(eval("Gather", {x, scalar(1)}, {{"axis", int64_t(1)}}), {3}, {1, 3, 5});
  expectTensor(eval("GatherElements", {x, i64({2, 2}, {0, 2, -1, 0})}), {2, 2}, {0, 5, 4, 1});
  expectTensor(eval("GatherND", {x, i64({2, 2}, {0, 1, -1, 0})}), {2}, {1, 4});
  expectTensor(eval("GatherND", {iota({2, 2, 2}), i64({2, 1}, {1, 0})}, {{"batch_dims", int64_t(1)}}), {2, 2},
               {2, 3, 4, 5});
  EXPECT_THAT(userError([&] { eval("Gather", {x, i64({2}, {0, 3})}); }),
              HasSubstr("index 3 at position 1 is outside [-3, 3)"));
  EXPECT_THAT(userError([&] { eval("GatherElements", {x, i64({1, 1}, {-4})}); }), HasSubstr("index -4 is outside"));
  EXPECT_THAT(userError([&] { eval("GatherND", {x, i64({1}, {7})}); }),
              HasSubstr("index 7 is outside [-3, 3) of axis 0"));
}
TEST(Movement, Pad) {
  Tensor x = iota({3});
  auto pad = [&](const char* mode, Ints pads) { return eval("Pad", {x, i64(pads)}, {{"mode", std::string(mode)}}); };
  expectTensor(pad("constant", {1, 2}), {6}, {0, 0, 1, 2, 0, 0});
  expectTensor(pad("reflect", {2, 2}), {7}, {2, 1, 0, 1, 2, 1, 0});
  expectTensor(pad("edge", {2, 1}), {6}, {0, 0, 0, 1, 2, 2});
  expectTensor(pad("wrap", {2, 4}), {9}, {1, 2, 0, 1, 2, 0, 1, 2, 0});
  expectTensor(pad("constant", {-1, 1}), {3}, {1, 2, 0});
  expectTensor(eval("Pad", {iota({1, 2}), i64({1, 0}), f32({}, {7}), i64({-1})}), {1, 3}, {7, 0, 1});
  EXPECT_THAT(userError([&] { pad("reflect", {3, 0}); }), HasSubstr("reflection cannot pad axis 0 of extent 3 by 3"));
  EXPECT_THAT(userError([&] { pad("mirror", {3, 0}); }), HasSubstr("supported: constant, reflect, edge, wrap"));
}
TEST(Movement, DepthAndSpace) {
  Tensor x = iota({1, 4, 1, 2});
  expectTensor(eval("DepthToSpace", {x}, {{"blocksize", int64_t(2)}}), {1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7});
  Tensor y = iota({1, 8, 1, 1});
  expectTensor(eval("DepthToSpace", {y}, {{"blocksize", int64_t(2)}}), {1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7});
  expectTensor(eval("DepthToSpace", {y}, {{"blocksize", int64_t(2)}, {"mode", std::string("CRD")}}), {1, 2, 2, 2},
               {0, 1, 2, 3, 4, 5, 6, 7});
  expectTensor(eval("SpaceToDepth", {iota({1, 1, 2, 4})}, {{"blocksize", int64_t(2)}}), {1, 4, 1, 2},
               {0, 2, 1, 3, 4, 6, 5, 7});
}
TEST(Movement, Makers) {
  expectTensor(eval("ConstantOfShape", {i64({2, 2})}, {{"value", i64({7})}}), {2, 2}, {7, 7, 7, 7});
  expectTensor(eval("ConstantOfShape", {i64(Ints{})}), {}, {0});
  expectTensor(eval("Constant", {}, {{"value_floats", Floats{1, 2}}}), {2}, {1, 2});
  expectTensor(eval("Shape", {iota({2, 3, 4})}, {{"start", int64_t(-2)}}), {2}, {3, 4});
  expectTensor(eval("Shape", {iota({2, 3, 4})}, {{"end", int64_t(-1)}}), {2}, {2, 3});
  expectTensor(eval("Size", {iota({2, 3, 4})}), {}, {24});
  expectTensor(eval("Range", {scalar(3), scalar(9), scalar(3)}), {2}, {3, 6});
  expectTensor(eval("Range", {scalar(10), scalar(4), scalar(-2)}), {3}, {10, 8, 6});
  expectTensor(eval("Range", {f32({}, {0}), f32({}, {1}), f32({}, {0.4f})}), {3}, {0, 0.4, 0.8});
  expectTensor(eval("Range", {scalar(3), scalar(1), scalar(1)}), {0}, {});
  auto d = evalAll("Dropout", {iota({2})}, {}, 2);
  expectTensor(d[0], {2}, {0, 1});
  expectTensor(d[1], {2}, {1, 1});
}
TEST(Movement, CumSum) {
  Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expectTensor(eval("CumSum", {x, scalar(1)}), {2, 3}, {1, 3, 6, 4, 9, 15});
  expectTensor(eval("CumSum", {x, scalar(-1)}, {{"exclusive", int64_t(1)}, {"reverse", int64_t(1)}}), {2, 3},
               {5, 3, 0, 11, 6, 0});
  expectTensor(eval("CumSum", {x, scalar(0)}), {2, 3}, {1, 2, 3, 5, 7, 9});
}
}  // namespace
}  // namespace rutter::ops::test
