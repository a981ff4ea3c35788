#pragma once
#include "passes/pass.h"

namespace rutter::passes {

/// Activations written in primitive operators become one: Gelu (fuse:gelu; erf and tanh forms), rutter.Silu
/// (fuse:silu), HardSigmoid and HardSwish (fuse:hard_swish). Knobs are read at the producer of the activation's input.
struct MatchActivations {
  std::string name() const { return "activations"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

/// LayerNormalization and RMSNormalization (fuse:layer_norm) and Softmax (fuse:softmax) written in primitive operators
/// become one. Knobs are read at the producer of the normalised value.
struct MatchNormalisations {
  std::string name() const { return "normalisations"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

}  // namespace rutter::passes
