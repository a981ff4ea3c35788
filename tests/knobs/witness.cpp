#include "knobs/witness.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <set>

#include "base/cpu.h"
#include "compiler/assemble.h"
#include "knobs/registry.h"
#include "runtime/context.h"

namespace rutter::test {
namespace fb = runtime::fb;

namespace {
bool typeHolds(const std::string& type, const std::string& op) {
  return ("+" + type + "+").find("+" + op + "+") != std::string::npos;
}
/// Code and constants of a shared object, and where each kernel begins: no names.
void describeCode(const std::string& so, const std::vector<std::string>& kernels, std::string& out) {
  if (so.empty()) return;
  auto* h = reinterpret_cast<const Elf64_Ehdr*>(so.data());
  auto* sections = reinterpret_cast<const Elf64_Shdr*>(so.data() + h->e_shoff);
  auto name = [&](const Elf64_Shdr& s) { return so.data() + sections[h->e_shstrndx].sh_offset + s.sh_name; };
  uint64_t text = 0;
  for (int i = 0; i < h->e_shnum; i++) {
    const Elf64_Shdr& s = sections[i];
    std::string n = name(s);
    if (n.rfind(".text", 0) != 0 && n.rfind(".rodata", 0) != 0) continue;
    if (n.rfind(".text", 0) == 0) text = s.sh_addr;
    out += fmt::format("section {} align {} bytes {}:", n, s.sh_addralign, s.sh_size);
    out.append(so.data() + s.sh_offset, s.sh_size);
  }
  for (int i = 0; i < h->e_shnum; i++) {
    const Elf64_Shdr& s = sections[i];
    if (s.sh_type != SHT_DYNSYM) continue;
    auto* syms = reinterpret_cast<const Elf64_Sym*>(so.data() + s.sh_offset);
    const char* strings = so.data() + sections[s.sh_link].sh_offset;
    std::map<std::string, uint64_t> at;
    for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Sym); k++) at[strings + syms[k].st_name] = syms[k].st_value;
    for (const std::string& k : kernels) out += fmt::format("kernel +{}\n", int64_t(at.at(k) - text));
  }
}
std::string exprText(const fb::PlanT& p, int i) {
  if (i < 0) return "0";
  const fb::DimExpr& e = p.exprs.at(size_t(i));
  if (e.op() == fb::DimOp::Constant) return std::to_string(e.value());
  if (e.op() == fb::DimOp::InputDim) return fmt::format("in{}[{}]", e.a(), e.b());
  return fmt::format("({} {} {})", int(e.op()), exprText(p, e.a()), exprText(p, e.b()));
}
}  // namespace

const codegen::Layer& Built::layer(const std::string& op) const {
  for (const auto& l : decided.decision.layers)
    if (typeHolds(l.group.type, op)) return l;
  throw InternalError("no layer holds " + op);
}
std::vector<const fb::LaunchT*> Built::launches(const std::string& op) const {
  std::vector<const fb::LaunchT*> out;
  for (const auto& ins : plan().regions.at(0)->code)
    if (typeHolds(plan().layers.at(size_t(ins->layer))->type, op))
      if (auto* l = ins->action.AsLaunch()) out.push_back(l);
  return out;
}

Built build(const ir::Graph& g, const std::string& route, const std::string& isa, compiler::KernelCache& cache,
            int threads) {
  frontend::Model m;
  m.graph = g.clone();
  compiler::BuildOptions o;
  o.route = knobs::Route::parse(route);
  o.profiles = {{}};
  o.isa = isa;
  o.threads = threads;
  Built b;
  // Once to look at, once to build from: decisions are not copied.
  b.decided = compiler::decideModel(m, o);
  b.result = compiler::buildEngine(m, o, cache);
  b.engine = runtime::Engine::load(runtime::Blob::copy(runtime::writeEngine(b.result.parts)));
  return b;
}

