#include "cpu/emitter.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>

#include <bit>
#include <mutex>

#include "base/error.h"

namespace rutter::cpu {
namespace {
constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

std::string featureString(CpuFeatures f) {
  std::string s;
  auto add = [&](CpuFeature x, const char* names) {
    if (f.has(x)) s += s.empty() ? names : std::string(",") + names;
  };
  add(CpuFeature::kAvx2, "+avx,+avx2,+sse4.2,+popcnt,+bmi,+lzcnt,+movbe");
  add(CpuFeature::kFma, "+fma");
  add(CpuFeature::kF16c, "+f16c");
  add(CpuFeature::kBmi2, "+bmi2");
  add(CpuFeature::kAvx512f, "+avx512f,+avx512cd,+evex512");
  add(CpuFeature::kAvx512bw, "+avx512bw");
  add(CpuFeature::kAvx512dq, "+avx512dq");
  add(CpuFeature::kAvx512vl, "+avx512vl");
  // How processors of the last decade are alike, where LLVM's plain x86-64 assumes older ones.
  if (f.has(CpuFeature::kAvx2)) s += ",+fast-variable-crosslane-shuffle,+fast-variable-perlane-shuffle,-slow-3ops-lea";
  return s;
}
void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86Disassembler();
  });
}
int64_t valueOr(const codegen::Config& c, const char* k, int64_t fallback) {
  auto it = c.values.find(k);
  return it == c.values.end() ? fallback : it->second;
}
}  // namespace

std::span<const char* const> tuningNames() {
  static constexpr const char* names[] = {"x86-64", "skylake-avx512", "sapphirerapids", "znver3", "znver4"};
  return names;
}

Emitter::Emitter(const codegen::MachineProfile& m, const codegen::Config& c, const std::string& prefix)
    : ctx_(std::make_unique<llvm::LLVMContext>()),
      module_(std::make_unique<llvm::Module>("rutter", *ctx_)),
      machine_(m),
      config_(c),
      prefix_(prefix),
      vectorBytes_(int(valueOr(c, "vector", m.vectorBytes))),
      contract_(valueOr(c, "contract", 1) != 0),
      b(*ctx_) {
  initialize();
  std::string err;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, err);
  RUTTER_CHECK(t, "LLVM has no x86-64: {}", err);
  llvm::TargetOptions options;
  options.LoopAlignment = unsigned(valueOr(config_, "align_loops", 64));
  options.FunctionSections = false;
  auto level = valueOr(config_, "opt", 2) >= 3 ? llvm::CodeGenOptLevel::Aggressive : llvm::CodeGenOptLevel::Default;
  tm_.reset(t->createTargetMachine(kTriple, "x86-64", featureString(CpuFeatures(machine_.features)), options,
                                   llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
  module_->setDataLayout(tm_->createDataLayout());
  module_->setTargetTriple(kTriple);
  llvm::FastMathFlags flags;
  flags.setAllowContract(contract_);
  b.setFastMathFlags(flags);
}
Emitter::~Emitter() = default;

int Emitter::slotOf(int ref) const {
  if (refs_.empty() && ref >= 0) return ref;
  auto it = std::find(refs_.begin(), refs_.end(), ref);
  RUTTER_CHECK(it != refs_.end(), "a kernel that uses ref {} without listing it", ref);
  return int(it - refs_.begin());
}
void Emitter::beginKernel(const std::vector<int>& refs) {
  refs_ = refs;
  std::string name = prefix_ + "_" + std::to_string(symbols_.size());
  symbols_.push_back(name);
  auto* i64t = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {ptrTy(), i64t, i64t, ptrTy()}, false);
  fn_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, *module_);
  fn_->addFnAttr("target-cpu", "x86-64");
  fn_->addFnAttr("tune-cpu", tuningNames()[size_t(valueOr(config_, "tune", 0))]);
  fn_->addFnAttr("target-features", featureString(CpuFeatures(machine_.features)));
  std::string width = std::to_string(8 * std::max(vectorBytes_, 16));
  fn_->addFnAttr("prefer-vector-width", width);
  // At least what the kernels' own types need: 64-bit elements take two registers a vector of 32-bit lanes.
  fn_->addFnAttr("min-legal-vector-width", avx512() ? "512" : avx2() ? "256" : "128");
  fn_->addFnAttr(llvm::Attribute::NoUnwind);
  fn_->addFnAttr("no-builtins");
  fn_->setAlignment(llvm::Align(uint64_t(valueOr(config_, "align_function", 64))));
  fn_->addParamAttr(0, llvm::Attribute::NoAlias);
  entry_ = llvm::BasicBlock::Create(*ctx_, "entry", fn_);
  auto* body = llvm::BasicBlock::Create(*ctx_, "body", fn_);
  b.SetInsertPoint(entry_);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  ptrs_.clear();
  dims_.clear();
  exits_.clear();
}
void Emitter::endKernel() {
  b.CreateRet(b.getInt32(0));
  std::string text;
  llvm::raw_string_ostream os(text);
  RUTTER_CHECK(!llvm::verifyFunction(*fn_, &os), "{}: {}", fn_->getName().str(), text);
}

