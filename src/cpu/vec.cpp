#include "cpu/vec.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "base/error.h"

namespace rutter::cpu {
using ir::DType;

llvm::Type* vecType(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, unsigned(lanes));
}
int lanesOf(Value* v) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return t ? int(t->getNumElements()) : 1;
}
llvm::Type* memoryType(Emitter& e, DType t) {
  switch (t) {
    case DType::kF32:
      return e.b.getFloatTy();
    case DType::kF64:
      return e.b.getDoubleTy();
    case DType::kF16:
      return e.b.getHalfTy();
    case DType::kBF16:
      return e.b.getInt16Ty();
    default:
      return e.b.getIntNTy(unsigned(ir::bitsOf(t)));
  }
}
llvm::Type* registerType(Emitter& e, DType t) {
  switch (t) {
    case DType::kF16:
    case DType::kBF16:
      return e.b.getFloatTy();
    case DType::kBool:
      return e.b.getInt1Ty();
    default:
      return memoryType(e, t);
  }
}

Value* splat(Emitter& e, Value* v, int lanes) {
  return lanes == 1 ? v : e.b.CreateVectorSplat(unsigned(lanes), v);
}
Value* floats(Emitter& e, double v, int lanes) {
  return llvm::ConstantFP::get(vecType(e.b.getFloatTy(), lanes), v);
}
Value* doubles(Emitter& e, double v, int lanes) {
  return llvm::ConstantFP::get(vecType(e.b.getDoubleTy(), lanes), v);
}
Value* iota(Emitter& e, int lanes, Value* first, Value* step) {
  if (lanes == 1) return first;
  std::vector<llvm::Constant*> c;
  for (int i = 0; i < lanes; i++) c.push_back(e.i64(i));
  return e.add(splat(e, first, lanes), e.mul(llvm::ConstantVector::get(c), splat(e, step, lanes)));
}
Value* tailMask(Emitter& e, Value* count, int lanes) {
  if (lanes == 1) return e.b.CreateICmpSGT(count, e.i64(0));
  if (auto* c = Emitter::constant(count)) {
    std::vector<llvm::Constant*> bits;
    for (int i = 0; i < lanes; i++) bits.push_back(e.b.getInt1(i < c->getSExtValue()));
    return llvm::ConstantVector::get(bits);
  }
  count = e.min(count, e.i64(lanes));  // bzhi looks at eight bits of it, a shift at six
  if (e.avx512() && lanes <= 64) {     // bzhi and kmov; a compare of vectors would need the lane numbers in a register
    auto* all = e.b.getInt64(~0ull);
    Value* bits = e.has(CpuFeature::kBmi2) ? e.b.CreateIntrinsic(llvm::Intrinsic::x86_bmi_bzhi_64, {}, {all, count})
                                           : e.b.CreateNot(e.b.CreateShl(all, count));
    return e.b.CreateBitCast(e.b.CreateTrunc(bits, e.b.getIntNTy(unsigned(lanes))), vecType(e.b.getInt1Ty(), lanes));
  }
  std::vector<llvm::Constant*> c;
  for (int i = 0; i < lanes; i++) c.push_back(e.b.getInt32(uint32_t(i)));
  return e.b.CreateICmpSLT(llvm::ConstantVector::get(c), splat(e, e.b.CreateTrunc(count, e.b.getInt32Ty()), lanes));
}
Value* andMask(Emitter& e, Value* a, Value* b) {
  return !a ? b : !b ? a : e.b.CreateAnd(a, b);
}
Value* anyLane(Emitter& e, Value* v, Value* mask) {
  v = andMask(e, v, mask);
  int n = lanesOf(v);
  if (n == 1) return v;
  auto* bits = e.b.getIntNTy(unsigned(n));
  return e.b.CreateICmpNE(e.b.CreateBitCast(v, bits), llvm::ConstantInt::get(bits, 0));
}

