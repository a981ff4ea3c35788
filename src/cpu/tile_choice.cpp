#include "cpu/tile_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "cpu/tile.h"

namespace rutter::cpu {

double tilingCost(const VectorIsa& isa, int64_t rows, bool fixedRows, int64_t columns, int tileRows, int vectors) {
  auto column = [&](int r) {
    int64_t width = int64_t(vectors) * isa.lanes, whole = columns / width, left = columns % width;
    double c = double(whole) * tileStepCost(isa, r, vectors);
    if (left) {
      int v = int((left + isa.lanes - 1) / isa.lanes);
      c += tileStepCost(isa, r, v);
      // Half of a wide vector is enough, and cheaper where wide ones take two cycles.
      int64_t last = left - int64_t(v - 1) * isa.lanes;
      if (isa.lanes == 16 && last <= 8 && r * v > 8) c -= 0.4 * r;
    }
    return c;
  };
  double total = double(rows / tileRows) * column(tileRows);
  int64_t left = rows % tileRows;
  if (fixedRows) return total + (left ? column(int(left)) : 0);
  for (int r : tileCascade(tileRows)) {
    total += double(left / r) * column(r);
    left %= r;
  }
  return total;
}

namespace {
// Rows of a tile that pay, beyond what the registers hold. A last vector of half the width takes its broadcast from the
// wide one's register, and the allocator spills from about 24 accumulators on (measured: 95 GFLOP/s with 10 rows of 24
// columns, 57 with 14); a single vector has hidden its latency long before it fills the registers (79 against 53).
int payingRows(const VectorIsa& isa, int64_t columns, int vectors) {
  if (isa.lanes < 16) return 1 << 20;
  const int64_t last = columns % (int64_t(vectors) * isa.lanes) % isa.lanes;
  if (vectors > 1 && last > 0 && last <= 8 && columns < int64_t(vectors) * isa.lanes) return 20 / vectors;
  return vectors == 1 ? 16 : 1 << 20;
}
}  // namespace

TileChoice chooseTile(const VectorIsa& isa, int64_t rows, bool fixedRows, int64_t columns, const TileWishes& w,
                      knobs::LayerKnobs& k) {
  rows = std::max<int64_t>(rows, 1);
  columns = std::max<int64_t>(columns, 1);
  int64_t limitRows = std::min<int64_t>(w.maxRows, fixedRows ? rows : w.maxRows);
  const int widest = std::min(isa.registers - 2, 8);  // vectors of a tile
  int limitVectors = int(std::min<int64_t>((columns + isa.lanes - 1) / isa.lanes, widest));
  auto wishRows = k.get(w.rowsKnob), wishColumns = k.get(w.columnsKnob);
  int onlyRows = 0, onlyVectors = 0;
  if (wishColumns) {
    int64_t v = (*wishColumns + isa.lanes - 1) / isa.lanes;
    if (v > widest)
      k.refuse(w.columnsKnob, fmt::format("a tile has at most {} vectors of {}", widest, isa.lanes));
    else if (v > limitVectors)
      k.refuse(w.columnsKnob, fmt::format("{} columns fill only {} vectors of {}", columns, limitVectors, isa.lanes));
    else
      onlyVectors = int(v);
  }
  if (wishRows) {
    if (*wishRows > limitRows)
      k.refuse(w.rowsKnob, fmt::format("there are only {} rows", limitRows));
    else if (*wishRows > maxTileRows(isa, std::max(onlyVectors, 1)))
      k.refuse(w.rowsKnob, fmt::format("{} rows of {} columns exceed {} registers", *wishRows,
                                       std::max(onlyVectors, 1) * isa.lanes, isa.registers));
    else
      onlyRows = int(*wishRows);
  }
  TileChoice best;
  for (int v = 1; v <= limitVectors; v++) {
    if (onlyVectors && v != onlyVectors) continue;
    int most = int(std::min<int64_t>(maxTileRows(isa, v), limitRows));
    if (!onlyRows) most = std::min(most, payingRows(isa, columns, v));
    for (int r = most; r >= 1; r--) {
      if (onlyRows && r != onlyRows) continue;
      double c = tilingCost(isa, rows, fixedRows, columns, r, v);
      if (best.cost == 0 || c < best.cost * 0.999) best = {r, v, c};
    }
  }
  RUTTER_CHECK(best.cost > 0, "no tile for {} x {}", rows, columns);
  return best;
}

int64_t conflictFreePitch(int64_t columns) {
  int64_t lines = (columns + 15) / 16;
  return (lines + (lines % 2 == 0)) * 16;
}
int64_t linesInOneSet(int64_t rows, int64_t stride) {
  int64_t places = std::max<int64_t>(1, 4096 / std::gcd(std::abs(stride) * 4, int64_t(4096)));
  return (rows + places - 1) / places;
}

}  // namespace rutter::cpu
