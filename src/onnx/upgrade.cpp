#include "onnx/upgrade.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "onnx/file.h"
#include "onnx/schema.h"
#include "ops/op.h"

namespace rutter::frontend {

std::optional<ir::Attr> Upgrade::take(const std::string& name) {
  auto it = node.attrs.find(name);
  if (it == node.attrs.end()) return std::nullopt;
  ir::Attr a = std::move(it->second);
  node.attrs.erase(it);
  return a;
}
std::optional<std::vector<int64_t>> Upgrade::takeInts(const std::string& name) {
  if (!node.has(name)) return std::nullopt;
  auto v = node.getInts(name);
  take(name);
  return v;
}
std::optional<float> Upgrade::takeFloat(const std::string& name) {
  if (!node.has(name)) return std::nullopt;
  float v = node.getFloat(name, 0);
  take(name);
  return v;
}
std::optional<int64_t> Upgrade::takeInt(const std::string& name) {
  if (!node.has(name)) return std::nullopt;
  int64_t v = node.getInt(name, 0);
  take(name);
  return v;
}
std::optional<size_t> Upgrade::rank(size_t input) const {
  const ir::Value* v = node.input(input);
  return v && v->type.known ? std::optional(v->type.rank()) : std::nullopt;
}
void Upgrade::setConstant(size_t i, const char* what, ir::Tensor t) {
  graph.setInput(&node, i, graph.makeConstant(node.name + "." + what, std::move(t)));
}
ir::Value* Upgrade::before(const char* op, const char* what, std::vector<ir::Value*> inputs,
                           std::map<std::string, ir::Attr> attrs) {
  ir::Value* out = graph.makeValue(node.name + "." + what);
  ir::Node* n = graph.makeNode(region, op, std::move(inputs), {out}, &node);
  n->name = node.name + "." + what;
  n->origins = node.origins;
  n->attrs = std::move(attrs);
  return out;
}
void Upgrade::after(const char* op, const char* what, std::vector<ir::Value*> inputs,
                    std::map<std::string, ir::Attr> attrs) {
  ir::Value* result = node.output();
  if (!result) return;
  ir::Value* inner = graph.makeValue(node.name + ".before_" + what);
  node.outputs[0] = inner;
  inner->producer = &node;
  inputs.at(0) = inner;
  ir::Node* n = graph.makeNode(region, op, std::move(inputs), {result});
  n->name = node.name + "." + what;
  n->origins = node.origins;
  n->attrs = std::move(attrs);
}

void upgradeNode(ir::Graph& graph, ir::Region& region, ir::Node& node, int64_t opset) {
  if (!node.domain.empty()) return;
  static const auto steps = [] {
    std::multimap<std::string_view, UpgradeStep> m;
    for (auto table : {axesSteps(), activationSteps(), movementSteps(), normalisationSteps(), resizeSteps()})
      for (const UpgradeStep& s : table) m.emplace(s.op, s);
    return m;
  }();
  const Schema* first = findSchema(node.op);
  if (!first) throw UserError("node {} ({}): ONNX has no such operator", shown(node.name), shown(node.op));
  if (first->versionAt(opset) == 0)
    throw UserError("node {} ({}): the model's opset is {}, this operator came with opset {}", shown(node.name),
                    node.op, opset, first->versions[0]);
  // A step may turn the node into another operator (Upsample is Resize today), whose steps then follow.
  Upgrade u{graph, region, node, opset};
  int done = 0;
  for (bool again = true; again;) {
    again = false;
    std::vector<UpgradeStep> todo;
    auto [begin, end] = steps.equal_range(node.op);
    for (auto it = begin; it != end; ++it)
      if (it->second.since > std::max<int64_t>(opset, done)) todo.push_back(it->second);
    std::sort(todo.begin(), todo.end(), [](const auto& a, const auto& b) { return a.since < b.since; });
    for (const UpgradeStep& s : todo) {
      const std::string op = node.op;
      s.apply(u);
      done = s.since;
      if (node.op != op) {
        again = true;
        break;
      }
    }
  }
  if (!ops::findOp("", node.op))
    throw UserError("node {} ({}): this operator was removed before opset {}", shown(node.name), node.op, opset);
  const Schema* schema = findSchema(node.op);
  RUTTER_CHECK(schema, "upgrade to {}", node.op);
  while (!node.inputs.empty() && !node.inputs.back()) node.inputs.pop_back();
  auto count = [&](const char* what, size_t n, int64_t least, int64_t most) {
    if (int64_t(n) < least || int64_t(n) > most)
      throw UserError("node {} ({}) has {} {}: {} wanted", shown(node.name), node.op, n, what,
                      least == most       ? std::to_string(least)
                      : most == INT32_MAX ? fmt::format("at least {}", least)
                                          : fmt::format("{} to {}", least, most));
  };
  count("inputs", node.inputs.size(), schema->minInputs, schema->maxInputs);
  count("outputs", node.outputs.size(), schema->minOutputs, schema->maxOutputs);
  for (const auto& [name, value] : node.attrs)
    if (std::find(schema->attributes.begin(), schema->attributes.end(), name) == schema->attributes.end())
      throw UserError("node {} ({}): unknown attribute '{}'; it has {}", shown(node.name), node.op, shown(name),
                      schema->attributes.empty() ? "none" : fmt::format("{}", fmt::join(schema->attributes, ", ")));
}

}  // namespace rutter::frontend
