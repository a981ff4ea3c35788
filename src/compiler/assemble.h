#pragma once
// The last step of a build: weights, arena, and the plan's instructions.
#include <map>
#include <memory>
#include <vector>

#include "compiler/compile.h"

namespace rutter::compiler {

/// Knobs read once for the whole engine (memory plan, pool), not by a layer.
std::vector<knobs::KnobId> modelWideKnobs();

/// Fills result.parts (plan, weights, versions) and result.owners from a decision and its emitted kernels; index:
/// kernel key -> position in objects.
void assemble(const frontend::Model& model, const BuildOptions& o, const Decided& d,
              const std::vector<std::shared_ptr<const codegen::KernelObject>>& objects,
              const std::map<Hash128, int>& index, KernelCache& cache, BuildResult& result);

}  // namespace rutter::compiler