namespace {
// Table entries never change during a run, whatever the kernel stores.
Value* loadInvariant(Emitter& e, llvm::Type* t, Value* p) {
  auto* l = e.b.CreateAlignedLoad(t, p, llvm::Align(8));
  l->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.ctx(), {}));
  return l;
}
}  // namespace
Value* Emitter::ptr(int slot) {
  Value*& v = ptrs_[slot];
  if (!v) {
    llvm::IRBuilder<>::InsertPointGuard guard(b);
    b.SetInsertPoint(entry_->getTerminator());
    Value* table = loadInvariant(*this, ptrTy(), fn_->getArg(0));
    v = loadInvariant(*this, ptrTy(), b.CreateConstInBoundsGEP1_64(ptrTy(), table, uint64_t(slot)));
  }
  return v;
}
Value* Emitter::dim(const codegen::KDim& d) {
  if (d.isConstant()) return i64(d.value);
  Value*& v = dims_[d.param];
  if (!v) {
    llvm::IRBuilder<>::InsertPointGuard guard(b);
    b.SetInsertPoint(entry_->getTerminator());
    Value* table = loadInvariant(*this, ptrTy(), b.CreateConstInBoundsGEP1_64(ptrTy(), fn_->getArg(0), 1));
    v = loadInvariant(*this, b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), table, uint64_t(d.param)));
  }
  return v;
}
void Emitter::failIf(Value* cond, runtime::KernelStatus status) {
  if (auto* c = constant(cond); c && c->isZero()) return;
  llvm::BasicBlock*& exit = exits_[int(status)];
  if (!exit) {
    exit = llvm::BasicBlock::Create(*ctx_, "fail", fn_);
    llvm::IRBuilder<> at(exit);
    at.CreateRet(at.getInt32(uint32_t(status)));
  }
  auto* next = llvm::BasicBlock::Create(*ctx_, "ok", fn_);
  auto* branch = b.CreateCondBr(cond, exit, next);
  llvm::MDBuilder md(*ctx_);
  branch->setMetadata(llvm::LLVMContext::MD_prof, md.createBranchWeights(1, 1 << 20));
  b.SetInsertPoint(next);
}

Value* Emitter::add(Value* x, Value* y) {
  if (auto* c = constant(x); c && c->isZero()) return y;
  if (auto* c = constant(y); c && c->isZero()) return x;
  return b.CreateAdd(x, y, "", false, true);
}
Value* Emitter::sub(Value* x, Value* y) {
  if (auto* c = constant(y); c && c->isZero()) return x;
  if (x == y) return llvm::Constant::getNullValue(x->getType());
  return b.CreateSub(x, y, "", false, true);
}
Value* Emitter::mul(Value* x, Value* y) {
  auto* cx = constant(x);
  auto* cy = constant(y);
  if ((cx && cx->isZero()) || (cy && cy->isOne())) return x;
  if ((cy && cy->isZero()) || (cx && cx->isOne())) return y;
  return b.CreateMul(x, y, "", false, true);
}
Value* Emitter::udiv(Value* x, Value* y) {
  if (auto* c = constant(y); c && c->isOne()) return x;
  return b.CreateUDiv(x, y);
}
Value* Emitter::urem(Value* x, Value* y) {
  if (auto* c = constant(y); c && c->isOne()) return i64(0);
  return b.CreateURem(x, y);
}
Value* Emitter::min(Value* x, Value* y) {
  if (x == y) return x;
  return b.CreateSelect(b.CreateICmpSLT(x, y), x, y);
}
Value* Emitter::max(Value* x, Value* y) {
  if (x == y) return x;
  return b.CreateSelect(b.CreateICmpSGT(x, y), x, y);
}
Value* Emitter::at(Value* p, Value* index, int bytes) {
  if (auto* c = constant(index); c && c->isZero()) return p;
  // Typed by the element, so that address modes can scale.
  return b.CreateGEP(b.getIntNTy(unsigned(8 * bytes)), p, index);
}

