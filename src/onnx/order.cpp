#include <fmt/ranges.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "onnx/build.h"
#include "onnx/import.h"

namespace rutter::frontend {
namespace {

using Names = std::unordered_set<std::string_view>;

/// Names that the graphs in a node's attributes read from around them.
void collectCaptures(const NodeView& node, Names& out) {
  for (const AttributeView& a : node.attributes) {
    if (!a.g) continue;
    Names inner, own;
    for (const auto& v : a.g->inputs) own.insert(v.name);
    for (const auto& t : a.g->initialisers) own.insert(t.name);
    for (const NodeView& n : a.g->nodes) {
      own.insert(n.outputs.begin(), n.outputs.end());
      inner.insert(n.inputs.begin(), n.inputs.end());
      collectCaptures(n, inner);
    }
    for (const auto& v : a.g->outputs) inner.insert(v.name);
    for (auto n : inner)
      if (!n.empty() && !own.count(n)) out.insert(n);
  }
}

}  // namespace

std::vector<size_t> topologicalOrder(const std::vector<NodeView>& nodes) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); i++)
    for (auto name : nodes[i].outputs)
      if (!name.empty()) producer.emplace(name, i);
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> missing(nodes.size());
  for (size_t i = 0; i < nodes.size(); i++) {
    Names reads(nodes[i].inputs.begin(), nodes[i].inputs.end());
    collectCaptures(nodes[i], reads);
    for (auto name : reads) {
      auto it = producer.find(name);
      if (it == producer.end()) continue;
      users[it->second].push_back(i);
      missing[i]++;
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); i++)
    if (!missing[i]) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t u : users[i])
      if (--missing[u] == 0) ready.push(u);
  }
  if (order.size() == nodes.size()) return order;
  // Walk back along unmet inputs until a node comes again: that is a cycle.
  std::vector<size_t> path, seen(nodes.size(), SIZE_MAX);
  size_t at = 0;
  while (!missing[at]) at++;
  while (seen[at] == SIZE_MAX) {
    seen[at] = path.size();
    path.push_back(at);
    for (size_t p = 0; p < nodes.size(); p++)
      if (missing[p] && std::find(users[p].begin(), users[p].end(), at) != users[p].end()) {
        at = p;
        break;
      }
  }
  std::vector<std::string> names;
  for (size_t i = path.size(); i-- > seen[at];)
    names.push_back(shown(nodeName(nodes[path[i]].name, nodes[path[i]].op, int64_t(path[i]))));
  if (names.size() > 6) names.resize(6);
  throw UserError("the graph has a cycle through node{} {}", names.size() > 1 ? "s" : "", fmt::join(names, ", "));
}

}  // namespace rutter::frontend
