#pragma once
// The register tile that GEMM and convolution share: rows x vectors accumulators, each the sum over nested loops of
// (scalar of A) * (vector of B). One row of A is one GEMM row or one output pixel.
#include "cpu/gen.h"

namespace rutter::cpu {

/// One loop of the sum, outermost first. Strides are elements a step.
struct SumLoop {
  Value* begin;
  Value* end;
  Value* aStride;
  Value* bStride;
};

struct SumTile {
  int rows = 1, vectors = 1;
  Value* a = nullptr;  ///< at the loops' origin (index 0 of each), before any row offset
  /// Elements from `a` to row i; constant offsets become displacements.
  std::function<Value*(int i)> rowOffset;
  Value* b = nullptr;  ///< vector 0 at the loops' origin
  int bAlign = 4;      ///< bytes
  Values bMasks;       ///< a vector each, null where whole; empty: all whole
  int lastLanes = 0;   ///< lanes of the last vector that matter, if fewer than all: narrower arithmetic may be cheaper
  std::vector<SumLoop> loops;
  int unroll = 1;    ///< of the innermost loop
  int prefetch = 0;  ///< innermost steps ahead in B; 0: none
  Values init;       ///< rows*vectors, or empty for zeros
};
/// rows*vectors sums, row-major; lanes past lastLanes are unspecified.
Values emitSumTile(Gen& g, const SumTile& t);

/// Half of the lanes, if a constant mask has none set beyond and half a vector can be cheaper; else 0: what lastLanes
/// wants.
int leadingLanes(const Gen& g, Value* mask);

/// A sum in parts: the first part starts from zeros, the others from `place`; the last goes to `finish`, the others
/// back. The order of additions is that of one sum.
struct SumPart {
  Value *first = nullptr, *last = nullptr;  ///< i1
  std::function<Value*(int row, int vector)> place;
};
void emitSumPart(Gen& g, SumTile t, const SumPart& part, const std::function<void(const Values&)>& finish);

/// Tiles over [begin, end) of `total`: body(position, size), `tile` as often as it fits, then what is left. If `total`
/// is constant and begins are multiples of `tile`, the remainder is one tile; otherwise it is cut into halves.
void emitTiles(Gen& g, Value* begin, Value* end, Value* total, int tile,
               const std::function<void(Value* at, int size)>& body);

/// Largest row count whose accumulators, B vectors and one broadcast fit the registers.
int maxTileRows(const VectorIsa& isa, int vectors);

/// Estimated cycles of one step of a rows x vectors tile, in units of one vector FMA; what the choice of tiles
/// minimises.
double tileStepCost(const VectorIsa& isa, int rows, int vectors);

/// Sizes that serve an unknown count of rows: the tile, then powers of two below it.
std::vector<int> tileCascade(int tile);

}  // namespace rutter::cpu
