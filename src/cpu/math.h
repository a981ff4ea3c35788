#pragma once
// Elementary functions of f32 vectors (any lanes) as straight-line code: within 2 ulp of the true value over the whole
// range, special values as in IEEE 754 and C. Coefficients: scripts/fit_polynomials.py.
#include "cpu/vec.h"

namespace rutter::cpu {

Value* emitExp(Emitter& e, Value* x);
Value* emitLog(Emitter& e, Value* x);
Value* emitTanh(Emitter& e, Value* x);
Value* emitErf(Emitter& e, Value* x);
Value* emitSigmoid(Emitter& e, Value* x);
/// Arguments are reduced in double precision: full accuracy up to 2^20 in magnitude (2^50 with FMA), bounded beyond.
Value* emitSin(Emitter& e, Value* x);
Value* emitCos(Emitter& e, Value* x);
Value* emitPow(Emitter& e, Value* x, Value* y);
/// Also for f64.
Value* emitFloor(Emitter& e, Value* x);
Value* emitCeil(Emitter& e, Value* x);
Value* emitRound(Emitter& e, Value* x);  ///< half to even
Value* emitSqrt(Emitter& e, Value* x);
Value* emitAbs(Emitter& e, Value* x);

}  // namespace rutter::cpu