Values Emitter::loop(Value* from, Value* to, int64_t step, const Values& init, const Body& body) {
  auto* cf = constant(from);
  auto* ct = constant(to);
  if (cf && ct) {
    if (cf->getSExtValue() >= ct->getSExtValue()) return init;
    if (cf->getSExtValue() + step >= ct->getSExtValue()) return body(from, init);
  }
  auto* before = b.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(*ctx_, "loop", fn_);
  auto* done = llvm::BasicBlock::Create(*ctx_, "done", fn_);
  bool guarded = !(cf && ct);
  if (guarded)
    b.CreateCondBr(b.CreateICmpSLT(from, to), head, done);
  else
    b.CreateBr(head);
  b.SetInsertPoint(head);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(from, before);
  Values carried;
  for (Value* v : init) {
    auto* phi = b.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    carried.push_back(phi);
  }
  Values next = body(i, carried);
  RUTTER_CHECK(next.size() == init.size(), "a loop body that returns {} of {} values", next.size(), init.size());
  Value* inc = b.CreateAdd(i, i64(step), "", false, true);
  auto* latch = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpSLT(inc, to), head, done);
  i->addIncoming(inc, latch);
  for (size_t k = 0; k < next.size(); k++) llvm::cast<llvm::PHINode>(carried[k])->addIncoming(next[k], latch);
  b.SetInsertPoint(done);
  Values out;
  for (size_t k = 0; k < next.size(); k++) {
    if (!guarded) {
      out.push_back(next[k]);
      continue;
    }
    auto* phi = b.CreatePHI(init[k]->getType(), 2);
    phi->addIncoming(init[k], before);
    phi->addIncoming(next[k], latch);
    out.push_back(phi);
  }
  return out;
}
void Emitter::loop(Value* from, Value* to, int64_t step, const std::function<void(Value*)>& body) {
  loop(from, to, step, Values{}, [&](Value* i, const Values&) {
    body(i);
    return Values{};
  });
}
Values Emitter::branch(Value* cond, const std::function<Values()>& then, const std::function<Values()>& otherwise) {
  if (auto* c = constant(cond)) return c->isZero() ? otherwise() : then();
  auto* a = llvm::BasicBlock::Create(*ctx_, "then", fn_);
  auto* z = llvm::BasicBlock::Create(*ctx_, "else", fn_);
  auto* join = llvm::BasicBlock::Create(*ctx_, "join", fn_);
  b.CreateCondBr(cond, a, z);
  b.SetInsertPoint(a);
  Values va = then();
  auto* aEnd = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(z);
  Values vz = otherwise();
  auto* zEnd = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(join);
  RUTTER_CHECK(va.size() == vz.size(), "branches that return {} and {} values", va.size(), vz.size());
  Values out;
  for (size_t i = 0; i < va.size(); i++) {
    auto* phi = b.CreatePHI(va[i]->getType(), 2);
    phi->addIncoming(va[i], aEnd);
    phi->addIncoming(vz[i], zEnd);
    out.push_back(phi);
  }
  return out;
}
void Emitter::branch(Value* cond, const std::function<void()>& then) {
  if (auto* c = constant(cond)) {
    if (!c->isZero()) then();
    return;
  }
  auto* a = llvm::BasicBlock::Create(*ctx_, "then", fn_);
  auto* join = llvm::BasicBlock::Create(*ctx_, "join", fn_);
  b.CreateCondBr(cond, a, join);
  b.SetInsertPoint(a);
  then();
  b.CreateBr(join);
  b.SetInsertPoint(join);
}
Value* Emitter::constantData(llvm::Constant* c, const std::string& name) {
  Value*& known = constants_[c];
  if (known) return known;
  auto* g = new llvm::GlobalVariable(*module_, c->getType(), true, llvm::GlobalValue::PrivateLinkage, c, name);
  g->setAlignment(llvm::Align(64));
  g->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return known = g;
}

codegen::KernelObject Emitter::finish() {
  llvm::SmallVector<char, 0> buffer;
  {
    llvm::raw_svector_ostream os(buffer);
    llvm::legacy::PassManager pm;
    pm.add(llvm::createTargetTransformInfoWrapperPass(tm_->getTargetIRAnalysis()));
    if (valueOr(config_, "passes", 1)) pm.add(llvm::createEarlyCSEPass());
    if (valueOr(config_, "hoist", 1)) pm.add(llvm::createLICMPass());
    RUTTER_CHECK(!tm_->addPassesToEmitFile(pm, os, nullptr, llvm::CodeGenFileType::ObjectFile),
                 "LLVM cannot write objects");
    pm.run(*module_);
  }
  codegen::KernelObject k;
  k.object.assign(buffer.begin(), buffer.end());
  k.symbols = symbols_;
  checkNoUndefinedSymbols(k.object);
  return k;
}

void checkNoUndefinedSymbols(const std::string& object) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernel"));
  RUTTER_CHECK(bool(file), "unreadable object: {}", llvm::toString(file.takeError()));
  std::string bad;
  for (const llvm::object::SymbolRef& s : (*file)->symbols()) {
    auto flags = s.getFlags();
    if (!flags || !(*flags & llvm::object::SymbolRef::SF_Undefined)) continue;
    auto name = s.getName();
    if (name && !name->empty()) bad += " " + name->str();
  }
  RUTTER_CHECK(bad.empty(), "generated code calls symbols that do not exist:{}", bad);
}

}  // namespace rutter::cpu
