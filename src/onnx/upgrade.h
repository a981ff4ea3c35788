#pragma once
// Brings a node to the newest version of its operator.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/graph.h"

namespace rutter::frontend {

/// What an upgrade step sees: the node, last of its region, with inputs whose types are known where inference got.
struct Upgrade {
  ir::Graph& graph;
  ir::Region& region;
  ir::Node& node;
  int64_t opset;

  /// Takes attribute `name` off the node.
  std::optional<ir::Attr> take(const std::string& name);
  std::optional<std::vector<int64_t>> takeInts(const std::string& name);
  std::optional<float> takeFloat(const std::string& name);
  std::optional<int64_t> takeInt(const std::string& name);
  /// Rank of an input, if known.
  std::optional<size_t> rank(size_t input) const;
  /// Makes input i a new constant "<node>.<what>".
  void setConstant(size_t i, const char* what, ir::Tensor t);
  /// A helper node before the node: "<node>.<what>", with the node's origins and one output.
  ir::Value* before(const char* op, const char* what, std::vector<ir::Value*> inputs,
                    std::map<std::string, ir::Attr> attrs = {});
  /// A helper after it, that takes over the node's first output: inputs[0] is set to what the node gives now.
  void after(const char* op, const char* what, std::vector<ir::Value*> inputs,
             std::map<std::string, ir::Attr> attrs = {});
};

constexpr int kEveryOpset = INT32_MAX;  ///< `since` of steps that tidy up what files of any opset hold
struct UpgradeStep {
  const char* op;
  int since;  ///< applies to models of an older opset
  void (*apply)(Upgrade&);
};
// One table a file of src/onnx/upgrade.
std::span<const UpgradeStep> axesSteps();
std::span<const UpgradeStep> activationSteps();
std::span<const UpgradeStep> movementSteps();
std::span<const UpgradeStep> normalisationSteps();
std::span<const UpgradeStep> resizeSteps();

/// Applies every step between the node's opset and now, then checks counts and attributes against the newest version.
/// UserError names the node (the caller adds the file).
void upgradeNode(ir::Graph& graph, ir::Region& region, ir::Node& node, int64_t opset);

}  // namespace rutter::frontend