std::vector<ir::Tensor> runBuilt(const Built& b, const std::vector<ir::Tensor>& inputs) {
  static auto pool = std::make_shared<runtime::Pool>(runtime::PoolOptions{.threads = 2, .pin = false});
  runtime::Context ctx(b.engine, pool);
  std::vector<ir::Tensor> in = inputs, out;
  for (int i = 0; i < b.engine->ioCount(); i++) {
    if (i < b.engine->inputs()) {
      ctx.setInputShape(i, in.at(size_t(i)).shape());
      ctx.setAddress(i, in.at(size_t(i)).mutableData());
    } else {
      out.emplace_back(ir::DType(b.engine->io(i).dtype()), ctx.shape(i));
      std::memset(out.back().mutableData(), 0xa5, size_t(out.back().bytes()));
    }
  }
  for (size_t k = 0; k < out.size(); k++) ctx.setAddress(b.engine->inputs() + int(k), out[k].mutableData());
  ctx.run();
  return out;
}

std::string executedContent(const Built& b) {
  const fb::PlanT& p = b.plan();
  std::string s;
  describeCode(b.result.parts.code, p.kernels, s);
  s += fmt::format("arena {} spin {} wait {}\n", p.arena_bytes, p.spin_us, p.wait_us);
  auto ref = [&](const fb::Ref& r) {
    const fb::BufferT& u = *p.buffers.at(size_t(r.buffer()));
    return fmt::format("[{} {} {} {} {} +{}]", int(u.place), u.io, u.offset, exprText(p, u.size), u.bytes,
                       exprText(p, r.offset()));
  };
  for (const auto& t : p.io) {
    s += fmt::format("io {} {}", t->is_input, t->dtype);
    for (int d : t->dims) s += " " + exprText(p, d);
    for (int o : t->order) s += fmt::format(",{}", o);
    s += "\n";
  }
  for (const auto& ins : p.regions.at(0)->code) {
    if (auto* l = ins->action.AsLaunch()) {
      s += fmt::format("launch {} tasks {} scratch {} threads {} schedule {} grain {}:", l->kernel,
                       exprText(p, l->tasks), l->scratch, l->max_threads, l->schedule, l->grain);
      for (int d : l->dims) s += " " + exprText(p, d);
      for (const auto& r : l->refs) s += ref(r);
    } else if (auto* r = ins->action.AsReference()) {
      s += "reference " + r->op + std::string(r->attrs.begin(), r->attrs.end());
      for (const auto* list : {&r->inputs, &r->outputs})
        for (const auto& o : *list) s += o->present ? ref(*o->ref) : "-";
    } else {
      throw InternalError("an instruction that witnesses do not know");
    }
    s += "\n";
  }
  for (const auto& w : b.result.parts.weights)
    s += fmt::format("weights {} {}:", w.offset, w.data.size()).append(w.data);
  return s;
}

double relativeError(const std::vector<ir::Tensor>& x, const std::vector<ir::Tensor>& want) {
  const double inf = std::numeric_limits<double>::infinity();
  if (x.size() != want.size()) return inf;
  double worst = 0;
  for (size_t k = 0; k < x.size(); k++) {
    if (x[k].shape() != want[k].shape() || x[k].dtype() != want[k].dtype()) return inf;
    double diff = 0, norm = 0;
    for (int64_t i = 0; i < x[k].size(); i++) {
      double a = x[k].getDouble(i), b = want[k].getDouble(i);
      if (std::isnan(a) && std::isnan(b)) continue;
      if (a == b) continue;
      if (!std::isfinite(a) || !std::isfinite(b)) return inf;
      diff += (a - b) * (a - b);
    }
    for (int64_t i = 0; i < want[k].size(); i++)
      if (std::isfinite(want[k].getDouble(i))) norm += want[k].getDouble(i) * want[k].getDouble(i);
    worst = std::max(worst, diff == 0 ? 0 : std::sqrt(diff / std::max(norm, 1e-30)));
  }
  return worst;
}

void PrintTo(const Witness& w, std::ostream* os) {
  *os << w.knob;
}

