#include "cpu/math.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>
#include <initializer_list>

namespace rutter::cpu {
namespace {

constexpr double kRound = 12582912.0;                // 1.5 * 2^23: adding it rounds an f32 to an integer
constexpr double kRoundDouble = 6755399441055744.0;  // 1.5 * 2^52

// Emission in the type of one operand: f32 or f64 vectors of any lanes.
struct Math {
  Emitter& e;
  llvm::Type* type;
  Math(Emitter& emitter, Value* like) : e(emitter), type(like->getType()) {}

  Value* c(double v) const { return llvm::ConstantFP::get(type, v); }
  unsigned bits() const { return type->getScalarSizeInBits(); }
  llvm::Type* intType() const { return vecType(e.b.getIntNTy(bits()), lanes()); }
  int lanes() const {
    auto* t = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return t ? int(t->getNumElements()) : 1;
  }
  Value* k(uint64_t v) const { return llvm::ConstantInt::get(intType(), v); }
  Value* asInt(Value* x) const { return e.b.CreateBitCast(x, intType()); }
  Value* asFloat(Value* x) const { return e.b.CreateBitCast(x, type); }
  Value* fma(Value* a, Value* b, Value* d) const { return cpu::fma(e, a, b, d); }
  Value* mul(Value* a, Value* b) const { return e.b.CreateFMul(a, b); }
  Value* add(Value* a, Value* b) const { return e.b.CreateFAdd(a, b); }
  Value* sub(Value* a, Value* b) const { return e.b.CreateFSub(a, b); }
  // Lowest power first.
  Value* poly(Value* x, std::initializer_list<double> coefficients) const {
    Value* r = nullptr;
    for (auto it = std::rbegin(coefficients); it != std::rend(coefficients); ++it) r = r ? fma(r, x, c(*it)) : c(*it);
    return r;
  }
  Value* abs(Value* x) const { return e.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* signOf(Value* x) const { return e.b.CreateAnd(asInt(x), k(uint64_t(1) << (bits() - 1))); }
  Value* withSign(Value* magnitude, Value* sign) const { return asFloat(e.b.CreateOr(asInt(magnitude), sign)); }
  // NaN passes through both.
  Value* atMost(Value* x, double hi) const { return e.b.CreateSelect(e.b.CreateFCmpOGT(x, c(hi)), c(hi), x); }
  Value* atLeast(Value* x, double lo) const { return e.b.CreateSelect(e.b.CreateFCmpOLT(x, c(lo)), c(lo), x); }
};

// p * 2^n; n is integral, in [-151, 129], and given as `shifted` = n + kRound too.
Value* scale(const Math& m, Value* p, Value* n, Value* shifted) {
  Emitter& e = m.e;
  if (e.avx512() && m.lanes() == 16)
    return e.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                               {p, n, p, e.b.getInt16(uint16_t(-1)), e.b.getInt32(4)});
  if (e.has(CpuFeature::kAvx512vl) && m.lanes() == 8)
    return e.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_256, {}, {p, n, p, e.b.getInt8(uint8_t(-1))});
  // Two factors, since 2^n itself may not exist: 2^(n/2) and 2^(n - n/2), built in the exponent bits.
  Value* i = e.b.CreateSub(m.asInt(shifted), m.k(0x4b400000));
  Value* half = e.b.CreateAShr(i, 1);
  auto power = [&](Value* q) { return m.asFloat(e.b.CreateShl(e.b.CreateAdd(q, m.k(127)), 23)); };
  return m.mul(m.mul(p, power(half)), power(e.b.CreateSub(i, half)));
}

// 2^r in double, |r| bounded by 2000 or NaN.
Value* exp2Double(const Math& d, Value* t) {
  Emitter& e = d.e;
  Value* shifted = d.add(t, d.c(kRoundDouble));
  Value* n = d.sub(shifted, d.c(kRoundDouble));
  Value* p = d.poly(d.sub(t, n),
                    {0.99999999995855016, 0.69314718074234871, 0.24022651228758504, 0.055504103219794855,
                     0.0096180231470468017, 0.0013333937327164524, 0.00015470606439550722, 1.5200902398722939e-05});
  Value* i = e.b.CreateSub(d.asInt(shifted), d.k(0x4338000000000000ull));
  return d.mul(p, d.asFloat(e.b.CreateShl(e.b.CreateAdd(i, d.k(1023)), 52)));
}
// log2 of a positive finite double that came from an f32 (so never subnormal).
Value* log2Double(const Math& d, Value* x) {
  Emitter& e = d.e;
  // Mantissa in [sqrt(1/2), sqrt(2)): the exponent is taken from bits offset by sqrt(1/2)'s.
  Value* bits = e.b.CreateSub(d.asInt(x), d.k(0x3fe6a09e667f3bcdull));
  Value* n = e.b.CreateAShr(bits, 52);
  Value* mantissa = d.asFloat(e.b.CreateSub(d.asInt(x), e.b.CreateShl(n, 52)));
  Value* f = d.sub(mantissa, d.c(1));
  Value* p = d.poly(f, {1.4426950408888324, -0.72134752044513051, 0.48089834696802802, -0.36067375961443021,
                        0.28853901304831475, -0.24044926016184581, 0.2060988547919613, -0.18033191297213635,
                        0.16031228236490674, -0.14441132829031225, 0.13103625934639887, -0.1181167149040584,
                        0.11008608798389373, -0.11797267684023997, 0.11713488867627736, -0.060008672283312192});
  // The integer as a double by its bits: no conversion of 64-bit integers before AVX-512.
  Value* nd = d.sub(d.asFloat(e.b.CreateAdd(n, d.k(0x4338000000000000ull))), d.c(kRoundDouble));
  return d.fma(f, p, nd);
}

// sin(x + quarter * pi / 2)
Value* sinCos(Emitter& e, Value* x, int quarter) {
  Math m(e, x);
  int n = m.lanes();
  Value* xd = e.b.CreateFPExt(x, vecType(e.b.getDoubleTy(), n));
  Math d(e, xd);
  Value* shifted = d.fma(xd, d.c(0.63661977236758134308), d.c(kRoundDouble));
  Value* q = d.sub(shifted, d.c(kRoundDouble));
  // pi/2 in three parts; without FMA the first two have trailing zeros, so that the products are exact.
  Value* r;
  if (e.fma()) {
    r = d.fma(q, d.c(-1.5707963267948966), xd);
    r = d.fma(q, d.c(-6.123233995736766e-17), r);
  } else {
    r = d.sub(xd, d.mul(q, d.c(1.57079632673412561417e+00)));
    r = d.sub(r, d.mul(q, d.c(6.07710050630396597660e-11)));
    r = d.sub(r, d.mul(q, d.c(2.02226624879595063154e-21)));
  }
  r = d.atLeast(d.atMost(r, 0.8), -0.8);
  Value* f = e.b.CreateFPTrunc(r, x->getType());
  Value* u = m.mul(f, f);
  Value* s = m.fma(
      m.mul(f, u),
      m.poly(u, {-0.16666666638640981, 0.0083333290560871388, -0.00019839232658930148, 2.717366696817612e-06}), f);
  Value* c = m.poly(
      u, {1.0, -0.5, 0.041666666615507997, -0.001388888316335911, 2.4799372706114456e-05, -2.7198626290369716e-07});
  Value* k = e.b.CreateTrunc(d.asInt(shifted), m.intType());
  if (quarter) k = e.b.CreateAdd(k, m.k(uint64_t(quarter)));
  Value* odd = e.b.CreateICmpNE(e.b.CreateAnd(k, m.k(1)), m.k(0));
  Value* sign = e.b.CreateShl(e.b.CreateAnd(k, m.k(2)), 30);
  return m.asFloat(e.b.CreateXor(m.asInt(e.b.CreateSelect(odd, c, s)), sign));
}

bool hasRounding(Emitter& e) {
  return e.avx2();
}  // SSE4.1 and later; `generic` is SSE2
// To an integer, half to even, for SSE2: adding and taking away 2^23 (2^52) rounds; larger numbers are integers
// already.
Value* roundByMagic(const Math& m, Value* x) {
  Emitter& e = m.e;
  double big = m.bits() == 32 ? 8388608.0 : 4503599627370496.0;
  Value* a = m.abs(x);
  Value* r = m.withSign(m.sub(m.add(a, m.c(big)), m.c(big)), m.signOf(x));
  return e.b.CreateSelect(e.b.CreateFCmpOLT(a, m.c(big)), r, x);
}
}  // namespace

