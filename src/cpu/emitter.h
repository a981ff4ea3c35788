#pragma once
// One LLVM module that becomes one object file: the functions of a lowered problem, what they may ask of the machine,
// and structured control flow. Vector helpers are in vec.h, pointwise programs in pw.h.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "codegen/tactic.h"
#include "runtime/kernel_abi.h"

namespace llvm {
class TargetMachine;
}

namespace rutter::cpu {

using llvm::Value;
using Values = std::vector<Value*>;

/// LLVM's names of processors that -codegen:tune schedules for; a configuration's "tune" is an index.
std::span<const char* const> tuningNames();

class Emitter {
 public:
  /// `c` gives the shared choices of configureCodegen() (missing ones: their defaults).
  Emitter(const codegen::MachineProfile& m, const codegen::Config& c, const std::string& prefix);
  ~Emitter();

  // ---- the machine ----
  const codegen::MachineProfile& machine() const { return machine_; }
  bool has(CpuFeature f) const { return CpuFeatures(machine_.features).has(f); }
  bool fma() const { return has(CpuFeature::kFma); }
  bool avx512() const { return has(CpuFeature::kAvx512f); }
  bool avx2() const { return has(CpuFeature::kAvx2); }
  int vectorBytes() const { return vectorBytes_; }  ///< width that emitted vectors should have
  int lanes() const { return vectorBytes_ / 4; }    ///< 32-bit lanes of a vector
  int registers() const { return machine_.registers; }
  bool contract() const { return contract_; }

  // ---- functions ----
  /// Starts the function of the next launch; the insertion point is its body. `refs`: the launch's LaunchSpec::refs
  /// (empty: the problem's operands in order).
  void beginKernel(const std::vector<int>& refs = {});
  /// Returns KernelStatus::kOk from wherever the insertion point is.
  void endKernel();
  /// Task range and per-thread scratch of the current function (i64, i64, ptr).
  Value* begin() const { return fn_->getArg(1); }
  Value* end() const { return fn_->getArg(2); }
  Value* scratch() const { return fn_->getArg(3); }
  llvm::Function* function() const { return fn_; }
  /// Args::ptr[slot], slot as in LaunchSpec::refs: loaded once, in the entry block.
  Value* ptr(int slot);
  Value* operand(int index) { return ptr(slotOf(index)); }  ///< of the problem
  Value* workspace(int index) { return ptr(slotOf(-1 - index)); }
  Value* packed(int index) { return ptr(slotOf(1000 + index)); }
  /// A constant, or Args::dim[param] loaded once in the entry block (i64).
  Value* dim(const codegen::KDim& d);
  /// Leaves the function with `status` if `cond` (i1).
  void failIf(Value* cond, runtime::KernelStatus status);

  // ---- integers (i64 unless said otherwise; constants fold) ----
  llvm::ConstantInt* i64(int64_t v) { return b.getInt64(uint64_t(v)); }
  Value* add(Value* x, Value* y);
  Value* sub(Value* x, Value* y);
  Value* mul(Value* x, Value* y);
  Value* mul(Value* x, const codegen::KDim& d) { return mul(x, dim(d)); }
  /// Rounds towards zero; by a constant power of two a shift (operands must not be negative).
  Value* udiv(Value* x, Value* y);
  Value* urem(Value* x, Value* y);
  Value* min(Value* x, Value* y);
  Value* max(Value* x, Value* y);
  Value* lt(Value* x, Value* y) { return b.CreateICmpSLT(x, y); }
  /// ptr + index * bytes of one element.
  Value* at(Value* ptr, Value* index, int elementBytes);
  Value* at(Value* ptr, int64_t index, int elementBytes) { return at(ptr, i64(index), elementBytes); }
  /// The constant, if `v` is one.
  static const llvm::ConstantInt* constant(Value* v) { return llvm::dyn_cast<llvm::ConstantInt>(v); }

  // ---- control flow ----
  using Body = std::function<Values(Value* i, const Values& carried)>;
  /// for (i = from; i < to; i += step) carried = body(i, carried). Any trip count, zero included; bottom-tested.
  /// Returns the carried values after the last round. A trip count known to be 0 or 1 makes no loop.
  Values loop(Value* from, Value* to, int64_t step, const Values& init, const Body& body);
  void loop(Value* from, Value* to, int64_t step, const std::function<void(Value* i)>& body);
  /// if (cond) then() else otherwise(); both return the same types, joined by phis. A constant `cond` makes no branch.
  Values branch(Value* cond, const std::function<Values()>& then, const std::function<Values()>& otherwise);
  void branch(Value* cond, const std::function<void()>& then);

  /// A private constant in the object (read only, aligned to 64), for tables and fill vectors.
  Value* constantData(llvm::Constant* c, const std::string& name);

  /// Runs the chosen passes and the code generator. Ends the use of this object.
  codegen::KernelObject finish();

  llvm::LLVMContext& ctx() { return *ctx_; }
  llvm::Module& module() { return *module_; }
  llvm::Type* f32() { return b.getFloatTy(); }
  llvm::Type* ptrTy() { return b.getPtrTy(); }

 private:
  std::unique_ptr<llvm::LLVMContext> ctx_;
  std::unique_ptr<llvm::Module> module_;
  std::unique_ptr<llvm::TargetMachine> tm_;
  codegen::MachineProfile machine_;
  codegen::Config config_;
  std::string prefix_;
  int vectorBytes_;
  bool contract_;
  std::vector<std::string> symbols_;
  llvm::Function* fn_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  int slotOf(int ref) const;
  std::vector<int> refs_;
  std::map<int, Value*> ptrs_, dims_;
  std::map<int, llvm::BasicBlock*> exits_;
  std::map<llvm::Constant*, Value*> constants_;

 public:
  llvm::IRBuilder<> b;
};

/// Relocatable objects to one shared object, in process; InternalError on undefined or duplicate symbols.
std::string linkObjects(const std::vector<std::string_view>& objects);
/// Assembly text of every function of an object.
std::string disassembleObject(const std::string& object);
/// InternalError naming the symbols that an object leaves undefined.
void checkNoUndefinedSymbols(const std::string& object);

}  // namespace rutter::cpu
