#include "cpu/pw.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "base/error.h"
#include "cpu/math.h"

namespace rutter::cpu {
using codegen::Problem;
using codegen::PwInstr;
using codegen::PwOp;
using codegen::PwProgram;
using ir::DType;

namespace {
bool isSigned(DType t) {
  return t == DType::kI8 || t == DType::kI16 || t == DType::kI32 || t == DType::kI64;
}

class Program {
 public:
  Program(Emitter& e, const Problem& p, const PwProgram& prog, const PwEnv& env)
      : e_(e), p_(p), prog_(prog), env_(env) {}
  Values run() {
    for (const PwInstr& i : prog_.code) values_.push_back(rounded(i, instruction(i)));
    Values out;
    for (int o : prog_.outputs) out.push_back(values_.at(size_t(o)));
    return out;
  }

 private:
  Value* arg(const PwInstr& i, int k) const { return values_.at(size_t(i.args[k])); }
  DType argType(const PwInstr& i, int k = 0) const { return prog_.code.at(size_t(i.args[k])).type; }
  llvm::Type* type(DType t) const { return vecType(registerType(e_, t), env_.lanes); }
  Value* zero(DType t) const { return llvm::Constant::getNullValue(type(t)); }
  Value* integer(DType t, uint64_t v) const { return llvm::ConstantInt::get(type(t), v); }
  Value* number(DType t, double v) const { return llvm::ConstantFP::get(type(t), v); }

