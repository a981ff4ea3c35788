// Bad data in good shapes: indices outside their axis, division by zero, NaN and infinity, on compiled engines.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "compiler/compile.h"
#include "net.h"
#include "runtime/context.h"
#include "runtime/engine.h"

namespace rutter::test {
namespace {

using ir::DType;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Ints = std::vector<int64_t>;
using Tensors = std::vector<ir::Tensor>;

// An engine of a net and one context, which lives through all runs.
class Compiled {
 public:
  explicit Compiled(const Net& n, const std::string& isa = "", const passes::Profile& profile = {}) {
    frontend::Model m;
    m.graph = n.graph->clone();
    compiler::BuildOptions o;
    o.profiles = {profile};
    o.threads = 2;
    o.isa = isa;
    compiler::KernelCache cache;
    const auto built = compiler::buildEngine(m, o, cache);
    references = built.referenceNodes;
    const auto engine = runtime::Engine::load(runtime::Blob::copy(runtime::writeEngine(built.parts)));
    context_.emplace(engine, std::make_shared<runtime::Pool>(runtime::PoolOptions{.threads = 2}));
    inputs_ = engine->inputs();
    for (int i = inputs_; i < engine->ioCount(); i++) types_.push_back(DType(engine->io(i).dtype()));
  }
  Tensors run(const Tensors& inputs) {
    for (int i = 0; i < inputs_; i++) context_->setInputShape(i, inputs[size_t(i)].shape());
    for (int i = 0; i < inputs_; i++) context_->setAddress(i, const_cast<void*>(inputs[size_t(i)].data()));
    Tensors out;
    for (size_t i = 0; i < types_.size(); i++) out.emplace_back(types_[i], context_->shape(inputs_ + int(i)));
    for (size_t i = 0; i < types_.size(); i++) context_->setAddress(inputs_ + int(i), out[i].mutableData());
    context_->run();
    return out;
  }
  /// What a run fails with, "" if it does not.
  std::string error(const Tensors& inputs) {
    try {
      run(inputs);
    } catch (const runtime::ExecutionError& e) {
      return e.what();
    }
    return "";
  }
  int references = 0;  ///< nodes that are not compiled

 private:
  std::optional<runtime::Context> context_;
  int inputs_ = 0;
  std::vector<DType> types_;
};

// NaN and infinities in the same places, the rest within 1e-5 of the norm.
void expectAlike(const ir::Tensor& y, const ir::Tensor& want, const std::string& what) {
  ASSERT_EQ(y.dtype(), want.dtype()) << what;
  ASSERT_EQ(y.shape(), want.shape()) << what;
  double error = 0, norm = 0;
  for (int64_t i = 0; i < want.size(); i++) {
    const double a = want.getDouble(i), b = y.getDouble(i);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
          << what << ": element " << i << " is " << b << ", not " << a;
      continue;
    }
    error += (a - b) * (a - b);
    norm += a * a;
  }
  EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(norm) + 1e-12) << what;
}
void expectAlike(const Net& n, Compiled& engine, const Tensors& inputs, const std::string& what) {
  const Tensors want = ops::evalGraph(*n.graph, inputs), y = engine.run(inputs);
  ASSERT_EQ(y.size(), want.size());
  for (size_t k = 0; k < y.size(); k++) expectAlike(y[k], want[k], what);
}

ir::Tensor ints(const Ints& shape, const Ints& v, DType t = DType::kI64) {
  ir::Tensor r(t, shape);
  for (int64_t i = 0; i < r.size(); i++) r.setInt(i, v[size_t(i) % v.size()]);
  return r;
}

struct IndexCase {
  std::string op;
  Ints indices;  // their shape
  DType type = DType::kI64;
  Net::Attrs attrs = {};
  Ints updates = {};      // shape, of Scatter…
  bool compiled = false;  // or run by the reference
  bool relu = false;      // something follows that may be fused
  int64_t extent = 4;     // of the axis that is indexed, or of the shorter one of two
  int64_t beyond = 4;     // the first index that none of them has
};
void PrintTo(const IndexCase& c, std::ostream* os) {
  *os << c.op;
}

