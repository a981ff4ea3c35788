#pragma once
// Vectors as kernels write them: `lanes` elements of one type (a plain scalar if lanes is 1), an optional mask of
// active lanes (<lanes x i1>, null: all), elements aligned to themselves only.
#include "cpu/emitter.h"
#include "ir/dtype.h"

namespace rutter::cpu {

llvm::Type* vecType(llvm::Type* element, int lanes);
int lanesOf(Value* v);
/// Type of an element in memory: bool is i8, bf16 is i16.
llvm::Type* memoryType(Emitter& e, ir::DType t);
/// Type of an element in registers: bool is i1; f16 and bf16 are f32, rounded after every operation.
llvm::Type* registerType(Emitter& e, ir::DType t);
inline int elementBytes(ir::DType t) {
  return ir::bitsOf(t) / 8;
}

Value* splat(Emitter& e, Value* scalar, int lanes);
Value* floats(Emitter& e, double v, int lanes);   ///< f32
Value* doubles(Emitter& e, double v, int lanes);  ///< f64
/// <first, first + step, …> as i64.
Value* iota(Emitter& e, int lanes, Value* first, Value* step);
/// Lanes [0, count); count is i64, not negative.
Value* tailMask(Emitter& e, Value* count, int lanes);
Value* andMask(Emitter& e, Value* a, Value* b);  ///< null: all lanes
/// i1: some active lane of `v` (<lanes x i1>) is set.
Value* anyLane(Emitter& e, Value* v, Value* mask = nullptr);

/// `lanes` neighbours at `ptr`, as they are in memory; inactive lanes give `fill` (null: zero) and are not touched.
Value* loadVector(Emitter& e, llvm::Type* element, Value* ptr, int lanes, Value* mask = nullptr, Value* fill = nullptr);
/// Elements base[index + l * stride] of dtype `t` in memory form, lane by lane unless stride is the constant 1.
/// Inactive lanes read `fill` (a constant; null: zero) from elsewhere.
Value* loadLanes(Emitter& e, ir::DType t, Value* base, Value* index, Value* stride, int lanes, Value* mask,
                 llvm::Constant* fill = nullptr);
/// Elements base[index[l]]; index: <lanes x i64>.
Value* gatherLanes(Emitter& e, ir::DType t, Value* base, Value* index, int lanes, Value* mask,
                   llvm::Constant* fill = nullptr);
void storeVector(Emitter& e, Value* v, Value* ptr, Value* mask = nullptr);
/// Between memory and registers (bool, f16, bf16 change; all else passes).
Value* fromMemory(Emitter& e, ir::DType t, Value* v);
Value* toMemory(Emitter& e, ir::DType t, Value* v);

/// a * b + c, fused where the machine can.
Value* fma(Emitter& e, Value* a, Value* b, Value* c);
/// a * b + c, fused if the configuration contracts: the form for sums of products.
Value* mulAdd(Emitter& e, Value* a, Value* b, Value* c);
/// Larger and smaller value; a NaN in either operand is the result.
Value* fmax(Emitter& e, Value* a, Value* b);
Value* fmin(Emitter& e, Value* a, Value* b);
/// Elements [first, first + n) of v.
Value* sliceLanes(Emitter& e, Value* v, int first, int n);

/// for i in [from, to): body over `unroll` whole vectors at a time, then vector by vector, then the rest under a mask.
/// body(starts, lanes, mask, carried): `starts` are the first indices of the vectors done together (1 or `unroll` of
/// them). A loop of constant and short trip count is laid out straight.
using VectorBody = std::function<Values(const Values& starts, Value* mask, const Values& carried)>;
Values vectorLoop(Emitter& e, Value* from, Value* to, int lanes, int unroll, const Values& init,
                  const VectorBody& body);
void vectorLoop(Emitter& e, Value* from, Value* to, int lanes, int unroll,
                const std::function<void(const Values& starts, Value* mask)>& body);

}  // namespace rutter::cpu
