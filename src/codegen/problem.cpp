#include "codegen/problem.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/error.h"
#include "codegen/tactic.h"

namespace rutter::codegen {

std::string_view kindName(ProblemKind k) {
  static constexpr std::string_view names[] = {"loop",   "reduce", "row",    "gemm",  "conv",
                                               "deconv", "pool",   "resize", "gather"};
  return names[size_t(k)];
}
const std::vector<KDim>& Problem::getInts(const std::string& k) const {
  auto it = ints.find(k);
  RUTTER_CHECK(it != ints.end(), "{} problem without '{}'", kindName(kind), k);
  return it->second;
}
int64_t Problem::getInt(const std::string& k, size_t i) const {
  const KDim& d = getInts(k).at(i);
  RUTTER_CHECK(d.isConstant(), "'{}' of a {} problem is not constant", k, kindName(kind));
  return d.value;
}
std::string Problem::word(const std::string& k) const {
  auto it = words.find(k);
  return it == words.end() ? "" : it->second;
}
double Problem::real(const std::string& k, double fallback) const {
  auto it = reals.find(k);
  return it == reals.end() ? fallback : it->second;
}
int Problem::outputs() const {
  int n = 0;
  for (const Operand& o : operands) n += o.output;
  return n;
}
int Problem::firstOutput() const {
  return int(operands.size()) - outputs();
}

namespace {
// N counts: double, or an expression. `of` makes an N of an extent.
template <typename N, typename Of>
N points(const std::vector<KDim>& dims, Of of, size_t from = 0) {
  N n(1);
  for (size_t i = from; i < dims.size(); i++) n = n * of(dims[i]);
  return n;
}
template <typename N, typename Of>
N flopsOf(const Problem& p, Of of) {
  auto count = [](size_t n) { return N(int64_t(n)); };
  N n = points<N>(p.space, of), per = count(p.epilogue.code.size());
  switch (p.kind) {
    case ProblemKind::kGemm:
      per = per + N(2) * of(p.operands[0].dims.back());
      break;
    case ProblemKind::kConv:
      per = per + N(2) * points<N>(p.operands[1].dims, of, 1);
      break;
    case ProblemKind::kDeconv:
      return N(2) * points<N>(p.operands[0].dims, of) * points<N>(p.operands[1].dims, of, 1) + n * per;
    case ProblemKind::kPool:
      per = per + points<N>(p.getInts("kernel"), of);
      break;
    case ProblemKind::kReduce:
      per = count(p.prologue.code.size() + 1);
      break;
    case ProblemKind::kRow:
      per = per + count(p.prologue.code.size() + 8);
      break;
    default:
      break;
  }
  return n * per;
}
template <typename N, typename Of>
N bytesOf(const Problem& p, Of of) {
  N total(0);
  for (size_t i = 0; i < p.operands.size(); i++) {
    const Operand& o = p.operands[i];
    N n(1);
    if (int(i) < p.anchors) {
      n = points<N>(o.dims, of);
    } else {
      for (size_t a = 0; a < p.space.size(); a++)
        if (!o.strides[a].is(0)) n = n * of(p.space[a]);
    }
    total = total + n * N(int64_t(ir::bitsOf(o.dtype) / 8));
  }
  return total;
}
constexpr double kMostCounted = double(int64_t(1) << 60);
}  // namespace
double Problem::flops() const {
  return flopsOf<double>(*this, [&](const KDim& d) { return double(optOf(d)); });
}
double Problem::bytes() const {
  return bytesOf<double>(*this, [&](const KDim& d) { return double(optOf(d)); });
}
std::optional<ir::Dim> Problem::flopsDim() const {
  if (flopsOf<double>(*this, [&](const KDim& d) { return double(maxOf(d)); }) > kMostCounted) return std::nullopt;
  return flopsOf<ir::Dim>(*this, [](const KDim& d) { return d.dim(); });
}
std::optional<ir::Dim> Problem::bytesDim() const {
  if (bytesOf<double>(*this, [&](const KDim& d) { return double(maxOf(d)); }) > kMostCounted) return std::nullopt;
  return bytesOf<ir::Dim>(*this, [](const KDim& d) { return d.dim(); });
}

namespace {
void put(ByteWriter& w, const std::vector<KDim>& v) {
  w.put<uint32_t>(uint32_t(v.size()));
  for (const KDim& d : v) {
    w.put(d.param);
    w.put(d.value);
  }
}
void put(ByteWriter& w, const PwProgram& p) {
  w.put<uint32_t>(uint32_t(p.code.size()));
  for (const PwInstr& i : p.code) {
    w.put(i.op);
    w.put(i.type);
    for (int a : i.args) w.put(a);
    w.put(i.imm);
    w.put(i.immInt);
  }
  w.put(p.outputs);
}
}  // namespace
std::string Problem::serialize() const {
  ByteWriter w;
  w.put(kind);
  w.put<uint32_t>(uint32_t(ints.size()));
  for (const auto& [k, v] : ints) {
    w.put(k);
    put(w, v);
  }
  w.put<uint32_t>(uint32_t(words.size()));
  for (const auto& [k, v] : words) {
    w.put(k);
    w.put(v);
  }
  w.put<uint32_t>(uint32_t(reals.size()));
  for (const auto& [k, v] : reals) {
    w.put(k);
    w.put(v);
  }
  put(w, space);
  w.put(anchors);
  w.put<uint32_t>(uint32_t(operands.size()));
  for (const Operand& o : operands) {
    w.put(o.dtype);
    put(w, o.dims);
    put(w, o.strides);
    w.put(o.output);
    w.put(o.constant);
    put(w, o.lo);
    put(w, o.hi);
    w.put(o.fill);
  }
  put(w, prologue);
  put(w, epilogue);
  w.put<uint32_t>(uint32_t(params.size()));
  for (const ParamInfo& i : params) {
    w.put(i.min);
    w.put(i.max);
    w.put(i.opt);
    w.put(i.divisor);
  }
  return w.take();
}
std::string Problem::print() const {
  auto dims = [&](const std::vector<KDim>& v) {
    std::string s;
    for (const KDim& d : v)
      s += (s.empty() ? "" : "x") + (d.isConstant() ? std::to_string(d.value) : fmt::format("${}", d.param));
    return s;
  };
  std::string s = fmt::format("{} {}[{}]", kindName(kind), word("op"), dims(space));
  for (const auto& [k, v] : ints) s += fmt::format(" {}={}", k, dims(v));
  for (size_t i = 0; i < operands.size(); i++) {
    const Operand& o = operands[i];
    s += fmt::format(" {}{}:{}({}|{})",
                     o.output     ? "out"
                     : o.constant ? "const"
                                  : "in",
                     i, ir::dtypeName(o.dtype), dims(o.dims), dims(o.strides));
  }
  return s + fmt::format(" pro={} epi={}", prologue.code.size(), epilogue.code.size());
}

int64_t Config::get(const std::string& k) const {
  auto it = values.find(k);
  RUTTER_CHECK(it != values.end(), "configuration of {} without '{}'", tactic, k);
  return it->second;
}
std::string Config::serialize() const {
  ByteWriter w;
  w.put(tactic);
  w.put<uint32_t>(uint32_t(values.size()));
  for (const auto& [k, v] : values) {
    w.put(k);
    w.put(v);
  }
  return w.take();
}
std::string Config::print() const {
  std::string s = tactic;
  for (const auto& [k, v] : values) s += fmt::format(" {}={}", k, v);
  return s;
}

std::string MachineProfile::serialize() const {
  ByteWriter w;
  w.put(isa);
  w.put(features);
  w.put(vectorBytes);
  w.put(registers);
  w.put(l1);
  w.put(l2);
  w.put(l3);
  w.put(cores);
  return w.take();
}
std::string Lowering::serialize() const {
  ByteWriter w;
  w.put<uint32_t>(uint32_t(launches.size()));
  for (const LaunchSpec& l : launches) {
    w.put(l.refs);
    w.put(l.tasks.text());
    w.put(l.scratch);
    w.put(l.maxThreads);
    w.put(l.schedule);
    w.put(l.grain);
  }
  w.put<uint32_t>(uint32_t(workspaces.size()));
  for (const ir::Dim& d : workspaces) w.put(d.text());
  for (const PackSpec& p : packs) {
    w.put(p.operand);
    w.put(p.layout);
    w.put(p.bytes);
  }
  return w.take();
}

}  // namespace rutter::codegen
