#pragma once
// What happens to the sums of a register tile: the problem's epilogue and the stores. Rows of the tile run along one
// axis of the problem's space (and, for tiles of several image rows, along a second one), vectors along another.
#include "cpu/gen.h"

namespace rutter::cpu {

class TileEpilogue {
 public:
  struct Setup {
    const codegen::Problem* p;
    int rowAxis, colAxis;     ///< axes of Problem::space
    int outerAxis = -1;       ///< axis that a row takes after `width` of them, if any
    bool inLoop = false;      ///< go through `buffer` row by row instead of unrolling over the tile's registers
    Value* buffer = nullptr;  ///< rows * vectors * lanes floats, with inLoop
    int64_t rowStep = 1, outerStep = 1,
            colStep = 1;  ///< points between neighbouring rows, along rowAxis and outerAxis, and between columns
  };
  /// Slots of the current function must be the problem's operands.
  TileEpilogue(Gen& g, Setup s) : g_(g), s_(s) {}
  /// A tile whose first element is the point `origin` (a coordinate an axis of space). Row i lies i % width steps along
  /// rowAxis and i / width steps along outerAxis. `masks`: one a vector, null where whole. `acc`: row-major.
  void emit(const Values& origin, int rows, int width, int vectors, const Values& masks, const Values& acc);
  /// Whether the program is so long that a loop over rows beats unrolled code.
  static bool wantsLoop(const codegen::Problem& p);

 private:
  struct Place {
    Value* base = nullptr;                                   ///< address of the tile's first element
    Value *row = nullptr, *outer = nullptr, *col = nullptr;  ///< elements a row, a width of rows, a column
    llvm::Type* type = nullptr;
    int bytes = 4;
  };
  Value* address(const Place& p, Value* row, Value* outer, int vector);
  Value* read(const Place& p, Value* row, Value* outer, int vector, Value* mask);
  void write(const Place& p, Value* row, Value* outer, int vector, Value* mask, Value* v);
  void rowOfTile(const Values& origin, Value* row, Value* outer, int vectors, const Values& masks, const Values& acc);

  Gen& g_;
  Setup s_;
  std::vector<Place> places_;
  std::map<std::pair<int, int>, Value*> shared_;  ///< (operand, vector) that all rows of the tile read
};

}  // namespace rutter::cpu
