// Kernels for plans that tests write by hand: what generated code would look like, in C++. Built as a shared object
// without a C++ runtime, as an engine's code section is.
#include <cstdint>

namespace {
struct Args {
  void* const* ptr;
  const int64_t* dim;
};
}  // namespace

extern "C" {

// ptr: x, y, z; one task a row of dim[0] floats. z = x + y
int32_t add_rows(const Args* a, int64_t begin, int64_t end, void*) {
  auto* x = static_cast<const float*>(a->ptr[0]);
  auto* y = static_cast<const float*>(a->ptr[1]);
  auto* z = static_cast<float*>(a->ptr[2]);
  for (int64_t i = begin * a->dim[0]; i < end * a->dim[0]; i++) z[i] = x[i] + y[i];
  return 0;
}
// ptr: x, y; one task an element. y = 2 x, by way of scratch
int32_t twice(const Args* a, int64_t begin, int64_t end, void* scratch) {
  auto* s = static_cast<float*>(scratch);
  for (int64_t i = begin; i < end; i++) {
    s[i % 16] = static_cast<const float*>(a->ptr[0])[i];
    static_cast<float*>(a->ptr[1])[i] = s[i % 16] + s[i % 16];
  }
  return 0;
}
// ptr: table, indices (int64), out; one task an index; dim[0] rows of dim[1] floats
int32_t gather_rows(const Args* a, int64_t begin, int64_t end, void*) {
  for (int64_t i = begin; i < end; i++) {
    int64_t row = static_cast<const int64_t*>(a->ptr[1])[i];
    if (row < 0 || row >= a->dim[0]) return 1;
    for (int64_t k = 0; k < a->dim[1]; k++)
      static_cast<float*>(a->ptr[2])[i * a->dim[1] + k] = static_cast<const float*>(a->ptr[0])[row * a->dim[1] + k];
  }
  return 0;
}

}  // extern "C"
