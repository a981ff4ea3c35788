#pragma once
// A concrete tensor on the host: dtype, shape, dense row-major bytes (owned, or a view that keeps its owner alive).
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "ir/dtype.h"

namespace rutter::ir {

class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled, 64-byte aligned.
  Tensor(DType t, std::vector<int64_t> shape);
  /// A view of `data` (at least bytes() of it), which `owner` keeps alive. Any alignment.
  Tensor(DType t, std::vector<int64_t> shape, const void* data, std::shared_ptr<const void> owner);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t rank() const { return int64_t(shape_.size()); }
  int64_t size() const { return size_; }  ///< number of elements
  int64_t bytes() const { return bytesOf(dtype_, size_); }
  const void* data() const { return data_; }
  void* mutableData() {
    RUTTER_CHECK(owned_, "write to a tensor that is a view");
    hash_.reset();
    return const_cast<void*>(data_);
  }
  /// Typed access; the C++ type must have the dtype's size (float, double, int64_t, uint8_t for bool …).
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* as() {
    return static_cast<T*>(mutableData());
  }

  double getDouble(int64_t i) const;    ///< any numeric dtype, as double
  int64_t getInt(int64_t i) const;      ///< any numeric dtype; floats truncate
  void setDouble(int64_t i, double v);  ///< rounds to the dtype (integers: truncates towards zero, saturating)
  void setInt(int64_t i, int64_t v);    ///< wraps to the dtype's width
  const std::string& getString(int64_t i) const { return strings_->at(i); }
  std::vector<int64_t> toInts() const;
  /// XXH3-128 of the bytes; computed once for all copies and views that share them. Not after mutableData().
  Hash128 contentHash() const;
  Tensor reshaped(std::vector<int64_t> shape) const;  ///< same elements; shares the bytes

  static Tensor ofInts(const std::vector<int64_t>& v);  ///< int64, rank 1
  static Tensor scalar(DType t, double v);              ///< rank 0
  static Tensor ofFloats(std::vector<int64_t> shape, const std::vector<float>& v);
  static Tensor ofStrings(std::vector<int64_t> shape, std::vector<std::string> v);

 private:
  DType dtype_ = DType::kF32;
  std::vector<int64_t> shape_;
  int64_t size_ = 0;
  const void* data_ = nullptr;
  bool owned_ = false;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<std::vector<std::string>> strings_;
  mutable std::shared_ptr<const Hash128> hash_;
};

int64_t elementCount(const std::vector<int64_t>& shape);  ///< UserError on overflow or a negative extent
std::vector<int64_t> rowMajorStrides(const std::vector<int64_t>& shape);

}  // namespace rutter::ir
