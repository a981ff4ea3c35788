#pragma once
// Folding values over the reduced axes of a problem, for reductions and for rows (softmax, normalisation). Vectors lie
// along `axis`, which is either reduced (`inner`: lanes are combined in the end) or kept (each lane has its own
// result).
#include "cpu/nest.h"

namespace rutter::cpu {

/// An associative combination of tuples of values (a sum; a maximum with its index …).
struct Monoid {
  std::function<Values(int lanes)> init;
  std::function<Values(const Values& acc, const Values& item)> step;
  std::function<Values(const Values& a, const Values& b)> merge;
};

struct Fold {
  Emitter& e;
  const codegen::Problem& p;
  int axis;
  bool inner;
  int lanes, unroll;
  std::vector<int> loops;  ///< reduced axes other than `axis`, outermost first

  Fold(Emitter& e, const codegen::Problem& p, const codegen::Config& c);

  /// Where a body is: the operands of `program` along `axis`, and positions in the reduced axes.
  struct At {
    const Points& points;
    const Points* out;  ///< visit(): the epilogue's operands and the outputs
    Value* start;       ///< of the vector, along `axis`
    Value* mask;
    Value* index;  ///< linear index over the reduced axes (inner: of lane 0)
    int slot;      ///< which of the vectors done together
  };
  /// Kept point(s): coordinates, and for kept vectors their starts and mask.
  struct Kept {
    Values coord;
    Values starts;
    Value* mask = nullptr;
  };
  using Item = std::function<Values(const At&)>;
  /// Folds item() over all reduced positions. Gives one tuple a kept vector (inner: one tuple of scalars).
  std::vector<Values> fold(const Kept& k, const Monoid& m, const codegen::PwProgram* program, const Item& item) const;
  /// Visits all reduced positions without folding.
  void visit(const Kept& k, const codegen::PwProgram* program, const std::function<void(const At&)>& body) const;
  /// How many positions there are (i64).
  Value* count() const;

 private:
  using NestBody = std::function<Values(const Points&, const Points* out, const Values& starts, Value* mask,
                                        Value* index, const Values&)>;
  Values nest(size_t level, Values coord, Value* index, const Kept& k, const Values& carried,
              const codegen::PwProgram* program, bool outputs, const NestBody& body) const;
};

/// The problem's "reduced" flags.
std::vector<int64_t> reducedFlags(const codegen::Problem& p);
double reducedCount(const codegen::Problem& p);  ///< at opt
/// Estimated vector instructions with vectors along `axis`.
double foldInstructions(const codegen::Problem& p, int axis, int64_t lanes, double passes);
/// Chooses axis, inner, lanes and the split into tasks for a problem with reduced axes. `passes`: times that values are
/// visited; wishInner: 1 along a reduced axis, 0 along a kept one, -1 free (impossible wishes are taken as free).
void configureFold(codegen::Config& c, const codegen::Problem& p, const codegen::MachineProfile& m, int wishInner,
                   int64_t unroll, double passes, int64_t taskBytes);
Rows foldRows(const codegen::Problem& p, const codegen::Config& c);

namespace monoid {
Monoid sum(Emitter& e, llvm::Type* t);
Monoid product(Emitter& e, llvm::Type* t);
/// Items are summed as squares.
Monoid squares(Emitter& e, llvm::Type* t);
Monoid extreme(Emitter& e, llvm::Type* t, bool max, bool isSigned);
/// Items (value, i32 index): the first index of the extreme value.
Monoid arg(Emitter& e, llvm::Type* t, bool max, bool isSigned);
}  // namespace monoid

}  // namespace rutter::cpu
