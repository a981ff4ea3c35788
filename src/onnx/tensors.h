#pragma once
// TensorProto -> ir::Tensor: raw and typed encodings, inline and external.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "onnx/file.h"
#include "onnx/model.h"

namespace rutter::frontend {

class TensorStore {
 public:
  /// `owner` keeps the model's bytes alive; `directory` is where external data lies ("" if there is none).
  TensorStore(std::shared_ptr<const void> owner, std::string directory)
      : owner_(std::move(owner)), directory_(std::move(directory)) {}

  /// A view into the model or the external file where the encoding allows it, else a copy. `what` starts every error
  /// message: "initializer 'w'".
  ir::Tensor decode(const TensorView& t, const std::string& what);

  struct External {
    std::string location;
    std::shared_ptr<const MappedFile> file;
  };
  const std::vector<External>& externals() const { return externals_; }  ///< in order of first use

 private:
  ir::Tensor decodeExternal(const TensorView& t, ir::DType type, const std::vector<int64_t>& shape,
                            const std::string& what);
  const External& open(const std::string& location);

  std::shared_ptr<const void> owner_;
  std::string directory_;
  std::vector<External> externals_;
};

}  // namespace rutter::frontend
