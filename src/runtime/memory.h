#pragma once
// Memory for activations: large pieces lie on huge pages where the system has them.
#include <cstddef>
#include <cstdint>

namespace rutter::runtime {

class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  /// At least so many bytes, contents lost if it grows. Aligned to 4096. DeviceError if there are not so many.
  void ensure(int64_t bytes);
  char* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace rutter::runtime