class RunData : public testing::TestWithParam<IndexCase> {};

TEST_P(RunData, IndicesOutsideTheirAxis) {
  const IndexCase& c = GetParam();
  Net n;
  std::vector<ir::Value*> in = {n.input("x", {4, 5}), n.input("i", ir::toDims(c.indices), c.type)};
  if (!c.updates.empty()) in.push_back(n.input("u", ir::toDims(c.updates)));
  ir::Value* y = n.op(c.op, in, c.attrs, "lookup");
  n.output(c.relu ? n.op("Relu", {y}) : y);
  Compiled engine(n);
  if (c.compiled) {
    EXPECT_EQ(engine.references, 0);
  }
  Tensors data = randomInputs(*n.graph, 3);
  const auto with = [&](const Ints& v) {
    Tensors t = data;
    t[1] = ints(c.indices, v, c.type);
    return t;
  };
  const Ints good = {0, c.extent - 1, -1, -c.extent, 2, -2};
  expectAlike(n, engine, with(good), "before");
  const int64_t far = c.type == DType::kI32 ? INT32_MAX : INT64_MAX;
  const int64_t count = ir::elementCount(c.indices);
  for (int64_t bad : {c.beyond, -c.beyond - 1, far, -far - 1})
    for (int64_t at : {int64_t(0), count / 2, count - 1}) {
      Ints v(size_t(count), 1);
      v[size_t(at)] = bad;
      const std::string text = engine.error(with(v));
      EXPECT_THAT(text, AllOf(HasSubstr("layer 'lookup"), HasSubstr("index"), Not(HasSubstr("\n"))))
          << bad << " at " << at;
      expectAlike(n, engine, with(good), "after an error");
    }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, RunData,
    testing::Values(IndexCase{.op = "Gather", .indices = {7}, .compiled = true},
                    IndexCase{.op = "Gather", .indices = {7}, .type = DType::kI32, .compiled = true, .relu = true},
                    IndexCase{.op = "Gather",
                              .indices = {3, 9},
                              .attrs = {{"axis", int64_t(1)}},
                              .compiled = true,
                              .extent = 5,
                              .beyond = 5},
                    IndexCase{.op = "Gather",
                              .indices = {40},
                              .type = DType::kI32,
                              .attrs = {{"axis", int64_t(-1)}},
                              .compiled = true,
                              .extent = 5,
                              .beyond = 5},
                    IndexCase{.op = "Gather", .indices = {1}, .compiled = true},
                    IndexCase{.op = "GatherElements", .indices = {3, 5}},
                    IndexCase{.op = "GatherElements",
                              .indices = {4, 6},
                              .type = DType::kI32,
                              .attrs = {{"axis", int64_t(1)}},
                              .extent = 5,
                              .beyond = 5},
                    IndexCase{.op = "GatherND", .indices = {3, 2}, .beyond = 5},
                    IndexCase{.op = "GatherND", .indices = {2, 2, 1}},
                    IndexCase{.op = "ScatterElements", .indices = {2, 5}, .updates = {2, 5}},
                    IndexCase{.op = "ScatterElements",
                              .indices = {2, 5},
                              .attrs = {{"reduction", std::string("add")}, {"axis", int64_t(1)}},
                              .updates = {2, 5},
                              .extent = 5,
                              .beyond = 5},
                    IndexCase{.op = "ScatterND", .indices = {3, 1}, .updates = {3, 5}},
                    IndexCase{.op = "ScatterND", .indices = {3, 2}, .updates = {3}, .beyond = 5}));

