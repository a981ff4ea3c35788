#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>

#include "base/hash.h"
#include "passes/rewrite.h"
#include "passes/simplify.h"

namespace rutter::passes {
namespace {

std::string tensorKey(const ir::Tensor& t) {
  if (t.dtype() == ir::DType::kString || t.bytes() > 1024) return fmt::format("{}", fmt::ptr(t.data()));
  return fmt::format("{}[{}]{}", int(t.dtype()), fmt::join(t.shape(), ","),
                     std::string(static_cast<const char*>(t.data()), size_t(t.bytes())));
}
std::string valueKey(const ir::Value* v) {
  if (!v) return "_";
  return v->constant ? tensorKey(*v->constant) : fmt::format("{}", fmt::ptr(v));
}
struct AttrKey {
  std::string operator()(int64_t v) const { return fmt::format("i{}", v); }
  std::string operator()(float v) const { return fmt::format("f{:a}", v); }
  std::string operator()(const std::string& v) const { return fmt::format("s{}:{}", v.size(), v); }
  std::string operator()(const ir::Tensor& v) const { return tensorKey(v); }
  template <typename T>
  std::string operator()(const std::vector<T>& v) const {
    std::string s = "[";
    for (const T& x : v) s += (*this)(x) + ",";
    return s + "]";
  }
};
std::string nodeKey(const ir::Node* n) {
  std::string s = fmt::format("{}.{}/{}(", n->domain, n->op, n->outputs.size());
  for (const ir::Value* v : n->inputs) s += valueKey(v) + ",";
  s += "){";
  for (const auto& [k, a] : n->attrs) s += k + "=" + std::visit(AttrKey{}, a) + ",";
  s += "}";
  if (n->op == "ShapeValue" && n->domain == "rutter") {
    s += fmt::format("{} {}:", int(n->outputs[0]->type.dtype), n->outputs[0]->type.rank());
    for (const ir::Dim& d : *n->outputs[0]->symbolic) s += d.text() + ",";
  }
  return s;
}

void run(ir::Graph& g, ir::Region& r, PassContext& ctx) {
  std::unordered_map<std::string, ir::Node*> seen;
  for (auto& p : r.nodes) {
    ir::Node* n = p.get();
    for (auto& sub : n->regions) run(g, *sub, ctx);
    if (!n->regions.empty() || n->op.rfind("Random", 0) == 0 || n->op == "Multinomial" || n->op == "Bernoulli")
      continue;
    auto [it, fresh] = seen.try_emplace(nodeKey(n), n);
    if (fresh) continue;
    ir::Node* kept = it->second;
    bool ok = true;
    for (size_t i = 0; i < n->outputs.size(); i++)
      if (n->outputs[i])
        ok &= kept->outputs[i] && kept->outputs[i]->type.layout == n->outputs[i]->type.layout &&
              canReplace(g, n->outputs[i], kept->outputs[i]);
    if (!ok || !ctx.get(knob::graph_cse, *kept)) continue;
    for (size_t i = 0; i < n->outputs.size(); i++)
      if (n->outputs[i]) replaceValue(g, n->outputs[i], kept->outputs[i]);
    addOrigins(kept, n);
  }
}

}  // namespace

void CommonNodes::apply(ir::Graph& g, PassContext& ctx) const {
  run(g, g.top(), ctx);
}

}  // namespace rutter::passes
