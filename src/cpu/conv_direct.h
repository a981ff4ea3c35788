#pragma once
// Direct convolution as a sum over taps and channels, shared by convolution and transposed convolution: the latter is
// one convolution of stride 1 for each phase of its output.
#include "cpu/conv_view.h"
#include "cpu/tactic.h"
#include "cpu/tile_choice.h"

namespace rutter::cpu {

/// Outputs at points origin + q * step of the output's height and width, q counted from 0, as a convolution of X. Tap
/// (a, b) reads X at q * stride + tap * dilation - pad and uses the weight at first + tap * advance.
struct ConvPhase {
  struct Axis {
    int64_t taps = 1, stride = 1, dilation = 1, pad = 0;
    int64_t first = 0, advance = 1;
    int64_t origin = 0, step = 1;
    int64_t skipped = 0;  ///< transposed: outputs of this residue before the first q
    int64_t residue = 0;  ///< transposed: (point + its pad) mod step
  };
  Axis h, w;
  int64_t weights = 0;  ///< offset of its packed weights, elements
};

/// How many outputs of an axis of `extent` points a phase has.
Value* convOutputs(Gen& g, const ConvPhase::Axis& a, Value* extent);

/// Everything about a direct convolution that follows from problem and configuration.
struct ConvPlan {
  ConvPlan(const Problem& p, const codegen::Config& c);
  const Problem& p;
  const codegen::Config& c;
  ConvView v;
  bool transposed;
  std::vector<ConvPhase> phases;
  int64_t tileW, tileH, tileN, taskH, taskW, taskN, blockIc;
  bool copy, planar;  ///< planar: channels are the outermost loop of the sum, because they are far apart
  int64_t lanes;
  int64_t sum(const ConvPhase& f) const { return f.h.taps * f.w.taps * v.icg; }
  int64_t tilesN() const { return (v.ocg + tileN - 1) / tileN; }

  /// The copy of a task's input, of one group: [rows][columns][pixel] or, planar, [channels][rows][columns].
  struct Patch {
    int64_t rows, columns, pixel;
    int64_t strideH, strideW;  ///< of outputs, in patch rows and columns
    int64_t elements, plane;
  };
  Patch patch(const ConvPhase& f) const;
  int64_t patchBytes() const, partialBytes() const, tileBytes() const;
  /// Blocks of the task grid.
  ir::Dim blocksH() const, blocksW() const;
  codegen::Lowering lower() const;
  void emit(Emitter& e) const;

 private:
  codegen::PackSpec pack() const;
};

std::vector<ConvPhase> convPhases(const Problem& p, const ConvView& v);

}  // namespace rutter::cpu
