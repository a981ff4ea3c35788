#include "base/error.h"
#include "cpu/pw.h"

namespace rutter::cpu {
using codegen::Operand;
using codegen::Problem;
using ir::DType;

namespace {
llvm::Constant* fillConstant(Emitter& e, DType t, double v) {
  switch (t) {
    case DType::kBF16:
      return e.b.getInt16(ir::floatToBf16(float(v)));
    case DType::kBool:
      return e.b.getInt8(v != 0);
    default:
      break;
  }
  llvm::Type* type = memoryType(e, t);
  if (type->isFloatingPointTy()) return llvm::ConstantFP::get(type, v);
  return llvm::cast<llvm::Constant>(llvm::ConstantInt::get(type, uint64_t(int64_t(v)), true));
}
}  // namespace

namespace {
std::vector<bool> operandsOf(const Problem& p, const codegen::PwProgram* only) {
  std::vector<bool> used(p.operands.size(), false);
  for (const codegen::PwInstr& i : (only ? *only : p.epilogue).code)
    if (i.op == codegen::PwOp::kLoad) used.at(size_t(i.args[0])) = true;
  for (size_t k = 0; k < used.size() && !only; k++) used[k] = used[k] || p.operands[k].output;
  return used;
}
}  // namespace
Points::Points(Emitter& e, const Problem& p, Values coord, int axis, const codegen::PwProgram* only)
    : e_(e), p_(p), coord_(std::move(coord)), axis_(axis) {
  places_.resize(p.operands.size());
  std::vector<bool> used = operandsOf(p, only);
  for (size_t k = size_t(p.anchors); k < p.operands.size(); k++) {
    if (!used[k]) continue;
    const Operand& o = p.operands[k];
    Place& at = places_[k];
    Value* offset = e.i64(0);
    auto both = [&](Value* a, Value* c) { return !a ? c : e.b.CreateAnd(a, c); };
    for (size_t a = 0; a < p.space.size(); a++) {
      bool windowed = !o.lo.empty() && !(o.lo[a].is(0) && o.hi[a] == p.space[a]);
      if (int(a) == axis) {
        at.stride = e.dim(o.strides[a]);
        if (windowed) {
          at.lo = e.dim(o.lo[a]);
          at.hi = e.dim(o.hi[a]);
          if (!o.lo[a].is(0)) offset = e.sub(offset, e.mul(at.lo, o.strides[a]));
        }
        continue;
      }
      Value* c = coord_.at(a);
      if (windowed) {
        at.inside =
            both(at.inside, e.b.CreateAnd(e.b.CreateICmpSGE(c, e.dim(o.lo[a])), e.b.CreateICmpSLT(c, e.dim(o.hi[a]))));
        c = e.sub(c, e.dim(o.lo[a]));
      }
      offset = e.add(offset, e.mul(c, o.strides[a]));
    }
    if (!at.stride) at.stride = e.i64(0);
    at.base = e.at(e.operand(int(k)), offset, elementBytes(o.dtype));
    if (at.inside || at.lo) at.fill = fillConstant(e, o.dtype, o.fill);
    auto* s = Emitter::constant(at.stride);
    if (!o.output && s && s->isZero() && !at.lo) {
      Value* from = at.base;
      if (at.inside)  // a dummy address instead of a branch
        from = e.b.CreateSelect(at.inside, from, e.constantData(llvm::cast<llvm::Constant>(at.fill), "fill"));
      at.uniform = fromMemory(e, o.dtype, loadVector(e, memoryType(e, o.dtype), from, 1));
    }
  }
}

Value* Points::load(int operand, Value* i, int lanes, Value* mask) const {
  const Operand& o = p_.operands.at(size_t(operand));
  const Place& at = places_.at(size_t(operand));
  if (at.uniform) return splat(e_, at.uniform, lanes);
  // Lanes inside the window.
  Value* in = nullptr;
  if (at.inside) in = splat(e_, at.inside, lanes);
  if (at.lo) {
    Value* c = iota(e_, lanes, i, e_.i64(1));
    in = andMask(
        e_, in,
        e_.b.CreateAnd(e_.b.CreateICmpSGE(c, splat(e_, at.lo, lanes)), e_.b.CreateICmpSLT(c, splat(e_, at.hi, lanes))));
  }
  Value* allowed = andMask(e_, in, mask);
  auto* fill = at.fill ? llvm::cast<llvm::Constant>(at.fill) : nullptr;
  Value* v = loadLanes(e_, o.dtype, at.base, e_.mul(i, at.stride), at.stride, lanes, allowed, fill);
  return fromMemory(e_, o.dtype, v);
}
void Points::store(int operand, Value* i, int lanes, Value* v, Value* mask) const {
  const Operand& o = p_.operands.at(size_t(operand));
  const Place& at = places_.at(size_t(operand));
  v = toMemory(e_, o.dtype, v);
  auto* s = Emitter::constant(at.stride);
  if (lanes == 1 || (s && s->isOne())) {
    Value* to = e_.at(at.base, lanes == 1 ? e_.mul(i, at.stride) : i, elementBytes(o.dtype));
    storeVector(e_, v, to, mask);
    return;
  }
  for (int l = 0; l < lanes; l++) {
    Value* to = e_.at(at.base, e_.mul(e_.add(i, e_.i64(l)), at.stride), elementBytes(o.dtype));
    storeVector(e_, e_.b.CreateExtractElement(v, uint64_t(l)), to,
                mask ? e_.b.CreateExtractElement(mask, uint64_t(l)) : nullptr);
  }
}
PwEnv Points::env(Value* i, int lanes, Value* mask, Value* acc) const {
  PwEnv env;
  env.lanes = lanes;
  env.mask = mask;
  env.acc = acc;
  env.load = [this, i, lanes, mask](int operand) { return load(operand, i, lanes, mask); };
  env.index = [this, i, lanes](int axis) {
    if (axis == axis_) return iota(e_, lanes, i, e_.i64(1));
    return splat(e_, coord_.at(size_t(axis)), lanes);
  };
  return env;
}
void Points::epilogue(const Values& starts, int lanes, Value* mask, const Values& acc) const {
  std::vector<Values> results;
  for (size_t u = 0; u < starts.size(); u++)
    results.push_back(emitPw(e_, p_, p_.epilogue, env(starts[u], lanes, mask, acc.empty() ? nullptr : acc.at(u))));
  int first = p_.firstOutput();
  for (size_t u = 0; u < starts.size(); u++)
    for (size_t o = 0; o < results[u].size(); o++) store(first + int(o), starts[u], lanes, results[u][o], mask);
}

Values decode(Emitter& e, Value* linear, const Values& extents) {
  Values c(extents.size());
  for (size_t a = extents.size(); a-- > 0;) {
    c[a] = a == 0 ? linear : e.urem(linear, extents[a]);
    if (a > 0) linear = e.udiv(linear, extents[a]);
  }
  return c;
}
Values next(Emitter& e, const Values& coord, const Values& extents) {
  Values out = coord;
  Value* carry = nullptr;  // null: certain
  for (size_t a = coord.size(); a-- > 0;) {
    Value* plus = e.add(coord[a], carry ? e.b.CreateZExt(carry, e.b.getInt64Ty()) : e.i64(1));
    if (a == 0) {
      out[a] = plus;
      break;
    }
    Value* wraps = e.b.CreateICmpEQ(plus, extents[a]);
    out[a] = e.b.CreateSelect(wraps, e.i64(0), plus);
    carry = wraps;
  }
  return out;
}

}  // namespace rutter::cpu