Value* loadVector(Emitter& e, llvm::Type* element, Value* ptr, int lanes, Value* mask, Value* fill) {
  llvm::Type* t = vecType(element, lanes);
  llvm::Align align(std::max<uint64_t>(1, element->getPrimitiveSizeInBits() / 8));
  if (auto* c = llvm::dyn_cast_or_null<llvm::Constant>(mask); c && c->isAllOnesValue()) mask = nullptr;
  if (!mask) return e.b.CreateAlignedLoad(t, ptr, align);
  if (!fill) fill = llvm::Constant::getNullValue(t);
  if (lanes == 1)
    return e.branch(
        mask, [&] { return Values{e.b.CreateAlignedLoad(t, ptr, align)}; }, [&] { return Values{fill}; })[0];
  return e.b.CreateMaskedLoad(t, ptr, align, mask, fill);
}
namespace {
Value* lanesFrom(Emitter& e, DType t, int lanes, Value* mask, llvm::Constant* fill,
                 const std::function<Value*(int)>& address) {
  llvm::Type* type = memoryType(e, t);
  llvm::Align align(uint64_t(elementBytes(t)));
  Value* dummy = mask ? e.constantData(fill ? fill : llvm::Constant::getNullValue(type), "fill") : nullptr;
  Value* v = llvm::PoisonValue::get(vecType(type, lanes));
  for (int l = 0; l < lanes; l++) {
    Value* from = address(l);
    if (mask) from = e.b.CreateSelect(lanes == 1 ? mask : e.b.CreateExtractElement(mask, uint64_t(l)), from, dummy);
    Value* x = e.b.CreateAlignedLoad(type, from, align);
    v = lanes == 1 ? x : e.b.CreateInsertElement(v, x, uint64_t(l));
  }
  return v;
}
}  // namespace
Value* loadLanes(Emitter& e, DType t, Value* base, Value* index, Value* stride, int lanes, Value* mask,
                 llvm::Constant* fill) {
  int bytes = elementBytes(t);
  if (auto* s = Emitter::constant(stride); s && s->isOne())
    return loadVector(e, memoryType(e, t), e.at(base, index, bytes), lanes, mask,
                      fill ? splat(e, fill, lanes) : nullptr);
  return lanesFrom(e, t, lanes, mask, fill,
                   [&](int l) { return e.at(base, e.add(index, e.mul(e.i64(l), stride)), bytes); });
}
Value* gatherLanes(Emitter& e, DType t, Value* base, Value* index, int lanes, Value* mask, llvm::Constant* fill) {
  return lanesFrom(e, t, lanes, mask, fill, [&](int l) {
    return e.at(base, lanes == 1 ? index : e.b.CreateExtractElement(index, uint64_t(l)), elementBytes(t));
  });
}
void storeVector(Emitter& e, Value* v, Value* ptr, Value* mask) {
  llvm::Align align(std::max<uint64_t>(1, v->getType()->getScalarSizeInBits() / 8));
  if (auto* c = llvm::dyn_cast_or_null<llvm::Constant>(mask); c && c->isAllOnesValue()) mask = nullptr;
  if (!mask)
    e.b.CreateAlignedStore(v, ptr, align);
  else if (lanesOf(v) == 1)
    e.branch(mask, [&] { e.b.CreateAlignedStore(v, ptr, align); });
  else
    e.b.CreateMaskedStore(v, ptr, align, mask);
}
Value* fromMemory(Emitter& e, DType t, Value* v) {
  int n = lanesOf(v);
  switch (t) {
    case DType::kBool:
      return e.b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    case DType::kF16:
      return e.b.CreateFPExt(v, vecType(e.f32(), n));
    case DType::kBF16:
      return e.b.CreateBitCast(e.b.CreateShl(e.b.CreateZExt(v, vecType(e.b.getInt32Ty(), n)), 16), vecType(e.f32(), n));
    default:
      return v;
  }
}
Value* toMemory(Emitter& e, DType t, Value* v) {
  int n = lanesOf(v);
  switch (t) {
    case DType::kBool:
      return e.b.CreateZExt(v, vecType(e.b.getInt8Ty(), n));
    case DType::kF16:
      return e.b.CreateFPTrunc(v, vecType(e.b.getHalfTy(), n));
    case DType::kBF16: {  // to nearest even; a NaN stays one
      auto* i32 = vecType(e.b.getInt32Ty(), n);
      Value* x = e.b.CreateBitCast(v, i32);
      Value* odd = e.b.CreateAnd(e.b.CreateLShr(x, 16), llvm::ConstantInt::get(i32, 1));
      Value* r = e.b.CreateLShr(e.b.CreateAdd(x, e.b.CreateAdd(odd, llvm::ConstantInt::get(i32, 0x7fff))), 16);
      Value* quiet = e.b.CreateOr(e.b.CreateLShr(x, 16), llvm::ConstantInt::get(i32, 0x40));
      return e.b.CreateTrunc(e.b.CreateSelect(e.b.CreateFCmpUNO(v, v), quiet, r), vecType(e.b.getInt16Ty(), n));
    }
    default:
      return v;
  }
}

