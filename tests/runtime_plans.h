#pragma once
// Plans written by hand, and engines made of them and of tests/kernels.
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/dtype.h"
#include "runtime/attrs.h"
#include "runtime/engine.h"
#include "runtime/engine_file.h"

namespace rutter::runtime::testing_ {

inline std::string testKernels() {
  std::ifstream f(RUTTER_BINARY_DIR "/lib/libtest_kernels.so", std::ios::binary);
  std::string s((std::istreambuf_iterator<char>(f)), {});
  RUTTER_CHECK(!s.empty(), "build/lib/libtest_kernels.so is missing");
  return s;
}

class PlanBuilder {
 public:
  EngineParts parts;
  fb::PlanT& plan = parts.plan;

  PlanBuilder() {
    plan.profiles = 1;
    plan.regions.push_back(std::make_unique<fb::RegionT>());
  }
  int expr(fb::DimOp op, int a, int b, int64_t value = 0) {
    plan.exprs.emplace_back(op, a, b, value);
    return int(plan.exprs.size()) - 1;
  }
  int constant(int64_t v) { return expr(fb::DimOp::Constant, 0, 0, v); }
  int inputDim(int io, int axis) { return expr(fb::DimOp::InputDim, io, axis); }
  int mul(int a, int b) { return expr(fb::DimOp::Mul, a, b); }

  struct Range {
    int64_t min, opt, max;
  };
  int io(const std::string& name, bool input, std::vector<int> dims, std::vector<Range> ranges = {},
         ir::DType t = ir::DType::kF32) {
    auto x = std::make_unique<fb::IoTensorT>();
    x->name = name;
    x->is_input = input;
    x->dtype = uint8_t(t);
    x->dims = dims;
    for (auto& r : ranges) {
      x->min.push_back(r.min);
      x->opt.push_back(r.opt);
      x->max.push_back(r.max);
    }
    plan.io.push_back(std::move(x));
    return int(plan.io.size()) - 1;
  }
  int buffer(fb::Place place, int io, int64_t offset, int size, int64_t bytes = 0) {
    auto b = std::make_unique<fb::BufferT>();
    b->place = place;
    b->io = io;
    b->offset = offset;
    b->size = size;
    b->bytes = bytes;
    plan.buffers.push_back(std::move(b));
    return int(plan.buffers.size()) - 1;
  }
  int ioBuffer(int io, int size) {
    return buffer(plan.io[size_t(io)]->is_input ? fb::Place::Input : fb::Place::Output, io, 0, size);
  }
  int layer(const std::string& name) {
    auto l = std::make_unique<fb::LayerT>();
    l->name = name;
    l->type = "Test";
    plan.layers.push_back(std::move(l));
    return int(plan.layers.size()) - 1;
  }
  fb::InstructionT& instruction(const std::string& layerName) {
    auto x = std::make_unique<fb::InstructionT>();
    x->layer = layer(layerName);
    plan.regions[0]->code.push_back(std::move(x));
    return *plan.regions[0]->code.back();
  }
  fb::LaunchT& launch(const std::string& layerName, const std::string& kernel, std::vector<int> buffers,
                      std::vector<int> dims, int tasks) {
    size_t k = 0;
    while (k < plan.kernels.size() && plan.kernels[k] != kernel) k++;
    if (k == plan.kernels.size()) plan.kernels.push_back(kernel);
    fb::LaunchT l;
    l.kernel = int(k);
    for (int b : buffers) l.refs.emplace_back(b, -1);
    l.dims = dims;
    l.tasks = tasks;
    auto& x = instruction(layerName);
    x.action.Set(std::move(l));
    return *x.action.AsLaunch();
  }
  std::string write() {
    if (!plan.kernels.empty()) parts.code = testKernels();
    return writeEngine(parts);
  }
  std::shared_ptr<const Engine> load() { return Engine::load(Blob::copy(write())); }
};

/// z[B,W] = 2 * (x[B,W] + y[B,W]) with B in 1…8, W fixed; the sum lies in the arena.
struct SumTwice : PlanBuilder {
  int x, y, z, rows, bytes;
  explicit SumTwice(int64_t width = 5, Range batch = {1, 4, 8}) {
    rows = inputDim(0, 0);
    int w = constant(width);
    int elements = mul(rows, w);
    bytes = mul(elements, constant(4));
    x = io("x", true, {rows, w}, {batch, {width, width, width}});
    y = io("y", true, {rows, w}, {batch, {width, width, width}});
    z = io("z", false, {rows, w});
    int bx = ioBuffer(x, bytes), by = ioBuffer(y, bytes), bz = ioBuffer(z, bytes);
    plan.arena_bytes = 64 + batch.max * width * 4;
    int sum = buffer(fb::Place::Arena, -1, 64, bytes);
    launch("sum", "add_rows", {bx, by, sum}, {w}, rows);
    launch("double", "twice", {sum, bz}, {}, elements).scratch = 64;
  }
};

}  // namespace rutter::runtime::testing_
