#pragma once
// How the runtime calls generated code. Part of the engine format: a change here raises kFormatVersion.
#include <cstdint>

namespace rutter::runtime {

/// ptr[i]: address of the launch's i-th Ref; dim[i]: value of its i-th dim expression. Both live until the next change
/// of shapes or addresses, and are the same for every task of a launch.
struct Args {
  void* const* ptr;
  const int64_t* dim;
};

/// What a kernel returns. Anything else is reported as a fault of the kernel.
enum class KernelStatus : int32_t {
  kOk = 0,
  kIndexOutOfRange = 1,  ///< an index taken from the data (Gather, Scatter, Slice …) lies outside its axis
  kDivisionByZero = 2,   ///< of integers
  kBadValue = 3,         ///< an input value that the operator does not allow
};
const char* statusText(int32_t code);

/// Runs tasks [begin, end) of a launch. `scratch`: the launch's scratch bytes of this thread, 64-byte aligned, contents
/// unspecified (null if it asks for none). Returns a KernelStatus; the first non-zero one fails the run.
using Kernel = int32_t (*)(const Args*, int64_t begin, int64_t end, void* scratch);

}  // namespace rutter::runtime
