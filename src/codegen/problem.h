#pragma once
// What a kernel must solve, complete enough that emit needs nothing else: serialised, it is half of the kernel
// cache's key. Extents and strides that are fixed at build time are constants; the others are read by the kernel
// from the run-time table Args::dim at the parameter's index.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/tensor.h"

namespace rutter::codegen {

/// An integer of a problem: a constant, or parameter `param` of the run-time table.
struct KDim {
  int64_t value = 0;
  int32_t param = -1;
  KDim(int64_t v = 0) : value(v) {}  // NOLINT: integers are KDims
  static KDim parameter(int32_t index) {
    KDim d;
    d.param = index;
    return d;
  }
  bool isConstant() const { return param < 0; }
  bool is(int64_t v) const { return param < 0 && value == v; }
  bool operator==(const KDim&) const = default;
  /// As an expression in which parameter i is the symbol "$i" (see Lowering).
  ir::Dim dim() const { return param < 0 ? ir::Dim(value) : ir::Dim::symbol("$" + std::to_string(param)); }
};
/// What is known of a run-time parameter over the whole profile.
struct ParamInfo {
  int64_t min = 0, max = 0, opt = 0;
  int64_t divisor = 1;  ///< divides every value
  bool operator==(const ParamInfo&) const = default;
};

/// Scalar operations of pointwise programs. Arithmetic is in the instruction's type.
enum class PwOp : uint8_t {
  kLoad,   ///< operand args[0] of the problem at the current point
  kAcc,    ///< the value that the anchor computed (accumulator, reduced or normalised value)
  kConst,  ///< imm (floats) or immInt
  kIndex,  ///< coordinate along space axis args[0] (int64)
  kParam,  ///< an integer of the problem: ints["param"][args[0]] (int64)
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kFmod,
  kPow,
  kMin,
  kMax,
  kNeg,
  kAbs,
  kSign,
  kSqrt,
  kReciprocal,
  kExp,
  kLog,
  kSin,
  kCos,
  kTanh,
  kErf,
  kSigmoid,
  kFloor,
  kCeil,
  kRound,  ///< round: half to even
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,  ///< operands of `type`'s operands, result bool
  kAnd,
  kOr,
  kXor,
  kNot,
  kIsNan,
  kIsInf,
  kSelect,  ///< args[0] ? args[1] : args[2]
  kCast,    ///< args[0] converted to `type` as ONNX Cast does
};
struct PwInstr {
  PwOp op;
  ir::DType type = ir::DType::kF32;  ///< of the result
  int32_t args[3] = {-1, -1, -1};    ///< indices of earlier instructions (kLoad, kIndex, kParam: see there)
  double imm = 0;
  int64_t immInt = 0;
};
/// Straight-line code over scalars, run at every point of a space; `outputs` are instruction indices.
struct PwProgram {
  std::vector<PwInstr> code;
  std::vector<int32_t> outputs;
  bool empty() const { return code.empty(); }
  int add(PwInstr i) {
    code.push_back(i);
    return int(code.size()) - 1;
  }
  int load(int operand, ir::DType t) { return add({PwOp::kLoad, t, {operand, -1, -1}}); }
  int constant(ir::DType t, double v) { return add({PwOp::kConst, t, {-1, -1, -1}, v, int64_t(v)}); }
  int unary(PwOp op, ir::DType t, int a) { return add({op, t, {a, -1, -1}}); }
  int binary(PwOp op, ir::DType t, int a, int b) { return add({op, t, {a, b, -1}}); }
  int select(ir::DType t, int c, int a, int b) { return add({PwOp::kSelect, t, {c, a, b}}); }
};

/// A tensor that a kernel reads or writes: Args::ptr at its index in Problem::operands.
struct Operand {
  ir::DType dtype = ir::DType::kF32;
  /// Extents and strides (elements). Anchor operands (Problem::anchors of them, first): by their own logical axes.
  /// All others, and outputs: one stride an axis of Problem::space (0: broadcast); extents are the space's.
  std::vector<KDim> dims, strides;
  bool output = false;
  bool constant = false;  ///< contents known at build time: may be packed
  /// Loop problems: points outside [lo, hi) of an axis (empty: everywhere inside) read `fill`, and the address is
  /// that of (point - lo). This is Pad, and Concat written as one kernel.
  std::vector<KDim> lo, hi;
  double fill = 0;
};

enum class ProblemKind : uint8_t {
  /// outputs[point] = epilogue(operands at point) over `space`. anchors = 0.
  kLoop,
  /// words["op"] = sum|mean|max|min|prod|sumsq|l1|l2|logsumexp|argmax|argmin. space: full extents; ints["reduced"]: 1
  /// for
  /// reduced axes. prologue over all of space gives the value; epilogue runs on reduced points with kAcc; outputs have
  /// stride 0 on reduced axes. anchors = 0.
  kReduce,
  /// words["op"] = softmax|logsoftmax|layernorm|rmsnorm. Normalises over ints["reduced"] axes; prologue gives the
  /// value,
  /// epilogue sees the normalised value as kAcc. reals["eps"]. anchors = 0.
  kRow,
  /// C[batch…, m, n] = epilogue(sum_k A[batch…, m, k] * B[batch…, k, n]). anchors = 2: A, B with dims/strides
  /// [batch…, m, k] and [batch…, k, n] (batch strides 0 where broadcast). space = [batch…, m, n].
  kGemm,
  /// Y[n, oc, spatial…] = epilogue(conv). anchors = 2: X [n, ic, spatial…], W [oc, ic/groups, kernel…] (constant or
  /// not).
  /// ints: groups, kernel, strides, dilations, pads (begin…, end…). space = [n, oc, spatial…].
  kConv,
  /// Transposed convolution: W [ic, oc/groups, kernel…]; ints as conv (pads as ONNX ConvTranspose).
  kDeconv,
  /// words["op"] = max|average. anchors = 1: X [n, c, spatial…]. ints: kernel, strides, dilations, pads, include_pad.
  kPool,
  /// words: mode nearest|linear|cubic, coordinates, nearest_mode. anchors = 1: X. reals "scale0", "scale1"… by axis
  /// (axes with
  /// no scale are not resized); reals cubic_a, extrapolation.
  kResize,
  /// Y = epilogue(data[.., indices, ..]). anchors = 2: data, indices (own dims). ints: axis. space = data[:axis] ++
  /// indices
  /// ++ data[axis+1:]. Indices outside [-d, d) end the kernel with kIndexOutOfRange.
  kGather,
};
std::string_view kindName(ProblemKind k);

struct Problem {
  ProblemKind kind = ProblemKind::kLoop;
  std::map<std::string, std::vector<KDim>> ints;
  std::map<std::string, std::string> words;
  std::map<std::string, double> reals;
  std::vector<KDim> space;        ///< logical iteration extents: those of the output
  int anchors = 0;                ///< how many leading operands belong to the anchor
  std::vector<Operand> operands;  ///< anchors, then pointwise inputs, then outputs
  PwProgram prologue, epilogue;
  std::vector<ParamInfo> params;