  // f16 and bf16 are computed in f32 and rounded after every operation, as if each ran alone.
  Value* rounded(const PwInstr& i, Value* v) const {
    if (i.type != DType::kF16 && i.type != DType::kBF16) return v;
    switch (i.op) {
      case PwOp::kLoad:
      case PwOp::kConst:
      case PwOp::kMin:
      case PwOp::kMax:
      case PwOp::kNeg:
      case PwOp::kAbs:
      case PwOp::kSelect:
        return v;
      default:
        return fromMemory(e_, i.type, toMemory(e_, i.type, v));
    }
  }
  Value* instruction(const PwInstr& i) {
    switch (i.op) {
      case PwOp::kLoad:
        return env_.load(i.args[0]);
      case PwOp::kAcc:
        RUTTER_CHECK(env_.acc, "kAcc without an accumulator");
        return env_.acc;
      case PwOp::kConst:
        return constant(i);
      case PwOp::kIndex:
        return env_.index(i.args[0]);
      case PwOp::kParam:
        return splat(e_, e_.dim(p_.getInts("param").at(size_t(i.args[0]))), env_.lanes);
      case PwOp::kCast:
        return cast(arg(i, 0), argType(i), i.type);
      case PwOp::kSelect:
        return e_.b.CreateSelect(arg(i, 0), arg(i, 1), arg(i, 2));
      case PwOp::kEq:
      case PwOp::kNe:
      case PwOp::kLt:
      case PwOp::kLe:
      case PwOp::kGt:
      case PwOp::kGe:
        return compare(i);
      case PwOp::kIsNan:
        return e_.b.CreateFCmpUNO(arg(i, 0), arg(i, 0));
      case PwOp::kIsInf:
        return e_.b.CreateFCmpOEQ(emitAbs(e_, arg(i, 0)), number(argType(i), INFINITY));
      default:
        return ir::isFloat(i.type) ? floating(i) : integral(i);
    }
  }
  Value* constant(const PwInstr& i) const {
    if (ir::isFloat(i.type)) {
      double v = i.imm;
      if (i.type == DType::kF16) v = ir::halfToFloat(ir::floatToHalf(float(v)));
      if (i.type == DType::kBF16) v = ir::bf16ToFloat(ir::floatToBf16(float(v)));
      return number(i.type, v);
    }
    return integer(i.type, i.type == DType::kBool ? i.immInt != 0 : uint64_t(i.immInt));
  }
  Value* floating(const PwInstr& i) {
    Value* a = arg(i, 0);
    Value* c = i.args[1] >= 0 ? arg(i, 1) : nullptr;
    switch (i.op) {
      case PwOp::kAdd:
        return e_.b.CreateFAdd(a, c);
      case PwOp::kSub:
        return e_.b.CreateFSub(a, c);
      case PwOp::kMul:
        return e_.b.CreateFMul(a, c);
      case PwOp::kDiv:
        return e_.b.CreateFDiv(a, c);
      case PwOp::kMin:
        return fmin(e_, a, c);
      case PwOp::kMax:
        return fmax(e_, a, c);
      case PwOp::kPow:
        return power(i, a, c);
      case PwOp::kNeg:
        return e_.b.CreateFNeg(a);
      case PwOp::kAbs:
        return emitAbs(e_, a);
      case PwOp::kSign: {
        Value* up = e_.b.CreateSelect(e_.b.CreateFCmpOGT(a, zero(i.type)), number(i.type, 1), a);
        return e_.b.CreateSelect(e_.b.CreateFCmpOLT(a, zero(i.type)), number(i.type, -1), up);  // 0 and NaN stay
      }
      case PwOp::kSqrt:
        return emitSqrt(e_, a);
      case PwOp::kReciprocal:
        return e_.b.CreateFDiv(number(i.type, 1), a);
      case PwOp::kExp:
        return emitExp(e_, a);
      case PwOp::kLog:
        return emitLog(e_, a);
      case PwOp::kSin:
        return emitSin(e_, a);
      case PwOp::kCos:
        return emitCos(e_, a);
      case PwOp::kTanh:
        return emitTanh(e_, a);
      case PwOp::kErf:
        return emitErf(e_, a);
      case PwOp::kSigmoid:
        return emitSigmoid(e_, a);
      case PwOp::kFloor:
        return emitFloor(e_, a);
      case PwOp::kCeil:
        return emitCeil(e_, a);
      case PwOp::kRound:
        return emitRound(e_, a);
      default:
        throw InternalError(fmt::format("pointwise operation {} on floats", int(i.op)));
    }
  }
  Value* power(const PwInstr& i, Value* x, Value* y) {
    const PwInstr& e = prog_.code[size_t(i.args[1])];
    if (e.op == PwOp::kConst) {  // frequent exponents, to within an ulp of the general function
      if (e.imm == 1) return x;
      if (e.imm == 2) return e_.b.CreateFMul(x, x);
      if (e.imm == 3) return e_.b.CreateFMul(e_.b.CreateFMul(x, x), x);
      if (e.imm == -1) return e_.b.CreateFDiv(number(i.type, 1), x);
      // pow(-0, 1/2) is +0 and pow(-inf, 1/2) is inf: adding 0 repairs the first; the second needs a select.
      if (e.imm == 0.5) {
        Value* r = emitSqrt(e_, e_.b.CreateFAdd(x, zero(i.type)));
        return e_.b.CreateSelect(e_.b.CreateFCmpOEQ(x, number(i.type, -INFINITY)), number(i.type, INFINITY), r);
      }
    }
    return emitPow(e_, x, y);
  }
  // Division fails the kernel on an active zero; other lanes, and the one quotient that overflows, are made harmless.
  Value* divide(const PwInstr& i, Value* a, Value* d, bool remainder) {
    bool sign = isSigned(i.type);
    auto* known = llvm::dyn_cast<llvm::Constant>(d);
    Value* isZero = e_.b.CreateICmpEQ(d, zero(i.type));
    if (!(known && !known->containsUndefOrPoisonElement() && llvm::isa<llvm::Constant>(isZero) &&
          llvm::cast<llvm::Constant>(isZero)->isNullValue()))
      e_.failIf(anyLane(e_, isZero, env_.mask), runtime::KernelStatus::kDivisionByZero);
    Value* minusOne = sign ? e_.b.CreateICmpEQ(d, integer(i.type, ~0ull)) : nullptr;
    Value* odd = minusOne ? e_.b.CreateOr(isZero, minusOne) : isZero;
    Value* safe = e_.b.CreateSelect(odd, integer(i.type, 1), d);
    if (remainder) return sign ? e_.b.CreateSRem(a, safe) : e_.b.CreateURem(a, safe);
    Value* q = sign ? e_.b.CreateSDiv(a, safe) : e_.b.CreateUDiv(a, safe);
    return minusOne ? e_.b.CreateSelect(minusOne, e_.b.CreateNeg(a), q) : q;
  }
  Value* integral(const PwInstr& i) {
    Value* a = arg(i, 0);
    Value* c = i.args[1] >= 0 ? arg(i, 1) : nullptr;
    bool sign = isSigned(i.type);
    switch (i.op) {
      case PwOp::kAdd:
        return e_.b.CreateAdd(a, c);
      case PwOp::kSub:
        return e_.b.CreateSub(a, c);
      case PwOp::kMul:
        return e_.b.CreateMul(a, c);
      case PwOp::kDiv:
        return divide(i, a, c, false);
      case PwOp::kFmod:
        return divide(i, a, c, true);
      case PwOp::kMod: {  // sign of the divisor
        Value* r = divide(i, a, c, true);
        if (!sign) return r;
        Value* differ = e_.b.CreateICmpSLT(e_.b.CreateXor(r, c), zero(i.type));
        Value* fix = e_.b.CreateAnd(differ, e_.b.CreateICmpNE(r, zero(i.type)));
        return e_.b.CreateSelect(fix, e_.b.CreateAdd(r, c), r);
      }
      case PwOp::kMin:
        return e_.b.CreateSelect(sign ? e_.b.CreateICmpSLT(a, c) : e_.b.CreateICmpULT(a, c), a, c);
      case PwOp::kMax:
        return e_.b.CreateSelect(sign ? e_.b.CreateICmpSGT(a, c) : e_.b.CreateICmpUGT(a, c), a, c);
      case PwOp::kNeg:
        return e_.b.CreateNeg(a);
      case PwOp::kAbs:
        return sign ? e_.b.CreateSelect(e_.b.CreateICmpSLT(a, zero(i.type)), e_.b.CreateNeg(a), a) : a;
      case PwOp::kSign: {
        Value* up = e_.b.CreateZExt(e_.b.CreateICmpNE(a, zero(i.type)), type(i.type));
        return sign ? e_.b.CreateSelect(e_.b.CreateICmpSLT(a, zero(i.type)), integer(i.type, ~0ull), up) : up;
      }
      case PwOp::kFloor:
      case PwOp::kCeil:
      case PwOp::kRound:
        return a;
      case PwOp::kAnd:
        return e_.b.CreateAnd(a, c);
      case PwOp::kOr:
        return e_.b.CreateOr(a, c);
      case PwOp::kXor:
        return e_.b.CreateXor(a, c);
      case PwOp::kNot:
        return e_.b.CreateNot(a);
      default:
        throw InternalError(fmt::format("pointwise operation {} on integers", int(i.op)));
    }
  }
  Value* compare(const PwInstr& i) {
    using P = llvm::CmpInst::Predicate;
    DType t = argType(i);
    int k = int(i.op) - int(PwOp::kEq);
    static constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
    static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
    static constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
    return e_.b.CreateCmp(ir::isFloat(t) ? kFloat[k] : isSigned(t) ? kSigned[k] : kUnsigned[k], arg(i, 0), arg(i, 1));
  }
  Value* cast(Value* v, DType from, DType to) {
    if (from == to) return v;
    bool ff = ir::isFloat(from), tf = ir::isFloat(to);
    if (to == DType::kBool) return ff ? e_.b.CreateFCmpUNE(v, zero(from)) : e_.b.CreateICmpNE(v, zero(from));
    if (ff && tf) return e_.b.CreateFPCast(v, type(to));
    if (!ff && tf) return isSigned(from) ? e_.b.CreateSIToFP(v, type(to)) : e_.b.CreateUIToFP(v, type(to));
    if (ff && !tf)  // towards zero; out of range saturates, NaN gives 0
      return e_.b.CreateIntrinsic(isSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                                  {type(to), v->getType()}, {v});
    return e_.b.CreateIntCast(v, type(to), isSigned(from));
  }