// The table is a constant, the rows that are looked up go into a sum and a normalisation, their number is free.
TEST(RunData, AnEmbeddingOfATokenThatThereIsNot) {
  Net n;
  ir::Value* tokens = n.input("tokens", {1, ir::Dim::symbol("n")}, DType::kI64);
  ir::Value* rows = n.op("Gather", {n.random({30, 24}), tokens}, {}, "embedding");
  n.output(n.op("LayerNormalization", {n.op("Add", {rows, n.random({24})}), n.random({24}), n.random({24})}));
  Compiled engine(n, "", {{"tokens", {{1, 1}, {1, 8}, {1, 500}}}});
  EXPECT_EQ(engine.references, 0);
  for (int64_t length : {1, 7, 500}) {
    Ints v(size_t(length), 29);
    EXPECT_EQ(engine.error({ints({1, length}, v)}), "");
    v.back() = 30;
    EXPECT_THAT(engine.error({ints({1, length}, v)}), HasSubstr("embedding"));
  }
}

TEST(RunData, SlicesEndWhereTheDataEnds) {
  for (const auto& [start, end, step] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {INT64_MIN, INT64_MAX, 1}, {2, INT64_MAX, 2}, {-3, 100, 1}, {INT64_MAX, INT64_MIN, -1}, {100, 200, 1}}) {
    Net n;
    n.output(n.op("Slice", {n.input("x", {ir::Dim::symbol("n"), 3}), n.ints({start}), n.ints({end}), n.ints({0}),
                            n.ints({step})}));
    Compiled engine(n, "", {{"x", {{1, 3}, {4, 3}, {9, 3}}}});
    for (int64_t rows : {1, 2, 9}) {
      Net fixed;
      fixed.output(fixed.op("Slice", {fixed.input("x", {rows, 3}), fixed.ints({start}), fixed.ints({end}),
                                      fixed.ints({0}), fixed.ints({step})}));
      const Tensors x = randomInputs(*fixed.graph, unsigned(rows));
      expectAlike(engine.run(x)[0], ops::evalGraph(*fixed.graph, x)[0], fmt::format("{} {} {}", start, end, step));
    }
  }
}

TEST(RunData, IntegersDividedByZero) {
  for (const char* op : {"Div", "Mod"})
    for (DType t : {DType::kI32, DType::kI64}) {
      Net n;
      n.output(n.op(op, {n.input("a", {19}, t), n.input("b", {19}, t)}, {}, "divide"));
      Compiled engine(n);
      const Tensors good = {ints({19}, {7, -7, 0, 5}, t), ints({19}, {2, -3, 1}, t)};
      expectAlike(n, engine, good, op);
      Ints divisors(19, 3);
      divisors[18] = 0;
      EXPECT_THAT(engine.error({good[0], ints({19}, divisors, t)}),
                  AllOf(HasSubstr("layer 'divide"), HasSubstr("zero")))
          << op;
      expectAlike(n, engine, good, op);
    }
}

// Every few elements of a float input are NaN, an infinity or a zero of either sign.
Tensors poisoned(const ir::Graph& g, unsigned seed, int every) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double special[] = {NAN, kInf, -kInf, 0.0, -0.0};
  Tensors in = randomInputs(g, seed);
  std::mt19937 rng(seed);
  for (ir::Tensor& t : in)
    for (int64_t i = 0; ir::isFloat(t.dtype()) && i < t.size(); i++)
      if (rng() % unsigned(every) == 0) t.setDouble(i, special[rng() % (every > 1 ? 5 : 3)]);
  return in;
}

struct SpecialCase {
  std::string name;
  std::function<void(Net&)> fill;
};
void PrintTo(const SpecialCase& c, std::ostream* os) {
  *os << c.name;
}
class Specials : public testing::TestWithParam<SpecialCase> {};

TEST_P(Specials, AsInTheOracle) {
  Net n;
  GetParam().fill(n);
  for (const char* isa : {"", "generic"}) {
    Compiled engine(n, isa);
    for (int every : {1, 3, 40})
      for (unsigned seed : {1u, 2u})
        expectAlike(n, engine, poisoned(*n.graph, seed, every),
                    fmt::format("isa '{}', one special value in {}, seed {}", isa, every, seed));
    expectAlike(n, engine, randomInputs(*n.graph, 5), "ordinary values afterwards");
  }
}

