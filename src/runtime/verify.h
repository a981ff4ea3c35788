#pragma once
// Bounds every index, offset and enumerator of a plan, so that what runs it needs no further checks. The bytes have
// passed the FlatBuffers verifier by then, which knows nothing of meaning.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/plan_generated.h"

namespace rutter::runtime {

inline constexpr int kMaxRank = 8;  ///< of inputs and outputs: the public Dims hold no more

/// FlatBuffers verifier, then verifyPlan. UserError naming the first thing that is wrong.
const fb::Plan& openPlan(std::string_view bytes, int64_t weightsBytes);
/// Everything that holds for every shape: expressions refer to earlier ones, tables to entries that exist, buffers lie
/// in their sections, profiles are ordered, operators exist, attributes decode. Then, at every profile's min, opt and
/// max: checkSizes.
void verifyPlan(const fb::Plan& plan, int64_t weightsBytes);

/// Values of plan.exprs for the given extents of the inputs (all inputs' axes one after another, in I/O order).
/// UserError on overflow or division by zero. `out` has room for every expression.
void evaluateExprs(const fb::Plan& plan, std::span<const int64_t> inputDims, std::span<int64_t> out);
/// First index of an I/O tensor's extents in `inputDims` above, and how many there are: ranks summed over inputs.
std::vector<int32_t> inputDimOffsets(const fb::Plan& plan);

/// Whether the values of one set of shapes keep every buffer, reference and copy inside its memory. Message of the
/// first violation, empty if there is none. Run for every change of shapes: it is what makes wrong plans harmless.
std::string checkSizes(const fb::Plan& plan, std::span<const int64_t> values, int64_t arenaBytes);
/// First plan.checks entry that does not hold (index), or -1.
int failedCheck(const fb::Plan& plan, std::span<const int64_t> values);
/// Bytes of the arena that the values use: the end of its last buffer.
int64_t arenaUse(const fb::Plan& plan, std::span<const int64_t> values);
/// Bytes of a buffer under these values.
int64_t bufferBytes(const fb::Buffer& b, std::span<const int64_t> values);

}  // namespace rutter::runtime
