#pragma once
// The loops of one task of a GEMM: register tiles over rows [m0, m1) and columns [n0, n1), with the sum in blocks of k.
#include "cpu/tile.h"

namespace rutter::cpu {

struct GemmBlock {
  int tileRows = 1, tileVectors = 1, unroll = 1, prefetch = 0;
  bool columnsOuter = true;  ///< a panel of B stays in cache while the rows pass; otherwise the rows stay

  Value* a = nullptr;                      ///< at row m0, k = 0
  Value *aRow = nullptr, *aCol = nullptr;  ///< strides, elements
  /// Address of B at k = 0, column n (a multiple of the tile's columns from n0).
  std::function<Value*(Value* n)> b;
  Value* bRow = nullptr;  ///< elements from k to k + 1
  int bAlign = 4;
  bool bMasked = false;  ///< columns past N do not exist (packed panels are padded instead)

  Value *m0 = nullptr, *m1 = nullptr, *n0 = nullptr, *n1 = nullptr;
  Value *m = nullptr, *n = nullptr;  ///< extents of the whole matrix
  Value* k = nullptr;
  int64_t blockK = 0;        ///< 0: the whole sum at once
  Value* partial = nullptr;  ///< with blockK: partial sums of the block, [m1-m0 rows][partialPitch]
  int64_t partialPitch = 0;
  /// Consumes a tile's sums. `masks`: one a vector, null where whole.
  std::function<void(Value* m, Value* n, int rows, int vectors, const Values& masks, const Values& acc)> finish;
};
/// Blocks of rows must be multiples of tileRows, blocks of columns multiples of the tile's columns (but for the last).
void emitGemmBlock(Gen& g, const GemmBlock& s);

/// Tiles over columns [n0, n1) of n: body(column, vectors, masks), the last one masked.
void emitColumns(Gen& g, Value* n0, Value* n1, Value* n, int tileVectors,
                 const std::function<void(Value* column, int vectors, const Values& masks)>& body);

/// Packed layout of B that blocks read: [panel][k][tile columns], zeros past N.
/// Packs columns [n, n + vectors*lanes) and all k of a matrix with strides (row, col) into `out`.
struct PackPanel {
  Value *b = nullptr, *bRow = nullptr, *bCol = nullptr;  ///< at k = 0, column n
  Value *k = nullptr, *columns = nullptr;                ///< columns that exist, at least 1
  int vectors = 1;
  Value* out = nullptr;
};
void emitPackPanel(Gen& g, const PackPanel& s);
/// Copies `rows` rows of k elements (strides in elements) to `out` with rows `pitch` elements apart.
void emitCopyRows(Gen& g, Value* src, Value* srcRow, Value* srcCol, Value* rows, Value* k, Value* out, Value* pitch);
/// A square of lanes x lanes vectors transposed in registers.
Values transposeSquare(Gen& g, Values rows);

}  // namespace rutter::cpu