std::vector<SpecialCase> specials() {
  std::vector<SpecialCase> all;
  const auto add = [&](const std::string& name, std::function<void(Net&)> f) { all.push_back({name, std::move(f)}); };
  add("conv", [](Net& n) {
    n.output(n.op("Conv", {n.input("x", {1, 5, 9, 11}), n.random({7, 5, 3, 3}), n.random({7})},
                  {{"pads", Ints{1, 1, 1, 1}}}));
  });
  add("conv_relu", [](Net& n) {
    n.output(n.op("Relu", {n.op("Conv", {n.input("x", {1, 16, 8, 8}), n.random({32, 16, 3, 3}), n.random({32})},
                                {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}})}));
  });
  add("conv_1x1_clip", [](Net& n) {
    ir::Value* y = n.op("Conv", {n.input("x", {1, 19, 5, 7}), n.random({33, 19, 1, 1}), n.random({33})});
    n.output(n.op("Clip", {y, n.scalar(0), n.scalar(6)}));
  });
  add("conv_depthwise", [](Net& n) {
    n.output(n.op("Conv", {n.input("x", {1, 20, 9, 9}), n.random({20, 1, 3, 3})},
                  {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t(20)}}));
  });
  add("conv_transpose", [](Net& n) {
    n.output(n.op("ConvTranspose", {n.input("x", {1, 6, 5, 5}), n.random({6, 3, 2, 2})}, {{"strides", Ints{2, 2}}}));
  });
  add("matmul", [](Net& n) { n.output(n.op("MatMul", {n.input("x", {13, 37}), n.random({37, 21})})); });
  add("matmul_both", [](Net& n) { n.output(n.op("MatMul", {n.input("x", {2, 5, 9}), n.input("y", {2, 9, 17})})); });
  add("gemv", [](Net& n) { n.output(n.op("MatMul", {n.input("x", {1, 70}), n.random({70, 33})})); });
  add("gemm",
      [](Net& n) { n.output(n.op("Gemm", {n.input("x", {6, 10}), n.random({10, 18}), n.input("c", {6, 18})})); });
  for (int64_t axis : {1, 2}) {
    add(fmt::format("softmax_{}", axis),
        [axis](Net& n) { n.output(n.op("Softmax", {n.input("x", {5, 7, 19})}, {{"axis", axis}})); });
    add(fmt::format("log_softmax_{}", axis),
        [axis](Net& n) { n.output(n.op("LogSoftmax", {n.input("x", {5, 7, 19})}, {{"axis", axis}})); });
  }
  add("layer_norm",
      [](Net& n) { n.output(n.op("LayerNormalization", {n.input("x", {11, 29}), n.random({29}), n.random({29})})); });
  add("attention", [](Net& n) {
    ir::Value* scores = n.op("MatMul", {n.input("q", {2, 9, 8}), n.input("k", {2, 8, 9})});
    n.output(n.op("MatMul", {n.op("Softmax", {scores}), n.input("v", {2, 9, 8})}));
  });
  for (const char* op : {"MaxPool", "AveragePool"})
    for (int64_t pad : {0, 1})
      add(fmt::format("{}_{}", op, pad), [op, pad](Net& n) {
        n.output(n.op(op, {n.input("x", {1, 19, 9, 9})},
                      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{pad, pad, pad, pad}}}));
      });
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"})
    add(op, [op](Net& n) { n.output(n.op(op, {n.input("x", {1, 19, 7, 7})})); });
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                         "ReduceSumSquare", "ReduceLogSumExp"})
    for (int64_t axis : {0, 1})
      add(fmt::format("{}_{}", op, axis), [op, axis](Net& n) {
        n.output(n.op(op, {n.input("x", {9, 37}), n.ints({axis})}, {{"keepdims", int64_t(0)}}));
      });
  for (const char* op : {"ArgMax", "ArgMin"})
    for (int64_t axis : {0, 1})
      add(fmt::format("{}_{}", op, axis),
          [op, axis](Net& n) { n.output(n.op(op, {n.input("x", {9, 37})}, {{"axis", axis}})); });
  for (const char* op : {"Relu",      "Sigmoid", "Tanh",     "Exp",  "Log",   "Sqrt",      "Erf",
                         "Abs",       "Neg",     "Floor",    "Ceil", "Round", "Sign",      "Reciprocal",
                         "Softplus",  "Mish",    "Elu",      "Selu", "Celu",  "LeakyRelu", "HardSigmoid",
                         "HardSwish", "Gelu",    "Softsign", "Sin",  "Cos",   "Atan",      "ThresholdedRelu",
                         "IsNaN",     "IsInf"})
    add(op, [op](Net& n) { n.output(n.op(op, {n.input("x", {7, 19})})); });
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Equal", "Less", "GreaterOrEqual"})
    add(op, [op](Net& n) { n.output(n.op(op, {n.input("x", {7, 19}), n.input("y", {7, 19})})); });
  add("silu", [](Net& n) {
    ir::Value* x = n.input("x", {7, 19});
    n.output(n.op("Mul", {x, n.op("Sigmoid", {x})}));
  });
  add("gelu_of_parts", [](Net& n) {
    ir::Value* x = n.input("x", {7, 19});
    ir::Value* e = n.op("Add", {n.op("Erf", {n.op("Div", {x, n.scalar(std::sqrt(2))})}), n.scalar(1)});
    n.output(n.op("Mul", {n.op("Mul", {x, e}), n.scalar(0.5)}));
  });
  add("hard_swish_of_parts", [](Net& n) {
    ir::Value* x = n.input("x", {7, 19});
    ir::Value* c = n.op("Clip", {n.op("Add", {x, n.scalar(3)}), n.scalar(0), n.scalar(6)});
    n.output(n.op("Div", {n.op("Mul", {x, c}), n.scalar(6)}));
  });
  add("what_algebra_must_not_cancel", [](Net& n) {
    ir::Value* x = n.input("x", {7, 19});
    n.output(n.op("Mul", {x, n.scalar(0)}));
    n.output(n.op("Sub", {x, x}));
    n.output(n.op("Div", {x, x}));
    n.output(n.op("Add", {n.op("Mul", {x, n.scalar(2)}), n.op("Mul", {x, n.scalar(-2)})}));
    n.output(n.op("Equal", {x, x}));
  });
  add("where", [](Net& n) {
    ir::Value* x = n.input("x", {7, 19});
    n.output(n.op("Where", {n.op("Less", {x, n.scalar(0)}), n.scalar(-1e9), x}));
  });
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners"})
      add(fmt::format("resize_{}_{}", mode, coordinates), [mode, coordinates](Net& n) {
        n.output(n.op("Resize", {n.input("x", {1, 5, 6, 7}), nullptr, nullptr, n.ints({1, 5, 12, 14})},
                      {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinates)}}));
      });
  for (DType t : {DType::kI8, DType::kU8, DType::kI32, DType::kI64, DType::kBool, DType::kF16, DType::kF64})
    add("cast_" + std::string(ir::dtypeName(t)),
        [t](Net& n) { n.output(n.op("Cast", {n.input("x", {7, 19})}, {{"to", int64_t(ir::dtypeToOnnx(t))}})); });
  add("movement", [](Net& n) {
    ir::Value* x = n.input("x", {6, 8});
    n.output(n.op("Transpose", {x}, {{"perm", Ints{1, 0}}}));
    n.output(n.op("Concat", {x, n.op("Neg", {x})}, {{"axis", int64_t(1)}}));
    n.output(n.op("Pad", {x, n.ints({1, 0, 0, 3})}));
  });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Nets, Specials, testing::ValuesIn(specials()), [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace rutter::test
