#pragma once
// How big register tiles and blocks should be: the part of configuration that GEMM and convolution share.
#include "cpu/gen.h"
#include "knobs/resolve.h"

namespace rutter::cpu {

struct TileChoice {
  int rows = 1, vectors = 1;
  double cost = 0;  ///< steps of the sum times their cycles, over all tiles
};
/// Cost of cutting `rows` x `columns` sums into tiles; `fixedRows`: the row count is known when code is emitted.
double tilingCost(const VectorIsa& isa, int64_t rows, bool fixedRows, int64_t columns, int tileRows, int vectors);

struct TileWishes {
  knobs::IntKnob rowsKnob, columnsKnob;
  int maxRows = 1 << 20;  ///< no tile of more rows
};
/// The cheapest tile for sums of `rows` x `columns`, or what the knobs ask for as far as it fits the registers.
TileChoice chooseTile(const VectorIsa& isa, int64_t rows, bool fixedRows, int64_t columns, const TileWishes& w,
                      knobs::LayerKnobs& k);

/// Elements between rows of a copy of `columns` elements so that rows never meet in the same sets of the L1 cache.
int64_t conflictFreePitch(int64_t columns);
/// How many of `rows` cache lines, `stride` elements apart, fall into one set of an L1 with ways of 4 KiB.
int64_t linesInOneSet(int64_t rows, int64_t stride);

/// What one core of a present-day machine does at best: only ratios between tactics matter.
inline constexpr double kVectorFmaPerSecond = 3.5e9;
inline constexpr double kBytesPerSecond = 20e9;

}  // namespace rutter::cpu
