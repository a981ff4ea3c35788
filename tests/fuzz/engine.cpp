// The engine loader past its checksums: any bytes as a plan end in a plan or in a UserError; an accepted plan evaluates
// for any shapes, and checkSizes then answers. No code is loaded.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "runtime/verify.h"

using namespace rutter;
using namespace rutter::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first 8 bytes are extents to evaluate at; the plan follows, aligned as in a file.
  if (size < 8) return 0;
  size_t n = size - 8;
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, n + 1)) return 0;
  char* bytes = static_cast<char*>(memory);
  std::memcpy(bytes, data + 8, n);
  try {
    const fb::Plan& plan = openPlan({bytes, n}, 1 << 20);
    std::vector<int64_t> dims(size_t(inputDimOffsets(plan).back())), values(plan.exprs() ? plan.exprs() -> size() : 0);
    for (size_t i = 0; i < dims.size(); i++) dims[i] = data[i % 8];
    evaluateExprs(plan, dims, values);
    if (failedCheck(plan, values) < 0 && checkSizes(plan, values, plan.arena_bytes()).empty() &&
        arenaUse(plan, values) > plan.arena_bytes())
      std::abort();
  } catch (const UserError&) {
  } catch (const DeviceError&) {  // an attribute tensor larger than memory
  }
  std::free(bytes);
  return 0;
}
