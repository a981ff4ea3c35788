#pragma once
// The seam between the compiler and a target. A tactic is a kernel family: it accepts a problem or refuses with a
// reason, configures it from knobs and heuristics, and says how it lowers to launches. How it emits code is the
// target's own business.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codegen/problem.h"
#include "knobs/resolve.h"

namespace rutter::codegen {

/// What decisions may know of the machine: hashed into journal and engine.
struct MachineProfile {
  std::string isa;                                     ///< generic | avx2 | avx512
  uint64_t features = 0;                               ///< base/cpu.h bits in force
  int vectorBytes = 16;                                ///< preferred vector width: 16, 32, 64
  int registers = 16;                                  ///< vector registers
  int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 32 << 20;  ///< bytes; l1, l2 a core
  int cores = 1;                                       ///< threads that the engine is built for
  std::string serialize() const;
};

/// One kernel launch of a lowered problem. Expressions use the problem's parameters as symbols "$i".
struct LaunchSpec {
  /// Operands of this launch in Args::ptr order: index >= 0 is Problem::operands; -1-i is workspace i; 1000+i packed i.
  std::vector<int> refs;
  ir::Dim tasks = 1;    ///< size of the task range
  int64_t scratch = 0;  ///< bytes a thread, 64-byte aligned
  int maxThreads = 0;   ///< 0: no limit
  int schedule = 0;     ///< 0 static contiguous, 1 static interleaved, 2 dynamic
  int64_t grain = 1;    ///< tasks taken at a time
};
/// Constant contents rearranged at build time, shared between engines by (content, layout).
struct PackSpec {
  int operand;         ///< a constant operand of the problem
  std::string layout;  ///< names the arrangement completely
  int64_t bytes;
  std::function<void(const ir::Tensor& in, void* out)> pack;
};
struct Lowering {
  std::vector<LaunchSpec> launches;
  std::vector<ir::Dim> workspaces;  ///< bytes each, live during the layer
  std::vector<PackSpec> packs;
  std::string serialize() const;  ///< everything but the functions
};

class Tactic {
 public:
  virtual ~Tactic() = default;
  virtual std::string_view name() const = 0;
  virtual ProblemKind kind() const = 0;
  /// Nothing: accepted. Otherwise why not, in words for layer information.
  virtual std::optional<std::string> refuses(const Problem& p, const MachineProfile& m) const = 0;
  /// Resolves every choice. May read knobs, and must refuse() wishes that it cannot take.
  virtual Config configure(const Problem& p, const MachineProfile& m, knobs::LayerKnobs& k) const = 0;
  /// Estimated seconds on one thread at the profile's opt: ranks tactics when no knob names one.
  virtual double cost(const Problem& p, const Config& c, const MachineProfile& m) const = 0;
  /// Loop tactics: may an output share memory with an input that is read at the same points only?
  virtual bool allowsInPlace() const { return false; }
  virtual Lowering lower(const Problem& p, const Config& c) const = 0;
};

/// Emitted machine code of one (problem, configuration): an object file with one function a launch.
struct KernelObject {
  std::string object;                ///< relocatable ELF, no undefined symbols
  std::vector<std::string> symbols;  ///< one a launch
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;  ///< "cpu"
  /// Machine profile for an ISA level ("" = the best that this machine has) and a thread count (0 = all).
  virtual MachineProfile profile(const std::string& isa, int threads) const = 0;
  virtual std::span<const Tactic* const> tactics() const = 0;  ///< in the order of tactics.def
  /// Build identity of emitters and LLVM: part of every kernel's key.
  virtual std::string emitterId() const = 0;
  /// Pure: the same arguments give the same bytes. Symbols start with `prefix`.
  virtual KernelObject emit(const Problem& p, const Config& c, const MachineProfile& m,
                            const std::string& prefix) const = 0;
  /// Links objects into one shared object; undefined symbols are an InternalError.
  virtual std::string link(const std::vector<std::string_view>& objects) const = 0;
  /// Assembly text of an object, for people (`--verbose`, bench).
  virtual std::string disassemble(const KernelObject& k) const = 0;
};

/// The target of a name, loading its library at need ("cpu": librutter_cpu.so beside librutter.so).
/// UserError if it is unknown, not built, or its library cannot be opened.
const Target& findTarget(const std::string& name);
/// Opens a target's library, which registers its target. UserError if it cannot be opened; DeviceError if it was built
/// from another list of knobs than this library.
void startTargetLibrary(const std::string& path);
/// Called by a target's library when it is opened.
extern "C" void rutterRegisterTarget(const Target* t);

}  // namespace rutter::codegen