  const std::vector<KDim>& getInts(const std::string& k) const;  ///< InternalError if missing
  int64_t getInt(const std::string& k, size_t i = 0) const;      ///< a constant one
  std::string word(const std::string& k) const;
  double real(const std::string& k, double fallback) const;
  int outputs() const;  ///< how many operands are outputs
  int firstOutput() const;
  int64_t maxOf(const KDim& d) const { return d.isConstant() ? d.value : params.at(d.param).max; }
  int64_t optOf(const KDim& d) const { return d.isConstant() ? d.value : params.at(d.param).opt; }
  double flops() const;  ///< at the profile's opt
  double bytes() const;  ///< read and written once, at opt
  /// The same at run-time shapes, of the parameters as symbols "$i"; nothing if they may exceed 2^60 within the
  /// profile.
  std::optional<ir::Dim> flopsDim() const, bytesDim() const;
  std::string serialize() const;  ///< canonical
  std::string print() const;      ///< one line for people
};

/// Every choice for a problem, resolved: no auto left. Serialised, the other half of the kernel cache's key.
struct Config {
  std::string tactic;
  std::map<std::string, int64_t> values;
  int64_t get(const std::string& k) const;  ///< InternalError if missing
  void set(const std::string& k, int64_t v) { values[k] = v; }
  std::string serialize() const;
  std::string print() const;  ///< "gemm_tile tile_m=6 tile_n=64"
};

}  // namespace rutter::codegen
