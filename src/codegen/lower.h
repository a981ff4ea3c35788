#pragma once
// From a fusion group to a kernel problem: extents, strides, epilogue program; and what fills the kernel's arguments.
#include <memory>

#include "codegen/group.h"
#include "codegen/problem.h"
#include "codegen/storage.h"

namespace rutter::codegen {

/// A problem with the values behind its operands and the expressions behind its parameters.
struct LoweredGroup {
  Problem problem;
  struct Source {
    const ir::Value* root = nullptr;   ///< whose memory
    const ir::Value* value = nullptr;  ///< the value itself (a view of root)
    ir::Dim offset = 0;                ///< elements
  };
  std::vector<Source> operands;  ///< beside problem.operands
  ir::Dims params;               ///< expressions of the run-time table
};

/// Never fails on a compilable group; an operator whose attributes have no kernel problem throws a Refusal.
struct LowerRefusal {
  std::string reason;
};
LoweredGroup lowerGroup(const ir::Graph& g, const Group& group, const Storage& storage);

/// Used by the builders of single kinds (lower_*.cpp).
class ProblemBuilder {
 public:
  ProblemBuilder(const ir::Graph& g, const Group& group, const Storage& s) : graph(g), group(group), storage(s) {}
  const ir::Graph& graph;
  const Group& group;
  const Storage& storage;

  struct Op {
    const ir::Value* value = nullptr;
    ir::Dims dims, strides;
    ir::Dim offset = 0;
    bool output = false;
    ir::Dims lo, hi;
    double fill = 0;
  };
  ir::Dims space;
  std::vector<Op> anchors, inputs, outs;
  std::vector<int> reduced;  ///< flag an axis, where the kind has it
  PwProgram prologue, epilogue;
  std::map<std::string, ir::Dims> ints;
  std::map<std::string, std::string> words;
  std::map<std::string, double> reals;
  ProblemKind kind = ProblemKind::kLoop;

  /// Strides of `v` against `over` (aligned right, 0 where broadcast).
  ir::Dims broadcastStrides(const ir::Value* v, const ir::Dims& over) const;
  void anchor(const ir::Value* v, ir::Dims dims, ir::Dims strides, ir::Dim offset);
  void anchor(const ir::Value* v);  ///< with its own dims and placement
  /// Appends the programs of `nodes`; values already computed are in `known`. Other inputs become loads over `over`.
  void program(PwProgram& p, const std::vector<ir::Node*>& nodes, std::map<const ir::Value*, int>& known,
               const ir::Dims& over);
  int value(PwProgram& p, const ir::Value* v, std::map<const ir::Value*, int>& known, const ir::Dims& over);
  /// The group's outputs as operands over space.
  void finishOutputs(PwProgram& p, const std::map<const ir::Value*, int>& known);
  /// Sorts axes by stride, drops extents of one, merges axes that are one in every operand. `keep`: axes not to touch.
  void normalise(const ir::Dims& orderBy, size_t keepFrom = 0);
  LoweredGroup build();

 private:
  std::map<std::string, int> loads_;
};

void lowerLoop(ProblemBuilder& b);
void lowerReduce(ProblemBuilder& b);
void lowerRow(ProblemBuilder& b);
void lowerGemm(ProblemBuilder& b);
void lowerConv(ProblemBuilder& b);
void lowerPool(ProblemBuilder& b);
void lowerResize(ProblemBuilder& b);
void lowerGather(ProblemBuilder& b);
void lowerPad(ProblemBuilder& b);
void lowerTile(ProblemBuilder& b);

}  // namespace rutter::codegen
