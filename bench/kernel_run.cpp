#include "kernel_run.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace rutter::bench {
using codegen::Problem;

Buffer::Buffer(int64_t bytes) : data(std::aligned_alloc(64, size_t(bytes + 127) / 64 * 64)) {
  std::memset(data, 0, size_t(bytes));
}
Buffer::~Buffer() {
  std::free(data);
}

KernelRun::KernelRun(const Problem& p, const codegen::MachineProfile& m, const std::string& route,
                     const std::string& tactic)
    : p_(p) {
  const codegen::Target& target = codegen::findTarget("cpu");
  knobs::Route r = knobs::Route::parse(route);
  const codegen::Tactic* best = nullptr;
  double cost = 0;
  std::string why = "no tactic of that name";
  for (const codegen::Tactic* t : target.tactics()) {
    if (t->kind() != p.kind || (!tactic.empty() && t->name() != tactic)) continue;
    if (auto no = t->refuses(p, m)) {
      why = *no;
      continue;
    }
    knobs::LayerKnobs k(r, {"layer"});
    codegen::Config c = t->configure(p, m, k);
    double x = t->cost(p, c, m);
    if (best && x >= cost) continue;
    best = t;
    cost = x;
    config_ = c;
    refusals_.clear();
    for (const auto& f : k.refusals())
      refusals_.push_back(knobs::Registry::builtin()[f.knob].name + "=" + f.value + ": " + f.reason);
  }
  if (!best) throw UserError("refused: {}", why);
  lowering_ = best->lower(p, config_);
  object_ = target.emit(p, config_, m, "k");
  std::string so = target.link({object_.object});
  int fd = memfd_create("kernel", 0);
  RUTTER_CHECK(fd >= 0 && write(fd, so.data(), so.size()) == ssize_t(so.size()), "memfd");
  library_ = dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  RUTTER_CHECK(library_, "{}", dlerror());
  close(fd);
}
KernelRun::~KernelRun() {
  if (library_) dlclose(library_);
}
std::string KernelRun::disassembly() const {
  return codegen::findTarget("cpu").disassemble(object_);
}

void KernelRun::prepare(const std::vector<void*>& operands, const std::vector<int64_t>& params) {
  params_ = params;
  std::map<std::string, int64_t> symbols;
  for (size_t i = 0; i < params.size(); i++) symbols["$" + std::to_string(i)] = params[i];
  if (packs_.empty())
    for (const auto& s : lowering_.packs) {
      const codegen::Operand& o = p_.operands[size_t(s.operand)];
      int64_t last = 0;
      for (size_t a = 0; a < o.dims.size(); a++) last += (o.dims[a].value - 1) * o.strides[a].value;
      ir::Tensor in(o.dtype, {last + 1}, operands[size_t(s.operand)], nullptr);
      packs_.push_back(std::make_unique<Buffer>(s.bytes));
      s.pack(in, packs_.back()->data);
    }
  workspaces_.clear();
  for (const auto& d : lowering_.workspaces) workspaces_.push_back(std::make_unique<Buffer>(d.evaluate(symbols)));
  launches_.clear();
  scratch_.clear();
  for (size_t i = 0; i < lowering_.launches.size(); i++) {
    const auto& s = lowering_.launches[i];
    Launch l;
    l.code = reinterpret_cast<decltype(l.code)>(dlsym(library_, object_.symbols[i].c_str()));
    RUTTER_CHECK(l.code, "{} is missing", object_.symbols[i]);
    for (int ref : s.refs)
      l.ptr.push_back(ref >= 1000 ? packs_.at(size_t(ref - 1000))->data
                      : ref < 0   ? workspaces_.at(size_t(-1 - ref))->data
                                  : operands.at(size_t(ref)));
    l.tasks = s.tasks.evaluate(symbols);
    launches_.push_back(l);
    scratch_.push_back(std::make_unique<Buffer>(s.scratch));
  }
}
int KernelRun::run(int64_t chunk) {
  struct {
    void* const* ptr;
    const int64_t* dim;
  } args{nullptr, params_.data()};
  for (size_t i = 0; i < launches_.size(); i++) {
    Launch& l = launches_[i];
    args.ptr = l.ptr.data();
    for (int64_t t = 0; t < l.tasks; t += chunk ? chunk : l.tasks)
      if (int rc = l.code(&args, t, chunk ? std::min(t + chunk, l.tasks) : l.tasks, scratch_[i]->data)) return rc;
  }
  return 0;
}

}  // namespace rutter::bench
