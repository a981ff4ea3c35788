#include <elf.h>
#include <link.h>
#include <llvm/Config/llvm-config.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "cpu/emitter.h"
#include "cpu/tactic.h"
#include "knobs/list_hash.h"

namespace rutter::cpu {

#define TACTIC(name) const CpuTactic& name();
#include "cpu/tactics.def"
#undef TACTIC

std::span<const CpuTactic* const> cpuTactics() {
  static const std::vector<const CpuTactic*> all = {
#define TACTIC(name) &name(),
#include "cpu/tactics.def"
#undef TACTIC
  };
  return all;
}
const CpuTactic& findTactic(const codegen::Problem& p, const codegen::Config& c) {
  for (const CpuTactic* t : cpuTactics())
    if (t->name() == c.tactic && t->kind() == p.kind) return *t;
  throw InternalError(fmt::format("no CPU tactic '{}' for {} problems", c.tactic, codegen::kindName(p.kind)));
}

namespace {
// The linker's build id of this very library: it changes whenever any emitter changes, with nobody having to remember.
std::string ownBuildId() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        auto self = reinterpret_cast<ElfW(Addr)>(&ownBuildId);
        bool mine = false;
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto& h = info->dlpi_phdr[i];
          mine |= h.p_type == PT_LOAD && self >= info->dlpi_addr + h.p_vaddr &&
                  self < info->dlpi_addr + h.p_vaddr + h.p_memsz;
        }
        if (!mine) return 0;
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto& h = info->dlpi_phdr[i];
          if (h.p_type != PT_NOTE) continue;
          const char* at = reinterpret_cast<const char*>(info->dlpi_addr + h.p_vaddr);
          const char* end = at + h.p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            auto* n = reinterpret_cast<const ElfW(Nhdr)*>(at);
            const char* desc = at + sizeof *n + ((n->n_namesz + 3) & ~3u);
            if (n->n_type == NT_GNU_BUILD_ID) static_cast<std::string*>(out)->assign(desc, n->n_descsz);
            at = desc + ((n->n_descsz + 3) & ~3u);
          }
        }
        return 1;
      },
      &id);
  RUTTER_CHECK(!id.empty(), "librutter_cpu.so was linked without a build id");
  return id;
}

class CpuTarget final : public codegen::Target {
 public:
  std::string_view name() const override { return "cpu"; }
  codegen::MachineProfile profile(const std::string& isa, int threads) const override {
    const CpuInfo& cpu = cpuInfo();
    Isa level = isa.empty() ? bestIsa(cpu.features) : parseIsa(isa);
    codegen::MachineProfile m;
    m.isa = isaName(level);
    m.features = featuresOf(level).bits();
    m.vectorBytes = level == Isa::kAvx512 ? 64 : level == Isa::kAvx2 ? 32 : 16;
    m.registers = level == Isa::kAvx512 ? 32 : 16;
    m.l1 = cpu.l1d;
    m.l2 = cpu.l2;
    m.l3 = cpu.l3;
    m.cores = usableThreads(threads);
    return m;
  }
  std::span<const codegen::Tactic* const> tactics() const override {
    static const std::vector<const codegen::Tactic*> all(cpuTactics().begin(), cpuTactics().end());
    return all;
  }
  std::string emitterId() const override {
    static const std::string id = hashBytes(ownBuildId() + LLVM_VERSION_STRING).hex();
    return id;
  }
  codegen::KernelObject emit(const codegen::Problem& p, const codegen::Config& c, const codegen::MachineProfile& m,
                             const std::string& prefix) const override {
    Emitter e(m, c, prefix);
    findTactic(p, c).emit(p, c, m, e);
    codegen::KernelObject k = e.finish();
    RUTTER_CHECK(k.symbols.size() == findTactic(p, c).lower(p, c).launches.size(), "{} emitted {} functions", c.tactic,
                 k.symbols.size());
    return k;
  }
  std::string link(const std::vector<std::string_view>& objects) const override { return linkObjects(objects); }
  std::string disassemble(const codegen::KernelObject& k) const override { return disassembleObject(k.object); }
};
}  // namespace

// Compared by the library that opens this one, before anything here runs.
extern "C" const uint64_t rutterCpuKnobList;
const uint64_t rutterCpuKnobList = knobs::kListHash;

extern "C" void rutterCpuStart() {
  static const CpuTarget target;
  codegen::rutterRegisterTarget(&target);
}

}  // namespace rutter::cpu
