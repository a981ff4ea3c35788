#include "ops/cpu_harness.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "base/cpu.h"
#include "runtime/kernel_abi.h"

namespace rutter::cputest {

Guarded::Guarded(size_t bytes, size_t align) : size_(bytes) {
  size_t page = 4096, body = (bytes + align + page - 1) / page * page;
  mapped_ = body + 2 * page;
  map_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* start = static_cast<uint8_t*>(map_) + page;
  mprotect(start, body, PROT_READ | PROT_WRITE);
  data_ = start + (body - bytes) / align * align;
}
Guarded::~Guarded() {
  if (map_) munmap(map_, mapped_);
}
void Guarded::swap(Guarded& o) {
  std::swap(map_, o.map_);
  std::swap(mapped_, o.mapped_);
  std::swap(size_, o.size_);
  std::swap(data_, o.data_);
}

Number readNumber(DType t, const void* at) {
  auto get = [&](auto v) {
    std::memcpy(&v, at, sizeof v);
    return v;
  };
  switch (t) {
    case DType::kF32:
      return {get(float{}), 0};
    case DType::kF64:
      return {get(double{}), 0};
    case DType::kF16:
      return {ir::halfToFloat(get(uint16_t{})), 0};
    case DType::kBF16:
      return {ir::bf16ToFloat(get(uint16_t{})), 0};
    case DType::kI64:
    case DType::kU64:
      return {0, get(int64_t{})};
    case DType::kI32:
      return {0, get(int32_t{})};
    case DType::kU32:
      return {0, get(uint32_t{})};
    case DType::kI16:
      return {0, get(int16_t{})};
    case DType::kU16:
      return {0, get(uint16_t{})};
    case DType::kI8:
      return {0, get(int8_t{})};
    default:
      return {0, get(uint8_t{})};
  }
}
void writeNumber(DType t, void* at, Number n) {
  auto put = [&](auto v) { std::memcpy(at, &v, sizeof v); };
  switch (t) {
    case DType::kF32:
      put(float(n.d));
      break;
    case DType::kF64:
      put(n.d);
      break;
    case DType::kF16:
      put(ir::floatToHalf(float(n.d)));
      break;
    case DType::kBF16:
      put(ir::floatToBf16(float(n.d)));
      break;
    case DType::kI64:
    case DType::kU64:
      put(n.i);
      break;
    case DType::kI32:
    case DType::kU32:
      put(int32_t(n.i));
      break;
    case DType::kI16:
    case DType::kU16:
      put(int16_t(n.i));
      break;
    case DType::kBool:
      put(uint8_t(n.i != 0));
      break;
    default:
      put(uint8_t(n.i));
  }
}

std::vector<int64_t> Case::values(const std::vector<KDim>& v) const {
  std::vector<int64_t> r;
  for (const KDim& d : v) r.push_back(value(d));
  return r;
}
int64_t Case::elements(size_t k) const {
  const Operand& o = problem.operands.at(k);
  std::vector<int64_t> extents = values(int(k) < problem.anchors ? o.dims : problem.space), strides = values(o.strides);
  int64_t last = 0;
  for (size_t a = 0; a < extents.size(); a++) {
    int64_t n = extents[a];
    if (int(k) >= problem.anchors && strides[a] == 0) continue;  // broadcast, or reduced: one element even of none
    if (!o.lo.empty()) n = value(o.hi[a]) - value(o.lo[a]);
    if (n <= 0) return 0;
    EXPECT_GE(strides[a], 0);
    last += (n - 1) * strides[a];
  }
  return last + 1;
}
void Case::fill(size_t k, std::mt19937& rng, double lo, double hi) {
  data.resize(problem.operands.size());
  DType t = problem.operands[k].dtype;
  int64_t n = elements(k), size = ir::bitsOf(t) / 8;
  data[k].assign(size_t(n * size), 0);
  std::uniform_real_distribution<double> real(lo, hi);
  std::uniform_int_distribution<int64_t> whole(int64_t(std::ceil(lo)), int64_t(hi));
  for (int64_t i = 0; i < n; i++) {
    Number v{real(rng), whole(rng)};
    if (t == DType::kBool) v.i &= 1;
    writeNumber(t, &data[k][size_t(i * size)], v);
  }
}
void Case::fill(std::mt19937& rng, double lo, double hi) {
  for (size_t k = 0; k < problem.operands.size(); k++)
    if (!problem.operands[k].output) fill(k, rng, lo, hi);
}

Case withParams(const Case& c, const std::function<bool(int64_t)>& which) {
  Case r = c;
  std::map<int64_t, int> index;
  for (size_t i = 0; i < r.params.size(); i++) index[r.params[i]] = int(i);
  auto change = [&](KDim& d) {
    if (!d.isConstant() || !which(d.value)) return;
    auto [it, fresh] = index.try_emplace(d.value, int(r.params.size()));
    if (fresh) {
      r.params.push_back(d.value);
      r.problem.params.push_back({1, std::max<int64_t>(4096, d.value), d.value, 1});
    }
    d = KDim::parameter(it->second);
  };
  for (KDim& d : r.problem.space) change(d);
  for (Operand& o : r.problem.operands)
    for (auto* list : {&o.dims, &o.strides, &o.lo, &o.hi})
      for (KDim& d : *list) change(d);
  return r;
}

std::vector<KDim> kdims(const std::vector<int64_t>& v) {
  return {v.begin(), v.end()};
}
std::vector<KDim> dense(const std::vector<int64_t>& extents) {
  return kdims(ir::rowMajorStrides(extents));
}
Operand operand(DType t, std::vector<KDim> strides, bool output) {
  Operand o;
  o.dtype = t;
  o.strides = std::move(strides);
  o.output = output;
  return o;
}
Operand anchor(DType t, const std::vector<int64_t>& dims, std::vector<KDim> strides) {
  Operand o = operand(t, std::move(strides));
  o.dims = kdims(dims);
  return o;
}

namespace {
struct Compiled {
  const codegen::Tactic* tactic = nullptr;
  Result result;
};
Compiled prepare(const Case& c, const Options& o) {
  const codegen::Target& target = codegen::findTarget("cpu");
  codegen::MachineProfile m = target.profile(o.isa, o.threads);
  knobs::Route route = knobs::Route::parse(o.route);
  Compiled best;
  double cost = 0;
  std::string reasons;
  for (const codegen::Tactic* t : target.tactics()) {
    if (t->kind() != c.problem.kind || (!o.tactic.empty() && t->name() != o.tactic)) continue;
    if (auto why = t->refuses(c.problem, m)) {
      reasons += fmt::format("{}: {}; ", t->name(), *why);
      continue;
    }
    knobs::LayerKnobs k(route, {"node"});
    codegen::Config config = t->configure(c.problem, m, k);
    config.tactic = t->name();
    double s = t->cost(c.problem, config, m);
    if (best.tactic && s >= cost) continue;
    cost = s;
    best.tactic = t;
    best.result.config = config;
    best.result.refusals = k.refusals();
  }
  if (!best.tactic) throw std::runtime_error("no tactic takes " + c.problem.print() + ": " + reasons);
  Result& r = best.result;
  r.lowering = best.tactic->lower(c.problem, r.config);
  r.object = target.emit(c.problem, r.config, m, "k");
  return best;
}
std::map<std::string, int64_t> symbols(const Case& c) {
  std::map<std::string, int64_t> s;
  for (size_t i = 0; i < c.params.size(); i++) s["$" + std::to_string(i)] = c.params[i];
  return s;
}
}  // namespace

Result compile(const Case& c, const Options& o) {
  return prepare(c, o).result;
}

Result run(const Case& c, const Options& o) {
  Result r = prepare(c, o).result;
  const codegen::Target& target = codegen::findTarget("cpu");
  std::string so = target.link({r.object.object});
  int fd = memfd_create("kernels", MFD_CLOEXEC);
  if (write(fd, so.data(), so.size()) != ssize_t(so.size())) throw std::runtime_error("memfd");
  void* lib = dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (!lib) throw std::runtime_error(dlerror());

  auto syms = symbols(c);
  std::map<int, Guarded> memory;  // by ref
  for (size_t k = 0; k < c.problem.operands.size(); k++) {
    const Operand& op = c.problem.operands[k];
    size_t size = size_t(c.elements(k) * ir::bitsOf(op.dtype) / 8);
    memory[int(k)] = Guarded(size, size_t(std::max(1, ir::bitsOf(op.dtype) / 8)));
    if (size == 0) continue;
    if (!op.output)
      std::memcpy(memory[int(k)].data(), c.data.at(k).data(), size);
    else
      std::memset(memory[int(k)].data(), 0xa5, size);
  }
  for (size_t w = 0; w < r.lowering.workspaces.size(); w++) {
    size_t size = size_t(r.lowering.workspaces[w].evaluate(syms));
    memory[-1 - int(w)] = Guarded(size, 64);
    std::memset(memory[-1 - int(w)].data(), 0xa5, size);
  }
  for (size_t k = 0; k < r.lowering.packs.size(); k++) {
    const codegen::PackSpec& p = r.lowering.packs[k];
    const Operand& op = c.problem.operands.at(size_t(p.operand));
    // The constant as a tensor of its own shape: dense operands only, which constants are.
    ir::Tensor t(op.dtype, c.values(int(p.operand) < c.problem.anchors ? op.dims : c.problem.space),
                 c.data.at(size_t(p.operand)).data(), nullptr);
    memory[1000 + int(k)] = Guarded(size_t(p.bytes), 64);
    p.pack(t, memory[1000 + int(k)].data());
  }
  for (size_t l = 0; l < r.lowering.launches.size() && r.status == 0; l++) {
    const codegen::LaunchSpec& s = r.lowering.launches[l];
    std::vector<void*> ptrs;
    for (int ref : s.refs) ptrs.push_back(memory.at(ref).data());
    std::vector<int64_t> dims = c.params;
    runtime::Args args{ptrs.data(), dims.data()};
    Guarded scratch(size_t(s.scratch), 64);
    if (s.scratch) std::memset(scratch.data(), 0xa5, size_t(s.scratch));
    auto kernel = reinterpret_cast<runtime::Kernel>(dlsym(lib, r.object.symbols.at(l).c_str()));
    if (!kernel) throw std::runtime_error("no symbol " + r.object.symbols.at(l));
    int64_t tasks = s.tasks.evaluate(syms);
    r.tasks.push_back(tasks);
    std::vector<int64_t> cuts = {0, tasks / 3, tasks / 3, tasks - tasks / 4, tasks};
    for (size_t part : {2, 0, 3, 1}) {
      if (s.maxThreads == 1 && part != 0) continue;
      int64_t from = s.maxThreads == 1 ? 0 : cuts[part], to = s.maxThreads == 1 ? tasks : cuts[part + 1];
      int32_t status = kernel(&args, from, to, s.scratch ? scratch.data() : nullptr);
      if (status && !r.status) r.status = status;
    }
  }
  for (size_t k = 0; k < c.problem.operands.size(); k++)
    if (c.problem.operands[k].output)
      r.outputs.emplace_back(memory[int(k)].data(), memory[int(k)].data() + memory[int(k)].size());
  dlclose(lib);
  return r;
}

void check(const Case& c, const Options& o, double tolerance) {
  SCOPED_TRACE(fmt::format("{} [{}] isa={} route={}", c.problem.print(), fmt::join(c.params, ","), o.isa, o.route));
  Result r;
  try {
    r = run(c, o);
  } catch (const std::exception& e) {
    FAIL() << e.what();
  }
  ASSERT_EQ(r.status, 0) << r.config.print();
  Expected want = evaluate(c);
  size_t first = size_t(c.problem.firstOutput());
  for (size_t k = 0; k < r.outputs.size(); k++) {
    DType t = c.problem.operands[first + k].dtype;
    size_t size = size_t(ir::bitsOf(t) / 8);
    ASSERT_EQ(want[k].size() * size, r.outputs[k].size());
    for (size_t i = 0; i < want[k].size(); i++) {
      const uint8_t* at = &r.outputs[k][i * size];
      if (!want[k][i]) {
        for (size_t b = 0; b < size; b++) ASSERT_EQ(at[b], 0xa5) << "element " << i << " written, " << r.config.print();
        continue;
      }
      Number got = readNumber(t, at), exp = *want[k][i];
      if (!ir::isFloat(t)) {
        ASSERT_EQ(got.i, exp.i) << "element " << i << " of output " << k << ", " << r.config.print();
        continue;
      }
      double tol = std::max(tolerance, t == DType::kF16 ? 1e-3 : t == DType::kBF16 ? 8e-3 : 0);
      if (std::isnan(exp.d) || std::isinf(exp.d)) {
        if (t == DType::kF16 && std::isinf(exp.d)) continue;
        ASSERT_TRUE(std::isnan(exp.d) ? std::isnan(got.d) : got.d == exp.d)
            << "element " << i << ": " << got.d << " for " << exp.d << ", " << r.config.print();
      } else {
        ASSERT_NEAR(got.d, exp.d, tol * std::max(1.0, std::abs(exp.d)))
            << "element " << i << " of output " << k << ", " << r.config.print();
      }
    }
  }
}
std::vector<std::string> isas() {
  std::vector<std::string> r;
  for (Isa i : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512})
    if (cpuInfo().features.covers(featuresOf(i))) r.emplace_back(isaName(i));
  return r;
}
void checkAll(const Case& c, const Options& o, double tolerance) {
  for (const std::string& isa : isas()) {
    Options mine = o;
    mine.isa = isa;
    check(c, mine, tolerance);
    check(withParams(c), mine, tolerance);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace rutter::cputest
