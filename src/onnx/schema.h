#pragma once
// What the ONNX specification says of its default domain: versions, attributes, counts of inputs and outputs.
#include <cstdint>
#include <string_view>
#include <vector>

namespace rutter::frontend {

struct Schema {
  std::string_view name;
  std::vector<int> versions;                 ///< ascending
  std::vector<std::string_view> attributes;  ///< of the newest version
  int64_t minInputs, maxInputs, minOutputs, maxOutputs;
  /// The version that a model of this opset means; 0 if the operator came later.
  int versionAt(int64_t opset) const;
};
const Schema* findSchema(std::string_view op);  ///< null if ONNX has no such operator

constexpr int64_t kOldestOpset = 7;  ///< the first with today's broadcasting
int64_t newestOpset();
int64_t newestIrVersion();

}  // namespace rutter::frontend
