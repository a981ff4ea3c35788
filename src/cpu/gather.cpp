// Gather along one axis: rows copied by vectors, or elements one by one where the vectors' axis is the indices'. Every
// index is checked.
#include <cmath>

#include "base/error.h"
#include "cpu/nest.h"
#include "cpu/tactic.h"

namespace rutter::cpu {
namespace {
using codegen::Config;
using codegen::KDim;
using codegen::MachineProfile;
using codegen::Operand;
using codegen::Problem;
using codegen::ProblemKind;
using ir::DType;

// Where an axis of the space comes from.
struct Axes {
  int axis, indices;  // gathered axis of the data; rank of the indices
  explicit Axes(const Problem& p) : axis(int(p.getInt("axis"))), indices(int(p.operands[1].dims.size())) {}
  bool ofIndices(int a) const { return a >= axis && a < axis + indices; }
  int inData(int a) const { return a < axis ? a : a - indices + 1; }
};
double gatherCost(const Problem& p, int a, int64_t lanes) {
  Axes x(p);
  double points = 1, n = double(std::max<int64_t>(1, p.optOf(p.space[size_t(a)])));
  for (const KDim& d : p.space) points *= double(std::max<int64_t>(1, p.optOf(d)));
  double load = x.ofIndices(a)                                     ? 4.0 * double(lanes)
                : p.operands[0].strides[size_t(x.inData(a))].is(1) ? 1.0
                                                                   : 2.0 * double(lanes);
  double store = 0;
  for (const Operand& o : p.operands)
    if (o.output) store += o.strides[size_t(a)].is(1) ? 1 : 2.0 * double(lanes);
  return points / n * (std::ceil(n / double(lanes)) * (load + store + pwCost(p.epilogue)) + 20);
}

class Gather final : public CpuTactic {
 public:
  std::string_view name() const override { return "gather"; }
  ProblemKind kind() const override { return ProblemKind::kGather; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    if (auto r = pwRefuses(p, m)) return r;
    DType t = p.operands[1].dtype;
    if (t != DType::kI32 && t != DType::kI64) return fmt::format("indices of {}", ir::dtypeName(t));
    return {};
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    int64_t lanes = vectorLanes(p, c.get("vector"));
    // Indices are wider than the data more often than not, and scalars in the good case: lanes by the data alone.
    if (ir::bitsOf(p.operands[0].dtype) == 32) lanes = c.get("vector") / 4;
    configureRows(p, m, k, lanes, 4, bytesPerPoint(p), [&](int axis) { return gatherCost(p, axis, lanes); }, c);
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    int axis = int(c.get("axis"));
    return estimate(m, axis < 0 ? 10 : gatherCost(p, axis, c.get("lanes")), p.bytes());
  }
  codegen::Lowering lower(const Problem& p, const Config& c) const override {
    return oneLaunch(p, Rows::fromConfig(p, c).tasks(p));
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    Rows r = Rows::fromConfig(p, c);
    Axes x(p);
    const Operand &data = p.operands[0], &indices = p.operands[1];
    int lanes = r.axis < 0 ? 1 : int(c.get("lanes"));
    bool each = r.axis >= 0 && x.ofIndices(r.axis);
    Value* extent = nullptr;
    auto checked = [&](Value* i, Value* mask) {  // i: i64, any lanes
      int n = lanesOf(i);
      Value* d = splat(e, extent, n);
      i = e.b.CreateSelect(e.b.CreateICmpSLT(i, llvm::Constant::getNullValue(i->getType())), e.b.CreateAdd(i, d), i);
      e.failIf(anyLane(e, e.b.CreateICmpUGE(i, d), mask), runtime::KernelStatus::kIndexOutOfRange);
      return i;
    };
    e.beginKernel();
    extent = e.dim(data.dims[size_t(x.axis)]);
    KDim gathered = data.strides[size_t(x.axis)];
    forRows(e, p, r, [&](const Values& coord, Value* from, Value* to) {
      Value *base = e.i64(0), *where = e.i64(0);
      for (int a = 0; a < int(p.space.size()); a++) {
        if (a == r.axis) continue;
        if (x.ofIndices(a))
          where = e.add(where, e.mul(coord[size_t(a)], indices.strides[size_t(a - x.axis)]));
        else
          base = e.add(base, e.mul(coord[size_t(a)], data.strides[size_t(x.inData(a))]));
      }
      Points out(e, p, coord, r.axis);
      llvm::Type* it = memoryType(e, indices.dtype);
      if (!each) {
        Value* i = loadVector(e, it, e.at(e.operand(1), where, elementBytes(indices.dtype)), 1);
        base = e.add(base, e.mul(checked(e.b.CreateSExt(i, e.b.getInt64Ty()), nullptr), gathered));
      }
      vectorLoop(e, from, to, lanes, int(c.get("unroll")), [&](const Values& starts, Value* mask) {
        Values acc;
        for (Value* s : starts) {
          Value* v;
          if (each) {
            Value* step = e.dim(indices.strides[size_t(r.axis - x.axis)]);
            Value* i = loadLanes(e, indices.dtype, e.operand(1), e.add(where, e.mul(s, step)), step, lanes, mask);
            i = checked(e.b.CreateSExt(i, vecType(e.b.getInt64Ty(), lanes)), mask);
            Value* at = e.add(splat(e, base, lanes), e.mul(i, splat(e, e.dim(gathered), lanes)));
            v = gatherLanes(e, data.dtype, e.operand(0), at, lanes, mask);
          } else if (r.axis < 0) {
            v = loadLanes(e, data.dtype, e.operand(0), base, e.i64(1), 1, nullptr);
          } else {
            Value* step = e.dim(data.strides[size_t(x.inData(r.axis))]);
            v = loadLanes(e, data.dtype, e.operand(0), e.add(base, e.mul(s, step)), step, lanes, mask);
          }
          acc.push_back(fromMemory(e, data.dtype, v));
        }
        out.epilogue(starts, lanes, mask, acc);
      });
    });
    e.endKernel();
  }
};
}  // namespace

const CpuTactic& gatherTactic() {
  static const Gather t;
  return t;
}

}  // namespace rutter::cpu
