// Which operators of a model have no rule, all of them at once.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "onnx/build.h"
#include "onnx/import.h"
#include "onnx/schema.h"
#include "ops/op.h"

namespace rutter::frontend {
namespace {

constexpr size_t kNodesShown = 20;

bool isKnown(const NodeView& n) {
  // Constant nodes become constants; Upsample and Scatter live on under other names.
  if (n.domain.empty() && (n.op == "Constant" || n.op == "Upsample" || n.op == "Scatter")) return true;
  return n.domain != "rutter" && ops::findOp(n.domain, n.op);
}

// Whether a node can be imported as far as its operator and those inside of it go.
class Support {
 public:
  explicit Support(const ModelView& m) : model_(m) {}
  bool of(const NodeView& n) {
    if (const FunctionView* f = findFunction(model_, n)) {
      const auto [it, fresh] = functions_.try_emplace(f, true);  // a call of itself is another error
      if (fresh) it->second = of(f->nodes);
      return it->second;
    }
    return isKnown(n) && std::all_of(n.attributes.begin(), n.attributes.end(),
                                     [&](const AttributeView& a) { return !a.g || of(a.g->nodes); });
  }

 private:
  bool of(const std::vector<NodeView>& nodes) {
    return std::all_of(nodes.begin(), nodes.end(), [&](const NodeView& n) { return of(n); });
  }
  const ModelView& model_;
  std::map<const FunctionView*, bool> functions_;
};

class OperatorCheck {
 public:
  explicit OperatorCheck(const ModelView& m) : model_(m) {}
  void visit(const std::vector<NodeView>& nodes, const std::string& prefix) {
    for (size_t i = 0; i < nodes.size(); i++) {
      const NodeView& n = nodes[i];
      const std::string name = prefix + nodeName(n.name, n.op, int64_t(i));
      if (const FunctionView* f = findFunction(model_, n)) {
        if (visited_.insert(f).second) visit(f->nodes, name + "/");
        continue;
      }
      for (const AttributeView& a : n.attributes)
        if (a.g) visit(a.g->nodes, name + "/");
      if (!isKnown(n))
        found.push_back({name, std::string(n.op), std::string(n.domain), int64_t(i), "operator is not supported"});
    }
  }
  std::vector<UnsupportedNode> found;

 private:
  const ModelView& model_;
  std::set<const FunctionView*> visited_;
};

}  // namespace

const FunctionView* findFunction(const ModelView& model, const NodeView& node) {
  for (const FunctionView& f : model.functions)
    if (f.name == node.op && f.domain == node.domain && f.overload == node.overload) return &f;
  return nullptr;
}

std::vector<NodesBySupport> nodesBySupport(std::span<const std::byte> bytes) {
  const ModelView model = parseModel({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::vector<NodeView>& nodes = model.graph->nodes;
  Support support(model);
  std::vector<NodesBySupport> out;
  for (size_t i : topologicalOrder(nodes)) {
    const bool supported = support.of(nodes[i]);
    if (out.empty() || out.back().supported != supported) out.push_back({supported, {}});
    out.back().nodes.push_back(int64_t(i));
  }
  return out;
}

void checkOperators(const ModelView& model) {
  OperatorCheck check(model);
  check.visit(model.graph->nodes, "");
  if (check.found.empty()) return;
  std::map<std::string, std::vector<std::string>> byOp;
  size_t shownNodes = 0;
  for (const UnsupportedNode& n : check.found) {
    std::string op = n.domain.empty() ? n.op : n.domain + "." + n.op;
    if (shownNodes < kNodesShown)
      byOp[shown(op)].push_back(shown(n.name)), shownNodes++;
    else
      byOp[shown(op)];
  }
  std::string text;
  for (const auto& [op, nodes] : byOp)
    text += fmt::format("{}{}{}", text.empty() ? "" : "; ", op,
                        nodes.empty() ? "" : fmt::format(" ({})", fmt::join(nodes, ", ")));
  std::vector<std::string> supported;
  for (const ops::OpDef* d : ops::allOps())
    if (std::string_view(d->domain) != "rutter") supported.push_back(d->name);
  std::sort(supported.begin(), supported.end());
  const size_t count = check.found.size();
  const std::string hidden = count > kNodesShown ? fmt::format(" ({} nodes not listed)", count - kNodesShown) : "";
  const std::string message = fmt::format("{} node{} unsupported operators: {}{}; supported are {}", count,
                                          count == 1 ? " uses" : "s use", text, hidden, fmt::join(supported, ", "));
  throw UnsupportedOperators(message, std::move(check.found));
}

}  // namespace rutter::frontend