Value* fma(Emitter& e, Value* a, Value* b, Value* c) {
  if (e.fma()) return e.b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  return e.b.CreateFAdd(e.b.CreateFMul(a, b), c);
}
Value* mulAdd(Emitter& e, Value* a, Value* b, Value* c) {
  return e.contract() ? fma(e, a, b, c) : e.b.CreateFAdd(e.b.CreateFMul(a, b), c);
}
namespace {
bool isNumber(Value* v) {
  auto* c = llvm::dyn_cast<llvm::Constant>(v);
  if (!c) return false;
  auto* s = llvm::dyn_cast_or_null<llvm::ConstantFP>(c->getType()->isVectorTy() ? c->getSplatValue() : c);
  return s && !s->isNaN();
}
// x86's maximum and minimum give the second operand if either is NaN: with a number first, one instruction is enough.
Value* extreme(Emitter& e, Value* a, Value* b, bool larger) {
  if (isNumber(b)) std::swap(a, b);
  auto less = [&](Value* x, Value* y) { return larger ? e.b.CreateFCmpOGT(x, y) : e.b.CreateFCmpOLT(x, y); };
  Value* m = e.b.CreateSelect(less(a, b), a, b);
  return isNumber(a) ? m : e.b.CreateSelect(e.b.CreateFCmpUNO(a, a), a, m);
}
}  // namespace
Value* fmax(Emitter& e, Value* a, Value* b) {
  return extreme(e, a, b, true);
}
Value* fmin(Emitter& e, Value* a, Value* b) {
  return extreme(e, a, b, false);
}

Value* sliceLanes(Emitter& e, Value* v, int first, int n) {
  if (n == 1) return lanesOf(v) == 1 ? v : e.b.CreateExtractElement(v, uint64_t(first));
  std::vector<int> m;
  for (int i = 0; i < n; i++) m.push_back(first + i);
  return e.b.CreateShuffleVector(v, m);
}

Values vectorLoop(Emitter& e, Value* from, Value* to, int lanes, int unroll, const Values& init,
                  const VectorBody& body) {
  auto starts = [&](Value* i, int n) {
    Values s;
    for (int u = 0; u < n; u++) s.push_back(e.add(i, e.i64(int64_t(u) * lanes)));
    return s;
  };
  auto* cf = Emitter::constant(from);
  auto* ct = Emitter::constant(to);
  Values v = init;
  if (cf && ct) {  // known: as few vectors as possible, no loop that would run once
    int64_t f = cf->getSExtValue(), t = ct->getSExtValue(), block = int64_t(lanes) * unroll;
    int64_t whole = t > f ? f + (t - f) / block * block : f;
    v = e.loop(from, e.i64(whole), block, v,
               [&](Value* i, const Values& c) { return body(starts(i, unroll), nullptr, c); });
    for (; whole + lanes <= t; whole += lanes) v = body({e.i64(whole)}, nullptr, v);
    if (whole < t) v = body({e.i64(whole)}, tailMask(e, e.i64(t - whole), lanes), v);
    return v;
  }
  Value* at = from;
  if (unroll > 1) {
    Value* whole = e.add(from, e.b.CreateAnd(e.sub(to, from), e.i64(-int64_t(lanes) * unroll)));
    v = e.loop(at, whole, int64_t(lanes) * unroll, v,
               [&](Value* i, const Values& c) { return body(starts(i, unroll), nullptr, c); });
    at = whole;
  }
  if (lanes == 1) return e.loop(at, to, 1, v, [&](Value* i, const Values& c) { return body({i}, nullptr, c); });
  Value* whole = e.add(from, e.b.CreateAnd(e.sub(to, from), e.i64(-int64_t(lanes))));
  v = e.loop(at, whole, lanes, v, [&](Value* i, const Values& c) { return body({i}, nullptr, c); });
  Value* rest = e.sub(to, whole);
  return e.branch(
      e.b.CreateICmpSGT(rest, e.i64(0)), [&] { return body({whole}, tailMask(e, rest, lanes), v); }, [&] { return v; });
}
void vectorLoop(Emitter& e, Value* from, Value* to, int lanes, int unroll,
                const std::function<void(const Values&, Value*)>& body) {
  vectorLoop(e, from, to, lanes, unroll, Values{}, [&](const Values& s, Value* m, const Values&) {
    body(s, m);
    return Values{};
  });
}

}  // namespace rutter::cpu
