#include "cpu/nest.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rutter::cpu {
using codegen::Config;
using codegen::KDim;
using codegen::Operand;
using codegen::Problem;
using codegen::PwInstr;
using codegen::PwProgram;

Rows Rows::over(const Problem& p, int axis, const std::vector<int64_t>& skip) {
  Rows r;
  r.axis = axis;
  for (int a = 0; a < int(p.space.size()); a++)
    if (a != axis && (skip.empty() || !skip[size_t(a)])) r.outer.push_back(a);
  return r;
}
Rows Rows::fromConfig(const Problem& p, const Config& c, const std::vector<int64_t>& skip) {
  Rows r = over(p, int(c.get("axis")), skip);
  r.rows = c.get("rows");
  r.chunk = c.get("chunk");
  return r;
}
void Rows::toConfig(Config& c) const {
  c.set("axis", axis);
  c.set("rows", rows);
  c.set("chunk", chunk);
}
void Rows::split(const Problem& p, const codegen::MachineProfile& m, double bytesPerPoint, double pointsPerRow,
                 int64_t taskBytes, int64_t step) {
  double count = 1;
  for (int a : outer) count *= double(std::max<int64_t>(1, p.optOf(p.space[size_t(a)])));
  double row = std::max(1.0, bytesPerPoint * pointsPerRow);
  double want = double(taskBytes);
  // Enough tasks for balance, none so small that taking it costs more than doing it.
  if (taskBytes == 0) want = std::clamp(row * count / (8.0 * m.cores), 8192.0, 262144.0);
  rows = 1;
  chunk = 0;
  if (step > 0 && row >= 2 * want) {
    chunk = std::max<int64_t>(1, int64_t(want / bytesPerPoint) / step) * step;
  } else {
    rows = std::clamp<int64_t>(int64_t(want / row), 1, std::max<int64_t>(1, int64_t(count)));
  }
}
void configureRows(const Problem& p, const codegen::MachineProfile& m, knobs::LayerKnobs& k, int64_t lanes,
                   int64_t unroll, double bytesPerPoint, const std::function<double(int)>& cost, Config& c) {
  int axis = -1;
  double best = 1e300;
  for (int a = 0; a < int(p.space.size()); a++)
    if (double s = cost(a); s < best) {
      best = s;
      axis = a;
    }
  double n = axis < 0 ? 1 : double(p.optOf(p.space[size_t(axis)]));
  unroll = k.getOr(knob::pointwise_unroll, unroll);
  while (!k.explicitly(knob::pointwise_unroll) && unroll > 1 && double(unroll * lanes) > n) unroll /= 2;
  Rows r = Rows::over(p, axis);
  r.split(p, m, bytesPerPoint, n, k.getOr(knob::pointwise_task_bytes, 0), lanes * unroll);
  c.set("lanes", lanes);
  c.set("unroll", unroll);
  r.toConfig(c);
}
ir::Dim Rows::tasks(const Problem& p) const {
  ir::Dim n = 1;
  for (int a : outer) n = n * p.space[size_t(a)].dim();
  n = ceilDiv(n, rows);
  if (chunk > 0) n = n * ceilDiv(p.space[size_t(axis)].dim(), chunk);
  return n;
}

void forRows(Emitter& e, const Problem& p, const Rows& r,
             const std::function<void(const Values&, Value*, Value*)>& body) {
  Values extents;
  Value* count = e.i64(1);
  for (int a : r.outer) {
    extents.push_back(e.dim(p.space[size_t(a)]));
    count = e.mul(count, extents.back());
  }
  Value* length = r.axis < 0 ? e.i64(1) : e.dim(p.space[size_t(r.axis)]);
  auto full = [&](const Values& outer) {
    Values c(p.space.size(), e.i64(0));
    for (size_t i = 0; i < r.outer.size(); i++) c[size_t(r.outer[i])] = outer[i];
    return c;
  };
  e.loop(e.begin(), e.end(), 1, [&](Value* task) {
    Value *group = task, *from = e.i64(0), *to = length;
    if (r.chunk > 0) {
      Value* chunks = e.udiv(e.add(length, e.i64(r.chunk - 1)), e.i64(r.chunk));
      group = e.udiv(task, chunks);
      from = e.mul(e.urem(task, chunks), e.i64(r.chunk));
      to = e.min(e.add(from, e.i64(r.chunk)), length);
    }
    if (r.outer.empty()) {
      body(full({}), from, to);
      return;
    }
    Value* first = e.mul(group, e.i64(r.rows));
    if (r.rows == 1) {
      body(full(decode(e, first, extents)), from, to);
      return;
    }
    Value* last = e.min(e.add(first, e.i64(r.rows)), count);
    e.loop(first, last, 1, decode(e, first, extents), [&](Value*, const Values& outer) {
      body(full(outer), from, to);
      return next(e, outer, extents);
    });
  });
}

