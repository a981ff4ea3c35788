// Evaluation of a plan's expressions, and the bounds that depend on them.
#include "base/error.h"
#include "ir/dtype.h"
#include "runtime/fb.h"
#include "runtime/verify.h"

namespace rutter::runtime {
namespace {

int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
constexpr int64_t kTooBig = int64_t(1) << 60;

// Bytes of a dense tensor, or -1 if an extent is negative or the size absurd.
int64_t tensorBytes(uint8_t dtype, const flatbuffers::Vector<int32_t>* dims, std::span<const int64_t> v) {
  int64_t n = 1;
  bool empty = false;
  for (uint32_t i = 0; i < count(dims); i++) {
    int64_t d = v[size_t(dims->Get(i))];
    if (d < 0) return -1;
    if (d == 0)
      empty = true;
    else if (__builtin_mul_overflow(n, d, &n) || n > kTooBig / 16)
      return -1;
  }
  return empty ? 0 : ir::bytesOf(ir::DType(dtype), n);
}
int64_t offsetOf(const fb::Ref& r, std::span<const int64_t> v) {
  return r.offset() < 0 ? 0 : v[size_t(r.offset())];
}

}  // namespace

std::vector<int32_t> inputDimOffsets(const fb::Plan& plan) {
  std::vector<int32_t> at;
  int32_t n = 0;
  for (uint32_t i = 0; i < count(plan.io()); i++) {
    if (!plan.io()->Get(i)->is_input()) break;
    at.push_back(n);
    n += int32_t(count(plan.io()->Get(i)->dims()));
  }
  at.push_back(n);
  return at;
}

void evaluateExprs(const fb::Plan& plan, std::span<const int64_t> inputDims, std::span<int64_t> out) {
  int32_t offsets[256];
  std::vector<int32_t> many;
  const int32_t* first = offsets;
  uint32_t inputs = 0;
  for (int32_t n = 0; inputs < count(plan.io()) && plan.io()->Get(inputs)->is_input(); inputs++) {
    if (inputs == 256) {
      many = inputDimOffsets(plan);
      first = many.data();
      break;
    }
    offsets[inputs] = n;
    n += int32_t(count(plan.io()->Get(inputs)->dims()));
  }
  for (uint32_t i = 0, n = count(plan.exprs()); i < n; i++) {
    const fb::DimExpr& e = *plan.exprs()->Get(i);
    if (e.op() == fb::DimOp::Constant) {
      out[i] = e.value();
      continue;
    }
    if (e.op() == fb::DimOp::InputDim) {
      out[i] = inputDims[size_t(first[e.a()] + e.b())];
      continue;
    }
    int64_t a = out[size_t(e.a())], b = out[size_t(e.b())], r = 0;
    bool overflow = false;
    switch (e.op()) {
      case fb::DimOp::Add:
        overflow = __builtin_add_overflow(a, b, &r);
        break;
      case fb::DimOp::Mul:
        overflow = __builtin_mul_overflow(a, b, &r);
        break;
      case fb::DimOp::Min:
        r = std::min(a, b);
        break;
      case fb::DimOp::Max:
        r = std::max(a, b);
        break;
      default:
        if (b == 0) throw UserError("a size of the engine divides by zero for these input shapes");
        if ((overflow = a == INT64_MIN)) break;
        if (e.op() == fb::DimOp::FloorDiv) r = floorDiv(a, b);
        if (e.op() == fb::DimOp::CeilDiv) r = -floorDiv(-a, b);
        if (e.op() == fb::DimOp::Mod) r = a % b, r += r != 0 && (r < 0) != (b < 0) ? b : 0;
    }
    if (overflow) throw UserError("a size of the engine exceeds 64 bits for these input shapes");
    out[i] = r;
  }
}

int failedCheck(const fb::Plan& plan, std::span<const int64_t> v) {
  for (uint32_t i = 0; i < count(plan.checks()); i++) {
    const fb::Check& c = *plan.checks()->Get(i);
    int64_t a = v[size_t(c.a())], b = v[size_t(c.b())];
    bool ok = c.kind() == fb::CheckKind::Equal     ? a == b
              : c.kind() == fb::CheckKind::AtLeast ? a >= b
                                                   : b != 0 && b != -1 && a % b == 0;
    if (!ok) return int(i);
  }
  return -1;
}

int64_t bufferBytes(const fb::Buffer& b, std::span<const int64_t> v) {
  return b.place() == fb::Place::Weights ? b.bytes() : v[size_t(b.size())];
}
int64_t arenaUse(const fb::Plan& plan, std::span<const int64_t> v) {
  int64_t end = 0;
  for (uint32_t i = 0; i < count(plan.buffers()); i++) {
    const fb::Buffer& b = *plan.buffers()->Get(i);
    if (b.place() == fb::Place::Arena) end = std::max(end, b.offset() + std::min(bufferBytes(b, v), kTooBig));
  }
  return end;
}

std::string checkSizes(const fb::Plan& plan, std::span<const int64_t> v, int64_t arenaBytes) {
  for (uint32_t i = 0; i < count(plan.io()); i++) {
    const fb::IoTensor& t = *plan.io()->Get(i);
    if (tensorBytes(t.dtype(), t.dims(), v) < 0)
      return fmt::format("'{}' has a negative or overflowing size", t.name()->c_str());
  }
  for (uint32_t i = 0; i < count(plan.buffers()); i++) {
    const fb::Buffer& b = *plan.buffers()->Get(i);
    int64_t n = bufferBytes(b, v);
    if (n < 0 || n > kTooBig) return fmt::format("buffer {} has {} bytes", i, n);
    if (b.place() == fb::Place::Arena && n > arenaBytes - b.offset())
      return fmt::format("buffer {} takes {} bytes at {} of an arena of {}", i, n, b.offset(), arenaBytes);
    if (b.place() == fb::Place::Input || b.place() == fb::Place::Output) {
      const fb::IoTensor& t = *plan.io()->Get(uint32_t(b.io()));
      if (n > tensorBytes(t.dtype(), t.dims(), v))
        return fmt::format("buffer {} is larger than '{}'", i, t.name()->c_str());
    }
  }
  auto fits = [&](const fb::Ref& r, int64_t bytes) {
    int64_t have = bufferBytes(*plan.buffers()->Get(uint32_t(r.buffer())), v), at = offsetOf(r, v);
    return bytes >= 0 && at >= 0 && at <= have && bytes <= have - at;
  };
  const auto* code = plan.regions()->Get(0)->code();
  for (uint32_t i = 0; i < count(code); i++) {
    const fb::Instruction& x = *code->Get(i);
    bool ok = true;
    if (const auto* l = x.action_as_Launch()) {
      for (uint32_t k = 0; k < count(l->refs()); k++) ok &= fits(*l->refs()->Get(k), 0);
      ok &= v[size_t(l->tasks())] >= 0;
    } else if (const auto* r = x.action_as_Reference()) {
      for (const auto* list : {r->inputs(), r->outputs()})
        for (uint32_t k = 0; k < count(list); k++) {
          const fb::Operand& o = *list->Get(k);
          if (o.present()) ok &= fits(*o.ref(), tensorBytes(o.dtype(), o.dims(), v));
        }
    } else if (const auto* c = x.action_as_Copy()) {
      ok = fits(*c->from(), v[size_t(c->bytes())]) && fits(*c->to(), v[size_t(c->bytes())]);
    }
    if (!ok) return fmt::format("instruction {} reaches outside its buffers", i);
  }
  return "";
}

}  // namespace rutter::runtime
