#include "runtime/kernel_abi.h"

namespace rutter::runtime {

const char* statusText(int32_t code) {
  switch (KernelStatus(code)) {
    case KernelStatus::kOk:
      return "ok";
    case KernelStatus::kIndexOutOfRange:
      return "an index in the input data is out of range";
    case KernelStatus::kDivisionByZero:
      return "integer division by zero";
    case KernelStatus::kBadValue:
      return "an input value that the operator does not allow";
  }
  return "the kernel returned an unknown code";
}

}  // namespace rutter::runtime
