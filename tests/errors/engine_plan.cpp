// Plans that are well-formed FlatBuffers and wrong: each is refused with a line that says where, before any code runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/context.h"
#include "runtime_plans.h"

namespace rutter::runtime {
namespace {

using namespace testing_;
using testing::HasSubstr;

template <typename E = UserError>
std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}
/// What loading says after `spoil` has been at a good plan.
std::string whyNot(const std::function<void(SumTwice&)>& spoil) {
  SumTwice p;
  spoil(p);
  return message([&] { p.load(); });
}
fb::LaunchT& launchOf(SumTwice& p, size_t i = 0) {
  return *p.plan.regions[0]->code[i]->action.AsLaunch();
}

TEST(EnginePlan, TheUnspoiltOneLoads) {
  SumTwice().load();
}
TEST(EnginePlan, ExpressionsReferToEarlierOnes) {
  EXPECT_THAT(whyNot([](auto& p) { p.expr(fb::DimOp::Add, int(p.plan.exprs.size()), 0); }),
              HasSubstr("does not refer to earlier"));
  EXPECT_THAT(whyNot([](auto& p) { p.expr(fb::DimOp::Mul, 0, -1); }), HasSubstr("does not refer to earlier"));
  EXPECT_THAT(whyNot([](auto& p) { p.expr(fb::DimOp(9), 0, 0); }), HasSubstr("unknown operation 9"));
  EXPECT_THAT(whyNot([](auto& p) { p.inputDim(2, 0); }), HasSubstr("reads input 2 of 2"));
  EXPECT_THAT(whyNot([](auto& p) { p.inputDim(1, 2); }), HasSubstr("reads axis 2 of input 1"));
  EXPECT_THAT(whyNot([](auto& p) { p.expr(fb::DimOp::FloorDiv, 0, p.constant(0)); }), HasSubstr("divides by zero"));
  EXPECT_THAT(whyNot([](auto& p) { p.mul(p.constant(INT64_MAX), p.constant(2)); }), HasSubstr("exceeds 64 bits"));
}
TEST(EnginePlan, InputsAndOutputs) {
  EXPECT_THAT(whyNot([](auto& p) { p.plan.profiles = 0; }), HasSubstr("0 profiles"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.profiles = 2; }), HasSubstr("'x' lacks ranges"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[1]->name = "x"; }), HasSubstr("two inputs or outputs named 'x'"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->name = ""; }), HasSubstr("without a name"));
  EXPECT_THAT(whyNot([](auto& p) { std::swap(p.plan.io[1], p.plan.io[2]); }), HasSubstr("input 'y' after the outputs"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->dtype = 18; }), HasSubstr("'x' has unknown element type 18"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->dtype = 17; }), HasSubstr("strings"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->dims[1] = 99; }), HasSubstr("x is expression 99"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[2]->dims.assign(9, 0); }), HasSubstr("'z' has rank 9"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->min[0] = 9; }), HasSubstr("min <= opt <= max"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->min[0] = -1; }), HasSubstr("min <= opt <= max"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->order = {0, 0}; }), HasSubstr("no permutation"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.io[0]->dim_names = {"batch"}; }), HasSubstr("names 1 of 2 axes"));
}
TEST(EnginePlan, BuffersLieInTheirSections) {
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[0]->io = 2; }), HasSubstr("stands for input or output 2"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[0]->io = -1; }), HasSubstr("stands for input or output -1"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[0]->size = -1; }), HasSubstr("size of buffer 0 is expression -1"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[3]->offset = 65; }),
              HasSubstr("takes 160 bytes at 65 of an arena of 224"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[3]->offset = -64; }), HasSubstr("begins at -64"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.arena_bytes = -1; }), HasSubstr("arena of -1"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[3]->place = fb::Place(7); }), HasSubstr("unknown place 7"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[0]->size = p.constant(1000); }),
              HasSubstr("buffer 0 is larger than 'x'"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.buffers[0]->size = p.constant(-1); }), HasSubstr("buffer 0 has -1 bytes"));
  EXPECT_THAT(whyNot([](auto& p) {
                static const std::string w(64, 'w');
                p.parts.weights = {{0, w}};
                p.buffer(fb::Place::Weights, -1, 60, -1, 5);
              }),
              HasSubstr("takes 5 bytes at 60 of 64 bytes of weights"));
}
TEST(EnginePlan, InstructionsReferToWhatExists) {
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).refs[0] = fb::Ref(4, -1); }), HasSubstr("buffer 4 of 4"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).refs[0] = fb::Ref(-1, -1); }), HasSubstr("buffer -1 of 4"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).refs[0] = fb::Ref(0, 99); }),
              HasSubstr("offset of instruction 0 is expression 99"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).refs[0] = fb::Ref(0, p.constant(1000)); }),
              HasSubstr("reaches outside"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).kernel = 2; }), HasSubstr("launches kernel 2 of 2"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).dims = {-1}; }),
              HasSubstr("an extent of instruction 0 is expression -1"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).tasks = 1000; }), HasSubstr("task count of instruction 0"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).tasks = p.constant(-3); }), HasSubstr("reaches outside"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).schedule = 3; }), HasSubstr("schedule 3"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).grain = 0; }), HasSubstr("grain 0"));
  EXPECT_THAT(whyNot([](auto& p) { launchOf(p).scratch = -1; }), HasSubstr("-1 bytes of scratch"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.regions[0]->code[1]->layer = 2; }), HasSubstr("layer 2 of 2"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.regions[0]->code[1]->action.Reset(); }),
              HasSubstr("instruction 1 does nothing"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.regions.push_back(std::make_unique<fb::RegionT>()); }),
              HasSubstr("control flow is not supported"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.regions.clear(); }), HasSubstr("0 regions"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.kernels[1] = "add_rows"; }), HasSubstr("kernel 'add_rows'"));
  EXPECT_THAT(whyNot([](auto& p) { p.plan.layers[0]->flops = 1000; }), HasSubstr("flops of a layer"));
}
TEST(EnginePlan, CopiesAndReferenceNodes) {
  auto withCopy = [](int from, int to, int64_t bytes) {
    return whyNot([=](SumTwice& p) {
      fb::CopyT c;
      c.from = std::make_unique<fb::Ref>(from, -1);
      c.to = std::make_unique<fb::Ref>(to, -1);
      c.bytes = p.constant(bytes);
      p.instruction("copy").action.Set(std::move(c));
    });
  };
  EXPECT_EQ(withCopy(0, 2, 20), "nothing was thrown");
  EXPECT_THAT(withCopy(0, 1, 20), HasSubstr("instruction 2 writes to an input"));
  EXPECT_THAT(withCopy(0, 2, 200), HasSubstr("instruction 2 reaches outside"));
  EXPECT_THAT(withCopy(0, 2, -4), HasSubstr("instruction 2 reaches outside"));
  EXPECT_THAT(whyNot([](auto& p) { p.instruction("copy").action.Set(fb::CopyT()); }),
              HasSubstr("copies from or to nowhere"));
  auto withReference = [](const std::string& op, std::vector<uint8_t> attrs) {
    return whyNot([&](SumTwice& p) {
      fb::ReferenceT r;
      r.op = op;
      r.attrs = attrs;
      p.instruction("node").action.Set(std::move(r));
    });
  };
  EXPECT_THAT(withReference("NoSuchOperator", encodeAttrs({})),
              HasSubstr("operator 'NoSuchOperator', which this version does not know"));
  EXPECT_THAT(withReference("Add", {1, 2, 3}), HasSubstr("instruction 2 (Add): truncated"));
}
TEST(EnginePlan, CodeThatDoesNotFit) {
  EXPECT_THAT(whyNot([](auto& p) { p.plan.kernels[0] = "no_such_kernel"; }),
              HasSubstr("kernel 'no_such_kernel' is not in its code"));
  SumTwice p;
  p.parts.code = "not an ELF file";
  std::string bytes = writeEngine(p.parts);
  EXPECT_THAT(message([&] { Engine::load(Blob::copy(bytes)); }), HasSubstr("code section that cannot be loaded"));
}
TEST(EnginePlan, OtherMachinesAndTargets) {
  SumTwice p;
  p.parts.features = featuresOf(Isa::kAvx512);
  std::string bytes = p.write();
  LoadOptions old;
  old.available = featuresOf(Isa::kAvx2);
  EXPECT_EQ(message([&] { Engine::load(Blob::copy(bytes), old); }),
            "engine needs avx512f,avx512bw,avx512dq,avx512vl, which this machine does not have: build it again here, "
            "or with --isa=avx2");
  p.parts.target = "abacus";
  EXPECT_THAT(message([&] { Engine::load(Blob::copy(p.write())); }), HasSubstr("target 'abacus'"));
}
// The loader past its checksums, on the plan alone: whatever single byte is wrong, it ends in a plan or in a UserError,
// and what it accepts evaluates at every shape of its profile without leaving its buffers.
TEST(EnginePlan, AlteredPlansBehindTheChecksum) {
  flatbuffers::FlatBufferBuilder b;
  SumTwice p;
  b.Finish(fb::Plan::Pack(b, &p.plan));
  const std::vector<uint8_t> good(b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize());
  std::mt19937 random(1);
  int accepted = 0;
  for (size_t i = 0; i < good.size(); i++)
    for (uint8_t v : {uint8_t(0), uint8_t(0xff), uint8_t(good[i] ^ 1), uint8_t(random())}) {
      alignas(64) static uint8_t bytes[1 << 14];
      ASSERT_LT(good.size(), sizeof bytes);
      std::copy(good.begin(), good.end(), bytes);
      bytes[i] = v;
      try {
        openPlan({reinterpret_cast<char*>(bytes), good.size()}, 0);
        accepted++;
      } catch (const UserError&) {
      }
    }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace rutter::runtime
