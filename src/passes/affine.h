#pragma once
#include "passes/pass.h"

namespace rutter::passes {

/// Constants folded into weights: BatchNormalization after Conv and ConvTranspose (fuse:conv_bn), multiplications and
/// additions per channel after them (fuse:conv_scale, fuse:conv_shift) and before them where padding allows
/// (fuse:scale_conv), multiplications after MatMul (fuse:gemm_scale). A BatchNormalization that follows no convolution
/// becomes Mul and Add first, so that it can fold forwards.
struct FoldAffine {
  std::string name() const { return "fold_affine"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

/// Every Gemm becomes MatMul, Mul and Add, constant operands transposed.
struct DecomposeGemm {
  std::string name() const { return "decompose_gemm"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

/// Every BatchNormalization that FoldAffine left becomes Mul and Add.
struct DecomposeBatchNorm {
  std::string name() const { return "decompose_batch_norm"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

/// MatMul nodes of one input with constant matrices of the same depth become one MatMul and a Split, their bias
/// additions included (fuse:qkv); 1x1 convolutions of one input likewise (fuse:conv_siblings). Knobs are read at the
/// first of them.
struct MergeSiblings {
  std::string name() const { return "merge_siblings"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

}  // namespace rutter::passes
