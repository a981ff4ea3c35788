#include <dlfcn.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/error.h"
#include "codegen/tactic.h"
#include "knobs/list_hash.h"

namespace rutter::codegen {
namespace {
std::mutex g_mutex;
std::map<std::string, const Target*, std::less<>>& targets() {
  static std::map<std::string, const Target*, std::less<>> t;
  return t;
}
// Beside this library first, so that a build tree and an installed tree both work without a search path.
std::string libraryPath(const std::string& file) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&libraryPath), &info) && info.dli_fname) {
    std::string here = info.dli_fname;
    return here.substr(0, here.rfind('/') + 1) + file;
  }
  return file;
}
}  // namespace

extern "C" void rutterRegisterTarget(const Target* t) {
  targets()[std::string(t->name())] = t;
}

const Target& findTarget(const std::string& name) {
  std::lock_guard lock(g_mutex);
  if (auto it = targets().find(name); it != targets().end()) return *it->second;
  if (name == "cuda") throw UserError("target 'cuda' does not exist in this version; use --target=cpu");
  if (name != "cpu") throw UserError("unknown target '{}'; this version has 'cpu'", name);
  const std::string path = libraryPath("librutter_cpu.so");
  startTargetLibrary(path);
  auto it = targets().find(name);
  RUTTER_CHECK(it != targets().end(), "{} registered no target", path);
  return *it->second;
}

void startTargetLibrary(const std::string& path) {
  // Never closed: kernels of the target and LLVM's statics live as long as the process.
  void* h = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!h) {
    const std::string why = dlerror();
    // Of a file that is there the loader says "failed to map segment", or that a library which it needs is missing.
    if (access(path.c_str(), F_OK) == 0 && why.find("cannot open shared object file") == why.npos)
      throw UserError(
          "the CPU compiler {} cannot be opened although it is there: {}; is there too little memory for it (see "
          "ulimit -v, or the limit of the container)?",
          path, why);
    throw UserError(
        "the CPU compiler cannot be opened: {}; build with -DRUTTER_CPU=ON and install LLVM 19 (./quickstart does)",
        why);
  }
  // Before any of its code sees a knob.
  auto knobs = static_cast<const uint64_t*>(dlsym(h, "rutterCpuKnobList"));
  if (!knobs || *knobs != knobs::kListHash)
    throw DeviceError("{} was built from another list of knobs than librutter.so ({}): install both from one build",
                      path, libraryPath("librutter.so"));
  auto start = reinterpret_cast<void (*)()>(dlsym(h, "rutterCpuStart"));
  RUTTER_CHECK(start, "{} has no rutterCpuStart", path);
  start();
}

}  // namespace rutter::codegen