std::vector<Witness> allWitnesses() {
  std::vector<Witness> w;
  for (auto part : {fuseWitnesses(), codegenWitnesses(), tileWitnesses()}) w.insert(w.end(), part.begin(), part.end());
  for (const GraphWitness& g : graphWitnesses())
    w.push_back({g.knob, g.value, g.other, g.build, nullptr, "", "", g.base});
  return w;
}

namespace {
bool sameBits(const std::vector<ir::Tensor>& a, const std::vector<ir::Tensor>& b) {
  bool same = a.size() == b.size();
  for (size_t k = 0; same && k < a.size(); k++)
    same = a[k].shape() == b[k].shape() && std::memcmp(a[k].data(), b[k].data(), size_t(a[k].bytes())) == 0;
  return same;
}
class KnobWitness : public testing::TestWithParam<Witness> {};
}  // namespace

TEST_P(KnobWitness, IsLive) {
  const Witness& w = GetParam();
  const knobs::KnobInfo* info = knobs::Registry::builtin().find(w.knob);
  ASSERT_TRUE(info) << w.knob << " is no knob";
  if (!cpuInfo().features.covers(featuresOf(parseIsa(w.isa)))) GTEST_SKIP() << "no " << w.isa;
  Net n;
  w.model(n);
  compiler::KernelCache cache;
  auto route = [&](const std::string& v) { return w.base + (w.base.empty() ? "" : " ") + w.knob + "=" + v; };
  Built a = build(*n.graph, route(w.value), w.isa, cache), b = build(*n.graph, route(w.other), w.isa, cache);
  for (const Built* x : {&a, &b})
    for (const std::string& s : x->result.warnings)
      if (s.find(w.knob) != std::string::npos) ADD_FAILURE() << "warning: " << s;
  EXPECT_FALSE(executedContent(a) == executedContent(b)) << "the same is executed under both values";
  EXPECT_NE(a.result.decisionHash, b.result.decisionHash) << "unequal engines with equal decision hashes";
  // A layer says that it reads the knob; decisions of graph passes may belong to nodes that are gone.
  bool read = a.decided.reads.count(info->id) && !w.effect;
  for (const auto& l : a.decided.decision.layers)
    for (const std::string& k : l.knobsRead) read |= k == w.knob;
  for (knobs::KnobId k : compiler::modelWideKnobs()) read |= k == info->id;
  EXPECT_TRUE(read) << "no layer says that it reads the knob";
  if (w.effect) {
    EXPECT_EQ(w.effect(a), w.expected) << "under " << w.value;
    EXPECT_EQ(w.effect(b), w.expectedOther) << "under " << w.other;
  }
  bool exact =
      info->numericsOf(w.value) == knobs::Numerics::kExact && info->numericsOf(w.other) == knobs::Numerics::kExact;
  for (unsigned seed = 1; seed <= 20; seed++) {
    auto in = randomInputs(*n.graph, seed);
    auto want = ops::evalGraph(*n.graph, in);
    auto x = runBuilt(a, in), y = runBuilt(b, in);
    EXPECT_LE(relativeError(x, want), 1e-5) << w.value;
    EXPECT_LE(relativeError(y, want), 1e-5) << w.other;
    EXPECT_TRUE(!exact || sameBits(x, y)) << "declared exact";
  }
}
INSTANTIATE_TEST_SUITE_P(All, KnobWitness, testing::ValuesIn(allWitnesses()), [](const auto& i) {
  std::string s = i.param.knob.substr(1);
  for (char& c : s)
    if (!isalnum(c)) c = '_';
  return s;
});

TEST(KnobWitnesses, EveryKnobHasOne) {
  std::set<std::string> have;
  for (const Witness& w : allWitnesses()) EXPECT_TRUE(have.insert(w.knob).second) << w.knob << " has two";
  std::string missing;
  for (const knobs::KnobInfo& k : knobs::Registry::builtin().knobs())
    if (k.target != knobs::Target::kCuda && !have.count(k.name)) missing += " " + k.name;
  EXPECT_EQ(missing, "") << "knobs without a witness";
}

}  // namespace rutter::test
