#pragma once
// Types of values. Only tensors are built today; sequence, optional and map have their place so that control flow
// and ai.onnx.ml operators need no new IR.
#include <memory>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/dtype.h"

namespace rutter::ir {

/// How logical axes lie in memory. `order` lists the logical axes from outermost to innermost; empty is row-major.
/// NHWC of a logical NCHW tensor is {0,2,3,1}. With `block` > 1, `blockAxis` is cut into blocks of that many lanes
/// that lie innermost, its extent padded up; padded lanes are zero after every writer.
struct Layout {
  std::vector<uint8_t> order;
  int8_t blockAxis = -1;
  int16_t block = 1;
  bool isRowMajor() const;
  bool operator==(const Layout& o) const;
  std::string text() const;                 ///< "row-major", "order=0231"
  static Layout channelsLast(size_t rank);  ///< {0, 2, …, rank-1, 1}
};

enum class TypeKind : uint8_t { kTensor, kSequence, kOptional, kMap };

struct Type {
  TypeKind kind = TypeKind::kTensor;
  DType dtype = DType::kF32;
  Dims dims;                   ///< logical extents
  Layout layout;               ///< physical order
  bool known = false;          ///< false until inferred or declared
  std::vector<Type> elements;  ///< of a sequence, optional or map

  static Type tensor(DType t, Dims dims) {
    Type r;
    r.dtype = t;
    r.dims = std::move(dims);
    r.known = true;
    return r;
  }
  size_t rank() const { return dims.size(); }
  Dim size() const { return product(dims); }
  Dim byteSize() const { return size() * Dim(bitsOf(dtype) / 8); }  ///< dense; of types that fill whole bytes
  /// Dense strides in elements, one a logical axis, as the layout lays them out (unblocked layouts only).
  Dims strides() const;
  std::string text() const;  ///< "float32[1x3xHxW]"
};

}  // namespace rutter::ir
