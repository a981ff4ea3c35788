#pragma once
// Pointwise programs as vector code. A caller that has accumulators in registers (GEMM, convolution …) gives them as
// `acc` and lets Points do the loads and stores; with its own idea of where operands lie it fills a PwEnv itself.
#include "cpu/vec.h"

namespace rutter::cpu {

/// Where a program takes its inputs from. All values are in registerType() form with `lanes` lanes.
struct PwEnv {
  int lanes = 1;
  Value* mask = nullptr;                    ///< active lanes (null: all); only they can fail (division by zero)
  std::function<Value*(int operand)> load;  ///< kLoad
  std::function<Value*(int axis)> index;    ///< kIndex: i64 coordinates
  Value* acc = nullptr;                     ///< kAcc
};
/// Emits prog.code for `lanes` points at once; gives the values of prog.outputs.
Values emitPw(Emitter& e, const codegen::Problem& p, const codegen::PwProgram& prog, const PwEnv& env);
/// Why emitPw cannot do a problem's programs and operand types on this machine; nothing: it can.
std::optional<std::string> pwRefuses(const codegen::Problem& p, const codegen::MachineProfile& m);
/// Estimated vector instructions of a program for one vector of 32-bit lanes.
double pwCost(const codegen::PwProgram& prog);

/// The points of Problem::space that share all coordinates but that of `axis` (the lanes' axis). Construction computes
/// the addresses of the operands that the epilogue (or `only`) loads and of all outputs in the current block, so
/// construct it outside the loop over `axis`, and only where the points exist. Operands that do not move along `axis`
/// are read at construction.
class Points {
 public:
  /// `coord`: i64, one an axis of the space; coord[axis] is ignored. axis -1: a single point (lanes 1, i ignored).
  /// `only`: place just the operands that this program loads (and no outputs).
  Points(Emitter& e, const codegen::Problem& p, Values coord, int axis, const codegen::PwProgram* only = nullptr);

  /// Values at coordinates i, i+1, … of `axis`, in registerType() form; inactive lanes are unspecified.
  Value* load(int operand, Value* i, int lanes, Value* mask = nullptr) const;
  void store(int operand, Value* i, int lanes, Value* v, Value* mask = nullptr) const;
  PwEnv env(Value* i, int lanes, Value* mask = nullptr, Value* acc = nullptr) const;
  /// The problem's epilogue with `acc`, stored to the outputs. Several vectors together: all loads come first, so that
  /// their latencies overlap; acc is one a vector (empty: no accumulator).
  void epilogue(const Values& starts, int lanes, Value* mask, const Values& acc = {}) const;
  int axis() const { return axis_; }

 private:
  struct Place {
    Value* base = nullptr;    // address at coordinate 0 of the axis
    Value* stride = nullptr;  // elements along the axis
    Value* inside = nullptr;  // windowed: i1 over the other axes; null: inside
    Value* lo = nullptr;      // windowed along the axis
    Value* hi = nullptr;
    Value* fill = nullptr;     // in memory form
    Value* uniform = nullptr;  // value that all lanes share, in register form
  };
  Emitter& e_;
  const codegen::Problem& p_;
  Values coord_;
  int axis_;
  std::vector<Place> places_;
};

/// Coordinates of a linear index over `extents` (row-major; extents i64), and the step to the next.
Values decode(Emitter& e, Value* linear, const Values& extents);
Values next(Emitter& e, const Values& coord, const Values& extents);

}  // namespace rutter::cpu
