// Pointwise programs whose inputs run along another axis than the output: square tiles are transposed in registers, so
// that both sides are read and written in whole vectors.
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
using codegen::PwInstr;
using codegen::PwOp;

bool crosses(const Operand& o, int u, int v) {
  const KDim &su = o.strides[size_t(u)], &sv = o.strides[size_t(v)];
  return !o.output && ir::bitsOf(o.dtype) == 32 && o.lo.empty() && su.is(1) && !sv.is(0) && !sv.is(1);
}
// (u, v): the axis along which inputs are dense, and that of the outputs.
std::optional<std::pair<int, int>> axesOf(const Problem& p) {
  for (int v = 0; v < int(p.space.size()); v++) {
    bool all = true;
    for (const Operand& o : p.operands) all &= !o.output || o.strides[size_t(v)].is(1);
    if (!all || p.space[size_t(v)].is(1)) continue;
    for (int u = 0; u < int(p.space.size()); u++)
      for (const Operand& o : p.operands)
        if (u != v && crosses(o, u, v)) return std::pair(u, v);
  }
  return std::nullopt;
}
double tileCost(const Problem& p, int u, int v, double t) {
  double points = 1, n = 0;
  for (const KDim& d : p.space) points *= double(std::max<int64_t>(1, p.optOf(d)));
  for (const Operand& o : p.operands) n += crosses(o, u, v);
  double nu = double(std::max<int64_t>(1, p.optOf(p.space[size_t(u)]))),
         nv = double(std::max<int64_t>(1, p.optOf(p.space[size_t(v)])));
  double tiles = points / nu / nv * std::ceil(nu / t) * std::ceil(nv / t);
  return tiles * t * (n * (1 + std::log2(t)) + 3 + pwCost(p.epilogue));
}

// In-register transposition of t rows of t 32-bit lanes, t = 4, 8 or 16: pairs, quadruples, then 128-bit blocks.
Values transposed(Emitter& e, Values r) {
  int t = int(r.size());
  auto shuffle = [&](Value* a, Value* b, const std::function<int(int block, int lane)>& pick) {
    std::vector<int> m;
    for (int l = 0; l < t; l++) {
      int s = pick(l / 4, l % 4);  // 0..3 of a, 4..7 of b, in the same block
      m.push_back((s < 4 ? 0 : t) + l / 4 * 4 + s % 4);
    }
    return e.b.CreateShuffleVector(a, b, m);
  };
  Values s(r.size());
  for (int i = 0; i < t; i += 2) {
    s[size_t(i)] = shuffle(r[size_t(i)], r[size_t(i + 1)], [](int, int l) { return l / 2 + (l % 2) * 4; });
    s[size_t(i + 1)] = shuffle(r[size_t(i)], r[size_t(i + 1)], [](int, int l) { return 2 + l / 2 + (l % 2) * 4; });
  }
  for (int i = 0; i < t; i += 4)
    for (int k = 0; k < 2; k++) {
      Value *a = s[size_t(i + k)], *b = s[size_t(i + 2 + k)];
      r[size_t(i + 2 * k)] = shuffle(a, b, [](int, int l) { return l < 2 ? l : 2 + l; });
      r[size_t(i + 2 * k + 1)] = shuffle(a, b, [](int, int l) { return l < 2 ? 2 + l : 4 + l; });
    }
  // Now block L of r[4g + k] holds column 4L + k of rows 4g … 4g + 3.
  auto blocks = [&](Value* a, Value* b, std::vector<int> pick) {
    std::vector<int> m;
    for (int x : pick)
      for (int l = 0; l < 4; l++) m.push_back(4 * x + l);
    return e.b.CreateShuffleVector(a, b, m);
  };
  if (t == 8)
    for (size_t k = 0; k < 4; k++) {
      s[k] = blocks(r[k], r[4 + k], {0, 2});
      s[4 + k] = blocks(r[k], r[4 + k], {1, 3});
    }
  if (t == 16)
    for (size_t k = 0; k < 4; k++) {
      Value* even0 = blocks(r[k], r[4 + k], {0, 2, 4, 6});
      Value* odd0 = blocks(r[k], r[4 + k], {1, 3, 5, 7});
      Value* even1 = blocks(r[8 + k], r[12 + k], {0, 2, 4, 6});
      Value* odd1 = blocks(r[8 + k], r[12 + k], {1, 3, 5, 7});
      s[k] = blocks(even0, even1, {0, 2, 4, 6});
      s[4 + k] = blocks(odd0, odd1, {0, 2, 4, 6});
      s[8 + k] = blocks(even0, even1, {1, 3, 5, 7});
      s[12 + k] = blocks(odd0, odd1, {1, 3, 5, 7});
    }
  return t == 4 ? r : s;
}

