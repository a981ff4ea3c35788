#pragma once
// Runs kernel problems through the CPU target as an engine would, between guard pages, and checks them against scalar
// evaluators written straight from the definitions in codegen/problem.h.
#include <gtest/gtest.h>

#include <random>

#include "codegen/tactic.h"
#include "ir/tensor.h"

namespace rutter::cputest {
using codegen::KDim;
using codegen::Operand;
using codegen::Problem;
using codegen::ProblemKind;
using codegen::PwInstr;
using codegen::PwOp;
using codegen::PwProgram;
using ir::DType;

/// Bytes that end exactly at a page that cannot be touched (and start after one).
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(size_t bytes, size_t align = 1);
  Guarded(Guarded&& o) noexcept { swap(o); }
  Guarded& operator=(Guarded&& o) noexcept {
    swap(o);
    return *this;
  }
  ~Guarded();
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(Guarded& o);
  void* map_ = nullptr;
  size_t mapped_ = 0, size_ = 0;
  uint8_t* data_ = nullptr;
};

/// A scalar of any dtype: d for floats, i for all others.
struct Number {
  double d = 0;
  int64_t i = 0;
};
Number readNumber(DType t, const void* at);
void writeNumber(DType t, void* at, Number n);

/// A problem with values for its run-time parameters and contents for its operands.
struct Case {
  Problem problem;
  std::vector<int64_t> params;             ///< Args::dim
  std::vector<std::vector<uint8_t>> data;  ///< one an operand; outputs are ignored

  int64_t value(const KDim& d) const { return d.isConstant() ? d.value : params.at(size_t(d.param)); }
  std::vector<int64_t> values(const std::vector<KDim>& v) const;
  /// Elements that the operand's memory must have.
  int64_t elements(size_t operand) const;
  /// Random contents: floats in [lo, hi), integers in [lo, hi].
  void fill(std::mt19937& rng, double lo = -2, double hi = 2);
  void fill(size_t operand, std::mt19937& rng, double lo, double hi);
};
/// Replaces the constants of space, strides and dims by run-time parameters (equal ones by the same) where `which` says
/// so.
Case withParams(const Case& c, const std::function<bool(int64_t)>& which = [](int64_t v) { return v > 1; });

/// What the outputs should hold: the value at every element, or nothing where no point writes.
using Expected = std::vector<std::vector<std::optional<Number>>>;
Expected evaluate(const Case& c);

struct Options {
  std::string isa = {};     ///< "" = best
  std::string route = {};   ///< knobs
  std::string tactic = {};  ///< "" = the first that takes the problem (by cost)
  int threads = 2;          ///< of the profile
};
struct Result {
  int32_t status = 0;
  codegen::Config config;
  codegen::Lowering lowering;
  codegen::KernelObject object;
  std::vector<knobs::Refusal> refusals;
  std::vector<std::vector<uint8_t>> outputs;  ///< bytes of the output operands, in order
  std::vector<int64_t> tasks;                 ///< a launch
};
/// Configures, lowers, emits, links, loads and runs. The task range is cut in uneven parts that run in any order.
Result run(const Case& c, const Options& o = {});
/// Configures and emits only: for tests of what knobs change.
Result compile(const Case& c, const Options& o = {});
/// run() and compare with evaluate(); untouched elements must be untouched. `tolerance`: relative to max(1,
/// |expected|).
void check(const Case& c, const Options& o = {}, double tolerance = 2e-6);
/// check() under generic, avx2 and avx512 (those that this machine has), with constants and with parameters.
void checkAll(const Case& c, const Options& o = {}, double tolerance = 2e-6);
/// ISA levels of this machine.
std::vector<std::string> isas();

/// Row-major strides of extents.
std::vector<KDim> dense(const std::vector<int64_t>& extents);
std::vector<KDim> kdims(const std::vector<int64_t>& v);
Operand operand(DType t, std::vector<KDim> strides, bool output = false);
Operand anchor(DType t, const std::vector<int64_t>& dims, std::vector<KDim> strides);

}  // namespace rutter::cputest
