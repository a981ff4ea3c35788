#pragma once
// Host memory for the inputs and outputs of one execution context, and the tensors that go in and come out.
#include <rutter/runtime.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/shapes.h"
#include "host.h"
#include "ir/tensor.h"
#include "tuner/make_inputs.h"

namespace rutter::cli {

using TensorMap = std::map<std::string, ir::Tensor>;
/// In the model's order.
using NamedTensors = std::vector<std::pair<std::string, ir::Tensor>>;

struct IoTensor {
  std::string name;
  ir::DType dtype;
  bool input;
  std::vector<int64_t> dims;  ///< -1: dynamic
};
std::vector<IoTensor> ioTensors(const IEngine& engine);
/// Dims of the public API as a vector; InternalError for an invalid one.
std::vector<int64_t> toVector(const Dims& d);
/// Min, opt and max of every input, profile after profile.
std::vector<RangeMap> engineProfiles(const IEngine& engine);

/// Inputs of pair `index`: from its files, the rest made up by `rules` (missing: by dtype) from the seed.
TensorMap readInputs(const std::vector<IoTensor>& io, const ShapeMap& shapes, const Options& o, size_t index,
                     const std::map<std::string, tuner::InputRule>& rules);
/// Reference outputs of pair `index`; their shapes must be those of `shapes`.
TensorMap readReferences(const std::vector<IoTensor>& io, const ShapeMap& shapes, const Options& o, size_t index);

/// The files of all pairs against the tensors that they are for, as readInputs and readReferences do. Of tensors whose
/// shape is not in `shapes`, names and dtypes only.
void checkFiles(const std::vector<IoTensor>& io, const ShapeMap& shapes, const Options& o);

class Bindings {
 public:
  /// Sets the input shapes on the context and gives every tensor memory.
  Bindings(const IEngine& engine, IExecutionContext& context, const ShapeMap& shapes, Errors& errors);
  void setInputs(const TensorMap& inputs);
  /// Fills the outputs with a pattern that no run leaves behind by chance.
  void poisonOutputs();
  NamedTensors inputs() const { return read(true); }    ///< views
  NamedTensors outputs() const { return read(false); }  ///< views
  ShapeMap outputShapes() const;

 private:
  struct Binding {
    IoTensor io;
    ir::Tensor memory;
  };
  NamedTensors read(bool input) const;
  std::vector<Binding> bindings_;
};

}  // namespace rutter::cli
