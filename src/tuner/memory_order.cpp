#include "tuner/memory_order.h"

#include <cstring>

#include "base/error.h"

namespace rutter::tuner {
namespace {

// Calls f(row-major index, index in memory) for each element.
template <typename F>
void eachElement(const std::vector<int64_t>& dims, std::span<const uint8_t> order, F f) {
  const size_t rank = dims.size();
  std::vector<int64_t> stride(rank, 1), at(rank, 0);
  for (size_t a = rank; a-- > 1;) stride[a - 1] = stride[a] * dims[a];
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  for (int64_t memory = 0; memory < n; memory++) {
    int64_t logical = 0;
    for (size_t a = 0; a < rank; a++) logical += at[a] * stride[a];
    f(logical, memory);
    for (size_t i = rank; i-- > 0;) {
      if (++at[order[i]] < dims[order[i]]) break;
      at[order[i]] = 0;
    }
  }
}

ir::Tensor reorder(const ir::Tensor& t, std::span<const uint8_t> order, bool toMemory) {
  if (order.empty() || t.size() == 0) return t;
  RUTTER_CHECK(order.size() == t.shape().size(), "an order of {} axes for rank {}", order.size(), t.shape().size());
  const int bits = ir::bitsOf(t.dtype());
  if (bits % 8 != 0) throw UserError("{} elements cannot lie in another order", ir::dtypeName(t.dtype()));
  const size_t bytes = size_t(bits) / 8;
  ir::Tensor out(t.dtype(), t.shape());
  const char* from = static_cast<const char*>(t.data());
  char* to = static_cast<char*>(out.mutableData());
  eachElement(t.shape(), order, [&](int64_t logical, int64_t memory) {
    const int64_t source = toMemory ? logical : memory, target = toMemory ? memory : logical;
    std::memcpy(to + size_t(target) * bytes, from + size_t(source) * bytes, bytes);
  });
  return out;
}

}  // namespace

ir::Tensor toMemoryOrder(const ir::Tensor& t, std::span<const uint8_t> order) {
  return reorder(t, order, true);
}
ir::Tensor fromMemoryOrder(const ir::Tensor& t, std::span<const uint8_t> order) {
  return reorder(t, order, false);
}

}  // namespace rutter::tuner