class Transpose final : public CpuTactic {
 public:
  std::string_view name() const override { return "transpose"; }
  ProblemKind kind() const override { return ProblemKind::kLoop; }
  std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const override {
    if (auto r = pwRefuses(p, m)) return r;
    if (!axesOf(p)) return "no 32-bit input runs across the output";
    return {};
  }
  Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const override {
    Config c;
    c.tactic = name();
    configureCodegen(c, m, k);
    auto [u, v] = *axesOf(p);
    int64_t lanes = c.get("vector") / 4, tile = lanes;
    if (auto wish = k.get(knob::pointwise_tile)) {
      if (*wish > lanes)
        k.refuse(knob::pointwise_tile, fmt::format("vectors hold {} elements", lanes));
      else
        tile = *wish;
    }
    int64_t bytes = k.getOr(knob::pointwise_task_bytes, 32768);
    auto whole = [&](int64_t n) { return (std::max<int64_t>(n, 1) + tile - 1) / tile * tile; };
    int64_t bu = std::min<int64_t>(whole(p.optOf(p.space[size_t(u)])), 64);
    int64_t bv = std::clamp<int64_t>(whole(bytes / 8 / bu), tile, whole(p.optOf(p.space[size_t(v)])));
    c.set("tile", tile);
    c.set("block_u", bu);
    c.set("block_v", bv);
    return c;
  }
  double cost(const Problem& p, const Config& c, const MachineProfile& m) const override {
    auto [u, v] = *axesOf(p);
    return estimate(m, tileCost(p, u, v, double(c.get("tile"))), p.bytes());
  }
  codegen::Lowering lower(const Problem& p, const Config& c) const override {
    auto [u, v] = *axesOf(p);
    ir::Dim n =
        ceilDiv(p.space[size_t(u)].dim(), c.get("block_u")) * ceilDiv(p.space[size_t(v)].dim(), c.get("block_v"));
    for (int a = 0; a < int(p.space.size()); a++)
      if (a != u && a != v) n = n * p.space[size_t(a)].dim();
    return oneLaunch(p, n);
  }
  void emit(const Problem& p, const Config& c, const MachineProfile&, Emitter& e) const override {
    auto [u, v] = *axesOf(p);
    int t = int(c.get("tile"));
    int64_t bu = c.get("block_u"), bv = c.get("block_v");
    e.beginKernel();
    Value *nu = e.dim(p.space[size_t(u)]), *nv = e.dim(p.space[size_t(v)]);
    std::vector<int> outer;
    Values extents;
    for (int a = 0; a < int(p.space.size()); a++)
      if (a != u && a != v) {
        outer.push_back(a);
        extents.push_back(e.dim(p.space[size_t(a)]));
      }
    auto count = [&](Value* n, int64_t block) { return e.udiv(e.add(n, e.i64(block - 1)), e.i64(block)); };
    extents.push_back(count(nu, bu));
    extents.push_back(count(nv, bv));
    e.loop(e.begin(), e.end(), 1, [&, u = u, v = v](Value* task) {
      Values at = decode(e, task, extents), coord(p.space.size(), e.i64(0));
      for (size_t i = 0; i < outer.size(); i++) coord[size_t(outer[i])] = at[i];
      Value *u0 = e.mul(at[outer.size()], e.i64(bu)), *v0 = e.mul(at[outer.size() + 1], e.i64(bv));
      Value *u1 = e.min(e.add(u0, e.i64(bu)), nu), *v1 = e.min(e.add(v0, e.i64(bv)), nv);
      e.loop(u0, u1, t, [&](Value* x) {
        e.loop(v0, v1, t, [&](Value* y) {
          Value* full =
              e.b.CreateAnd(e.b.CreateICmpSLE(e.add(x, e.i64(t)), u1), e.b.CreateICmpSLE(e.add(y, e.i64(t)), v1));
          e.branch(
              full,
              [&] {
                tile(e, p, u, v, t, coord, x, y, nullptr, nullptr);
                return Values{};
              },
              [&] {
                tile(e, p, u, v, t, coord, x, y, u1, v1);
                return Values{};
              });
        });
      });
    });
    e.endKernel();
  }

 private:
  // u1, v1: ends of a tile that is cut; null: it is whole.
  static void tile(Emitter& e, const Problem& p, int u, int v, int t, Values coord, Value* x, Value* y, Value* u1,
                   Value* v1) {
    Value* columns = u1 ? tailMask(e, e.min(e.sub(u1, x), e.i64(t)), t) : nullptr;
    Value* rows = v1 ? tailMask(e, e.min(e.sub(v1, y), e.i64(t)), t) : nullptr;
    std::map<int, Values> blocks;
    for (const PwInstr& i : p.epilogue.code) {
      if (i.op != PwOp::kLoad || blocks.count(i.args[0])) continue;
      const Operand& o = p.operands[size_t(i.args[0])];
      if (!crosses(o, u, v)) continue;
      Value* base = x;
      for (int a = 0; a < int(p.space.size()); a++)
        if (a != u && a != v) base = e.add(base, e.mul(coord[size_t(a)], o.strides[size_t(a)]));
      Values r;
      for (int j = 0; j < t; j++) {
        // Rows beyond the end read the last one again.
        Value* row = e.add(y, e.i64(j));
        if (v1) row = e.min(row, e.sub(v1, e.i64(1)));
        Value* from = e.at(e.operand(i.args[0]), e.add(base, e.mul(row, o.strides[size_t(v)])), 4);
        r.push_back(loadVector(e, memoryType(e, o.dtype), from, t, columns));
      }
      blocks[i.args[0]] = transposed(e, r);
    }
    int first = p.firstOutput();
    for (int i = 0; i < t; i++) {
      Value* at = e.add(x, e.i64(i));
      Value* mask = rows;
      if (u1) {
        mask = e.b.CreateAnd(rows, splat(e, e.lt(at, u1), t));
        at = e.min(at, e.sub(u1, e.i64(1)));
      }
      coord[size_t(u)] = at;
      Points points(e, p, coord, v);
      PwEnv env = points.env(y, t, mask);
      auto plain = env.load;
      env.load = [&, i](int k) {
        auto it = blocks.find(k);
        return it == blocks.end() ? plain(k) : fromMemory(e, p.operands[size_t(k)].dtype, it->second[size_t(i)]);
      };
      Values out = emitPw(e, p, p.epilogue, env);
      for (size_t o = 0; o < out.size(); o++) points.store(first + int(o), y, t, out[o], mask);
    }
  }
};
}  // namespace

const CpuTactic& transposeTactic() {
  static const Transpose t;
  return t;
}

}  // namespace rutter::cpu
