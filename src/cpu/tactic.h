#pragma once
// What a CPU tactic adds to codegen::Tactic: how its code is emitted. Emission is a pure function of problem,
// configuration and machine profile: no knobs, no clock, no globals.
#include <span>

#include "codegen/tactic.h"

namespace rutter::cpu {

class Emitter;

class CpuTactic : public codegen::Tactic {
 public:
  /// Emits one function for each launch of lower(p, c), in order: beginKernel(), code, endKernel().
  virtual void emit(const codegen::Problem& p, const codegen::Config& c, const codegen::MachineProfile& m,
                    Emitter& e) const = 0;
};

/// tactics.def, in order.
std::span<const CpuTactic* const> cpuTactics();
/// The tactic of a configuration; InternalError if there is none of that name and kind.
const CpuTactic& findTactic(const codegen::Problem& p, const codegen::Config& c);

/// Resolves the choices that all kernels share (codegen:* knobs) into `c`; every configure() calls it first.
/// Sets vector (bytes), contract, align_loops, align_function, passes, opt, tail.
void configureCodegen(codegen::Config& c, const codegen::MachineProfile& m, knobs::LayerKnobs& k);

}  // namespace rutter::cpu