  Emitter& e_;
  const Problem& p_;
  const PwProgram& prog_;
  const PwEnv& env_;
  Values values_;
};
}  // namespace

Values emitPw(Emitter& e, const Problem& p, const PwProgram& prog, const PwEnv& env) {
  return Program(e, p, prog, env).run();
}

namespace {
std::optional<std::string> typeRefused(DType t, const codegen::MachineProfile& m) {
  // Which types have kernels at all is isCompilable's to say.
  if (t == DType::kF16 && !CpuFeatures(m.features).has(CpuFeature::kF16c))
    return fmt::format("{} without F16C", ir::dtypeName(t));
  return {};
}
}  // namespace
std::optional<std::string> pwRefuses(const Problem& p, const codegen::MachineProfile& m) {
  for (const codegen::Operand& o : p.operands)
    if (auto r = typeRefused(o.dtype, m)) return r;
  for (const PwProgram* prog : {&p.prologue, &p.epilogue})
    for (const PwInstr& i : prog->code) {
      if (auto r = typeRefused(i.type, m)) return r;
      bool f = ir::isFloat(i.type);
      switch (i.op) {
        case PwOp::kExp:
        case PwOp::kLog:
        case PwOp::kSin:
        case PwOp::kCos:
        case PwOp::kTanh:
        case PwOp::kErf:
        case PwOp::kSigmoid:
          if (!f || i.type == DType::kF64) return fmt::format("elementary functions of {}", ir::dtypeName(i.type));
          break;
        case PwOp::kPow: {
          const PwInstr& y = prog->code[size_t(i.args[1])];
          if (!f) return fmt::format("powers of {}", ir::dtypeName(i.type));
          if (prog->code[size_t(i.args[0])].type != i.type || y.type != i.type) return "powers of mixed types";
          bool easy = y.op == PwOp::kConst && (y.imm == 0.5 || y.imm == 1 || y.imm == 2 || y.imm == 3 || y.imm == -1);
          if (i.type == DType::kF64 && !easy) return "powers of float64";
          break;
        }
        case PwOp::kMod:
        case PwOp::kFmod:
          if (f) return "remainders of floats";
          break;
        case PwOp::kSqrt:
        case PwOp::kReciprocal:
          if (!f) return fmt::format("square roots and reciprocals of {}", ir::dtypeName(i.type));
          break;
        default:
          break;
      }
    }
  return {};
}
double pwCost(const PwProgram& prog) {
  double n = 0;
  for (const PwInstr& i : prog.code) switch (i.op) {
      case PwOp::kConst:
      case PwOp::kAcc:
      case PwOp::kParam:
        break;
      case PwOp::kExp:
        n += 14;
        break;
      case PwOp::kLog:
      case PwOp::kSigmoid:
        n += 24;
        break;
      case PwOp::kTanh:
      case PwOp::kErf:
        n += 32;
        break;
      case PwOp::kSin:
      case PwOp::kCos:
        n += 40;
        break;
      case PwOp::kPow:
        n += prog.code[size_t(i.args[1])].op == PwOp::kConst ? 2 : 100;
        break;
      case PwOp::kDiv:
      case PwOp::kMod:
      case PwOp::kFmod:
        n += ir::isFloat(i.type) ? 6 : 60;
        break;
      case PwOp::kSqrt:
      case PwOp::kReciprocal:
        n += 6;
        break;
      default:
        n += ir::bitsOf(i.type) == 64 ? 2 : 1;
    }
  return n;
}

}  // namespace rutter::cpu
