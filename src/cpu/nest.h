#pragma once
// How the kernels over a space of points go about it: one axis in vectors (the rows), all other axes outside, rows
// dealt out in tasks.
#include "cpu/pw.h"

namespace rutter::cpu {

/// Rows of a space along `axis` (-1: the space is one row of one point), one for each point of the `outer` axes.
/// A task is `rows` neighbouring rows, or, if chunk > 0, `chunk` points of each of them.
struct Rows {
  std::vector<int> outer;
  int axis = -1;
  int64_t rows = 1, chunk = 0;

  /// All axes but `axis` (and those for which skip[a] is not zero) are outer.
  static Rows over(const codegen::Problem& p, int axis, const std::vector<int64_t>& skip = {});
  static Rows fromConfig(const codegen::Problem& p, const codegen::Config& c, const std::vector<int64_t>& skip = {});
  void toConfig(codegen::Config& c) const;  ///< axis, rows, chunk
  /// Resolves rows and chunk: about `taskBytes` a task (0: from the whole and the number of cores). bytesPerPoint is
  /// the work of a point of the space in bytes of memory traffic; `step` is what chunks are multiples of (0: no
  /// chunks).
  void split(const codegen::Problem& p, const codegen::MachineProfile& m, double bytesPerPoint, double pointsPerRow,
             int64_t taskBytes, int64_t step);
  ir::Dim tasks(const codegen::Problem& p) const;
};
/// Writes "lanes", "unroll" and the rows' choices: vectors of `lanes` along the axis of least `cost` (1e300 and above:
/// not along this one), `unroll` of them a round unless that exceeds the axis or -pointwise:unroll is given.
void configureRows(const codegen::Problem& p, const codegen::MachineProfile& m, knobs::LayerKnobs& k, int64_t lanes,
                   int64_t unroll, double bytesPerPoint, const std::function<double(int axis)>& cost,
                   codegen::Config& c);
/// Emits the loop over the kernel's tasks and their rows. body: coordinates (axes that are neither outer nor `axis` are
/// 0), and the range along `axis`.
void forRows(Emitter& e, const codegen::Problem& p, const Rows& r,
             const std::function<void(const Values& coord, Value* from, Value* to)>& body);

/// Elements of one vector for a problem: by the widest type in it, of 32 bits at least unless nothing is that wide.
int64_t vectorLanes(const codegen::Problem& p, int64_t vectorBytes);
/// True if every memory type of the problem has masked accesses on this machine.
bool masksAreCheap(const codegen::Problem& p, const codegen::MachineProfile& m);
/// The axis along which vectors are cheapest, and its estimated cost for the whole space in vector instructions.
/// skip[a]: not this axis.
std::pair<int, double> cheapestAxis(const codegen::Problem& p, int64_t lanes, const std::vector<int64_t>& skip = {});
/// Bytes that one point moves.
double bytesPerPoint(const codegen::Problem& p);
/// Seconds from vector instructions and bytes moved.
double estimate(const codegen::MachineProfile& m, double instructions, double bytes);
/// One launch over all operands of the problem.
codegen::Lowering oneLaunch(const codegen::Problem& p, ir::Dim tasks, int64_t scratch = 0);

}  // namespace rutter::cpu