Value* emitExp(Emitter& e, Value* x) {
  Math m(e, x);
  x = m.atLeast(m.atMost(x, 89.0), -104.5);
  Value* shifted = m.fma(x, m.c(1.44269504088896341), m.c(kRound));
  Value* n = m.sub(shifted, m.c(kRound));
  // ln 2 in two parts, the first with trailing zeros: n * hi is exact even without FMA.
  Value* r = m.fma(n, m.c(-0.693359375), x);
  r = m.fma(n, m.c(2.12194440054690583e-4), r);
  Value* q = m.poly(r, {0.49999993050712432, 0.16666514791277806, 0.041668456789788415, 0.0083694188465768815,
                        0.0013813144393746294});
  Value* p = m.fma(m.mul(r, r), q, r);
  return scale(m, m.add(p, m.c(1)), n, shifted);
}
Value* emitLog(Emitter& e, Value* x) {
  Math m(e, x);
  // Subnormals are scaled up by 2^23.
  Value* tiny = e.b.CreateFCmpOLT(x, m.c(0x1p-126));
  Value* s = e.b.CreateSelect(tiny, m.mul(x, m.c(0x1p23)), x);
  Value* bias = e.b.CreateSelect(tiny, m.k(uint64_t(-23)), m.k(0));
  Value* n = e.b.CreateAShr(e.b.CreateSub(m.asInt(s), m.k(0x3f3504f3)), 23);
  Value* f = m.sub(m.asFloat(e.b.CreateSub(m.asInt(s), e.b.CreateShl(n, 23))), m.c(1));
  Value* nf = e.b.CreateSIToFP(e.b.CreateAdd(n, bias), m.type);
  Value* u = m.mul(f, f);
  Value* p = m.poly(
      f, {0.33333311966681128, -0.25000008711783167, 0.20002167066071336, -0.16668090340350036, 0.14218554328517269,
          -0.12403083965776297, 0.11893513173506055, -0.11694334321207178, 0.067575679750290732});
  // f - f^2/2 + f^3 P(f) + n ln 2, small terms first.
  Value* r = m.fma(m.mul(f, u), p, m.mul(nf, m.c(-2.12194440054690583e-4)));
  r = m.fma(u, m.c(-0.5), r);
  r = m.fma(nf, m.c(0.693359375), m.add(f, r));
  // log(0) = -inf, log(inf) = inf, log(negative) = NaN.
  Value* inf = m.c(INFINITY);
  r = e.b.CreateSelect(e.b.CreateFCmpOEQ(x, inf), inf, r);
  r = e.b.CreateSelect(e.b.CreateFCmpOEQ(x, m.c(0)), m.c(-INFINITY), r);
  r = e.b.CreateSelect(e.b.CreateFCmpOLT(x, m.c(0)), m.c(NAN), r);
  return e.b.CreateSelect(e.b.CreateFCmpUNO(x, x), x, r);
}
Value* emitTanh(Emitter& e, Value* x) {
  Math m(e, x);
  Value* a = m.abs(x);
  Value* u = m.mul(x, x);
  Value* p = m.poly(u, {-0.33333330802732386, 0.13333206008301174, -0.053946763047337365, 0.021700703132267671,
                        -0.0081773980071622055, 0.0021429616303470476});
  Value* small = m.fma(m.mul(x, u), p, x);
  Value* t = emitExp(e, m.mul(m.atMost(a, 15.0), m.c(2)));
  Value* big = m.sub(m.c(1), e.b.CreateFDiv(m.c(2), m.add(t, m.c(1))));
  return e.b.CreateSelect(e.b.CreateFCmpOGT(a, m.c(0.625)), m.withSign(big, m.signOf(x)), small);
}
Value* emitErf(Emitter& e, Value* x) {
  Math m(e, x);
  Value* a = m.abs(x);
  Value* u = m.mul(x, x);
  Value* p = m.poly(u, {0.12837916657981005, -0.37612633188434208, 0.11283687188792507, -0.026858941512614032,
                        0.0051999066734255859, -0.00081300126864338146, 8.3167752016512401e-05});
  Value* small = m.fma(p, x, x);
  Value* t = m.atMost(a, 3.95);
  Value* q = m.poly(t, {0.12864848997272893, 0.63515131761752375, 0.10623687547693894, -0.023762060871828073,
                        0.0036424579735457605, -0.00032280357617870146, 1.1231275931137615e-05});
  Value* big = m.sub(m.c(1), emitExp(e, e.b.CreateFNeg(m.fma(t, q, t))));
  return e.b.CreateSelect(e.b.CreateFCmpOGT(a, m.c(0.93)), m.withSign(big, m.signOf(x)), small);
}
Value* emitSigmoid(Emitter& e, Value* x) {
  Math m(e, x);
  // exp of a number that is not positive, so that no side loses accuracy: e / (1 + e) on the left, 1 / (1 + e) else.
  Value* t = emitExp(e, e.b.CreateFNeg(m.abs(x)));
  Value* top = e.b.CreateSelect(e.b.CreateFCmpOLT(x, m.c(0)), t, m.c(1));
  return e.b.CreateFDiv(top, m.add(t, m.c(1)));
}
Value* emitSin(Emitter& e, Value* x) {
  return sinCos(e, x, 0);
}
Value* emitCos(Emitter& e, Value* x) {
  return sinCos(e, x, 1);
}
Value* emitPow(Emitter& e, Value* x, Value* y) {
  Math m(e, x);
  Value* ax = m.abs(x);
  Value* d = e.b.CreateFPExt(ax, vecType(e.b.getDoubleTy(), m.lanes()));
  Math dm(e, d);
  Value* l = log2Double(dm, d);
  l = e.b.CreateSelect(e.b.CreateFCmpOEQ(d, dm.c(0)), dm.c(-INFINITY), l);
  l = e.b.CreateSelect(e.b.CreateFCmpOEQ(d, dm.c(INFINITY)), dm.c(INFINITY), l);
  l = e.b.CreateSelect(e.b.CreateFCmpUNO(d, d), d, l);
  Value* t = dm.mul(l, e.b.CreateFPExt(y, dm.type));
  Value* magnitude = e.b.CreateFPTrunc(exp2Double(dm, dm.atLeast(dm.atMost(t, 200.0), -200.0)), m.type);
  // 1 whatever the other operand is: y = 0; |x| = 1 unless y is NaN; x = 1.
  Value* unit =
      e.b.CreateOr(e.b.CreateFCmpOEQ(y, m.c(0)), e.b.CreateAnd(e.b.CreateFCmpOEQ(ax, m.c(1)), e.b.CreateFCmpORD(y, y)));
  unit = e.b.CreateOr(unit, e.b.CreateFCmpOEQ(x, m.c(1)));
  magnitude = e.b.CreateSelect(unit, m.c(1), magnitude);
  // Negative x: the sign of an odd y, NaN for a fraction.
  Value* half = m.mul(y, m.c(0.5));
  Value* integral = e.b.CreateFCmpOEQ(emitFloor(e, y), y);
  Value* odd = e.b.CreateAnd(integral, e.b.CreateFCmpUNE(emitFloor(e, half), half));
  Value* sign = e.b.CreateAnd(m.signOf(x), e.b.CreateSExt(odd, m.intType()));
  Value* r = m.asFloat(e.b.CreateXor(m.asInt(magnitude), sign));
  Value* finite = e.b.CreateAnd(e.b.CreateFCmpOLT(x, m.c(0)), e.b.CreateFCmpONE(x, m.c(-INFINITY)));
  return e.b.CreateSelect(e.b.CreateAnd(finite, e.b.CreateNot(integral)), m.c(NAN), r);
}

Value* emitRound(Emitter& e, Value* x) {
  if (hasRounding(e)) return e.b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  return roundByMagic(Math(e, x), x);
}
Value* emitFloor(Emitter& e, Value* x) {
  if (hasRounding(e)) return e.b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  Math m(e, x);
  Value* r = roundByMagic(m, x);
  return m.withSign(e.b.CreateSelect(e.b.CreateFCmpOGT(r, x), m.sub(r, m.c(1)), r), m.signOf(x));
}
Value* emitCeil(Emitter& e, Value* x) {
  if (hasRounding(e)) return e.b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
  Math m(e, x);
  Value* r = roundByMagic(m, x);
  return m.withSign(e.b.CreateSelect(e.b.CreateFCmpOLT(r, x), m.add(r, m.c(1)), r), m.signOf(x));
}
Value* emitSqrt(Emitter& e, Value* x) {
  return e.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
}
Value* emitAbs(Emitter& e, Value* x) {
  return e.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
}

}  // namespace rutter::cpu
