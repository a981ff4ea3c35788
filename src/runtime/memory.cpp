#include "runtime/memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include "base/error.h"

namespace rutter::runtime {

Memory::~Memory() {
  std::free(data_);
}
void Memory::ensure(int64_t bytes) {
  if (bytes <= size_) return;
  std::free(data_);
  data_ = nullptr;
  size_ = 0;
  constexpr size_t kHuge = size_t(2) << 20;
  size_t align = size_t(bytes) >= 2 * kHuge ? kHuge : 4096, n = (size_t(bytes) + align - 1) / align * align;
  data_ = static_cast<char*>(std::aligned_alloc(align, n));
  if (!data_) throw DeviceError("out of memory: {} bytes for the activations of a context", bytes);
  if (align == kHuge) madvise(data_, n, MADV_HUGEPAGE);
  size_ = int64_t(n);
}

}  // namespace rutter::runtime
