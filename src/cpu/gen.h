#pragma once
// What tile emitters (GEMM, convolution) write their vectors with: fp32 arithmetic, loads and stores with optional
// masks, over the control flow and integers of Emitter.
#include "cpu/emitter.h"

namespace rutter::cpu {

/// Vector facts that the choice of tiles depends on.
struct VectorIsa {
  int lanes = 4;           ///< fp32 in a vector
  int registers = 16;      ///< vector registers
  bool fma = false;        ///< fused multiplication and addition exists
  bool broadcast = false;  ///< a memory operand can be broadcast (AVX-512)
};
/// Of a profile, with vectors of `vectorBytes`.
VectorIsa vectorIsa(const codegen::MachineProfile& m, int64_t vectorBytes);

class Gen {
 public:
  explicit Gen(Emitter& emitter);

  Value* i64(int64_t v) { return e.i64(v); }
  Value* dim(const codegen::KDim& d) { return e.dim(d); }
  Value* add(Value* x, Value* y) { return e.add(x, y); }
  Value* sub(Value* x, Value* y) { return e.sub(x, y); }
  Value* mul(Value* x, Value* y) { return e.mul(x, y); }
  Value* div(Value* x, Value* y) { return e.udiv(x, y); }
  Value* rem(Value* x, Value* y) { return e.urem(x, y); }
  Value* min(Value* x, Value* y) { return e.min(x, y); }
  Value* max(Value* x, Value* y) { return e.max(x, y); }
  Value* ceilDiv(Value* x, int64_t y) { return div(add(x, i64(y - 1)), i64(y)); }
  Value* floorTo(Value* x, int64_t y) { return mul(div(x, i64(y)), i64(y)); }
  Value* isBelow(Value* x, Value* y) { return e.lt(x, y); }
  /// The integer in `out` if it is constant.
  static bool isConst(Value* v, int64_t* out = nullptr);

  llvm::Type* f32() { return e.f32(); }
  llvm::FixedVectorType* vec(llvm::Type* t) { return llvm::FixedVectorType::get(t, unsigned(isa.lanes)); }
  llvm::FixedVectorType* vecF32() { return vec(f32()); }
  /// p + index elements of `bytes` (1, 2, 4, 8) each.
  Value* at(Value* p, Value* index, int bytes = 4) { return e.at(p, index, bytes); }
  Value* at(Value* p, int64_t index, int bytes = 4) { return e.at(p, index, bytes); }

  Value* load(llvm::Type* t, Value* p) {
    return b.CreateAlignedLoad(t, p, llvm::Align(t->getPrimitiveSizeInBits() / 8));
  }
  /// A vector of element type t; lanes outside the mask (null: none) read nothing and are zero.
  Value* loadVec(llvm::Type* t, Value* p, Value* mask, int align);
  void storeVec(Value* v, Value* p, Value* mask, int align);
  Value* splat(Value* s) { return b.CreateVectorSplat(unsigned(isa.lanes), s); }
  Value* zero() { return llvm::Constant::getNullValue(vecF32()); }
  /// x * y + z, in one rounding if the kernel contracts.
  Value* mulAdd(Value* x, Value* y, Value* z);
  /// Lanes [0, n): null if n is a constant of at least a vector.
  Value* maskBelow(Value* n);
  void prefetch(Value* p);

  void loop(Value* begin, Value* end, int64_t step, const std::function<void(Value* i)>& body) {
    e.loop(begin, end, step, body);
  }
  Values loop(Value* begin, Value* end, int64_t step, const Values& init, const Emitter::Body& body) {
    return e.loop(begin, end, step, init, body);
  }
  void ifThen(Value* cond, const std::function<void()>& body) { e.branch(cond, body); }

  Emitter& e;
  llvm::IRBuilder<>& b;
  VectorIsa isa;
};

}  // namespace rutter::cpu
