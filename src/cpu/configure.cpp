// The choices that all kernels share, resolved from codegen:* knobs.
#include <algorithm>

#include "base/error.h"
#include "cpu/emitter.h"
#include "cpu/tactic.h"

namespace rutter::cpu {

void configureCodegen(codegen::Config& c, const codegen::MachineProfile& m, knobs::LayerKnobs& k) {
  int64_t vector = m.vectorBytes;
  if (auto wish = k.get(knob::codegen_vector)) {
    if (*wish / 8 > m.vectorBytes)
      k.refuse(knob::codegen_vector, fmt::format("{} has vectors of at most {} bits", m.isa, 8 * m.vectorBytes));
    else
      vector = *wish / 8;
  }
  c.set("vector", vector);
  c.set("contract", k.getOr(knob::codegen_contract, true));
  c.set("align_loops", k.getOr(knob::codegen_align_loops, 64));
  c.set("align_function", k.getOr(knob::codegen_align_function, 64));
  c.set("passes", k.getOr(knob::codegen_passes, true));
  c.set("opt", k.getOr(knob::codegen_opt, 2));
  c.set("hoist", k.getOr(knob::codegen_hoist, true));
  const auto names = tuningNames();
  const auto tune = std::find(names.begin(), names.end(), k.get(knob::codegen_tune));
  RUTTER_CHECK(tune != names.end(), "no processor of this name to schedule for");
  c.set("tune", tune - names.begin());
}

}  // namespace rutter::cpu