namespace {
template <typename F>
void eachType(const Problem& p, F&& f) {
  for (const Operand& o : p.operands) f(o.dtype);
  for (const PwProgram* prog : {&p.prologue, &p.epilogue})
    for (const PwInstr& i : prog->code) f(i.type);
}
}  // namespace
int64_t vectorLanes(const Problem& p, int64_t vectorBytes) {
  int widest = 1;
  eachType(p, [&](ir::DType t) { widest = std::max(widest, ir::bitsOf(t) / 8); });
  // 64-bit types beside narrower ones take two registers a vector; halves are computed as 32 bits.
  bool narrow = false;
  for (const Operand& o : p.operands) narrow |= ir::bitsOf(o.dtype) < 64;
  if (widest == 8) return vectorBytes / (narrow ? 4 : 8);
  bool half = false;
  eachType(p, [&](ir::DType t) { half |= t == ir::DType::kF16 || t == ir::DType::kBF16; });
  return vectorBytes / (half ? 4 : widest);
}
bool masksAreCheap(const Problem& p, const codegen::MachineProfile& m) {
  CpuFeatures f(m.features);
  if (f.has(CpuFeature::kAvx512bw)) return true;
  if (!f.has(CpuFeature::kAvx2)) return false;
  bool all = true;
  for (const Operand& o : p.operands) all &= ir::bitsOf(o.dtype) >= 32;
  return all;
}
std::pair<int, double> cheapestAxis(const Problem& p, int64_t lanes, const std::vector<int64_t>& skip) {
  double points = 1;
  for (const KDim& d : p.space) points *= double(std::max<int64_t>(1, p.optOf(d)));
  std::pair<int, double> best{-1, 1e300};
  for (int a = 0; a < int(p.space.size()); a++) {
    if (!skip.empty() && skip[size_t(a)]) continue;
    double n = double(std::max<int64_t>(1, p.optOf(p.space[size_t(a)])));
    double vectors = std::ceil(n / double(lanes)), per = pwCost(p.prologue) + pwCost(p.epilogue);
    for (int i = p.anchors; i < int(p.operands.size()); i++) {
      const Operand& o = p.operands[size_t(i)];
      const KDim& s = o.strides[size_t(a)];
      per += s.is(1) ? 1.0 : s.is(0) && !o.output ? 0.1 : (o.output ? 2.0 : 1.5) * double(lanes);
    }
    // A row costs about ten instructions whatever its length.
    double cost = points / n * (vectors * per + 10);
    if (cost < best.second) best = {a, cost};
  }
  return best;
}
double bytesPerPoint(const Problem& p) {
  double points = 1;
  for (const KDim& d : p.space) points *= double(std::max<int64_t>(1, p.optOf(d)));
  return std::max(1.0, p.bytes() / points);
}
double estimate(const codegen::MachineProfile& m, double instructions, double bytes) {
  // Two vector instructions a cycle at 3 GHz; memory beyond L2 at 20 GB/s, within it at 80.
  double bandwidth = bytes > double(m.l2) ? 20e9 : 80e9;
  return std::max(instructions / 6e9, bytes / bandwidth) + 0.2e-6;
}
codegen::Lowering oneLaunch(const Problem& p, ir::Dim tasks, int64_t scratch) {
  codegen::Lowering l;
  codegen::LaunchSpec s;
  for (int i = 0; i < int(p.operands.size()); i++) s.refs.push_back(i);
  s.tasks = std::move(tasks);
  s.scratch = scratch;
  l.launches.push_back(std::move(s));
  return l;
}

}  // namespace rutter::cpu
