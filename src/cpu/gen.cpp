#include "cpu/gen.h"

#include <llvm/IR/Intrinsics.h>

namespace rutter::cpu {

VectorIsa vectorIsa(const codegen::MachineProfile& m, int64_t vectorBytes) {
  VectorIsa v;
  v.lanes = int(vectorBytes / 4);
  v.registers = m.registers;
  v.fma = CpuFeatures(m.features).has(CpuFeature::kFma);
  v.broadcast = CpuFeatures(m.features).has(CpuFeature::kAvx512f);
  return v;
}

Gen::Gen(Emitter& emitter) : e(emitter), b(emitter.b), isa(vectorIsa(emitter.machine(), emitter.vectorBytes())) {}

bool Gen::isConst(Value* v, int64_t* out) {
  auto* c = Emitter::constant(v);
  if (c && out) *out = c->getSExtValue();
  return c != nullptr;
}
Value* Gen::loadVec(llvm::Type* t, Value* p, Value* mask, int align) {
  auto* vt = vec(t);
  if (!mask) return b.CreateAlignedLoad(vt, p, llvm::Align(uint64_t(align)));
  return b.CreateMaskedLoad(vt, p, llvm::Align(uint64_t(align)), mask, llvm::Constant::getNullValue(vt));
}
void Gen::storeVec(Value* v, Value* p, Value* mask, int align) {
  if (!mask)
    b.CreateAlignedStore(v, p, llvm::Align(uint64_t(align)));
  else
    b.CreateMaskedStore(v, p, llvm::Align(uint64_t(align)), mask);
}
Value* Gen::mulAdd(Value* x, Value* y, Value* z) {
  if (e.contract() && isa.fma) return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  return b.CreateFAdd(b.CreateFMul(x, y), z);
}
Value* Gen::maskBelow(Value* n) {
  int64_t c;
  if (isConst(n, &c) && c >= isa.lanes) return nullptr;
  std::vector<llvm::Constant*> iota;
  for (int i = 0; i < isa.lanes; i++) iota.push_back(b.getInt32(uint32_t(i)));
  Value* n32 = b.CreateTrunc(max(min(n, i64(isa.lanes)), i64(0)), b.getInt32Ty());
  return b.CreateICmpSLT(llvm::ConstantVector::get(iota), splat(n32));
}
void Gen::prefetch(Value* p) {
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()}, {p, b.getInt32(0), b.getInt32(3), b.getInt32(1)});
}

}  // namespace rutter::cpu
