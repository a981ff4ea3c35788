#include "ir/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace rutter::ir {
namespace {
template <typename T>
T attrOr(const Node& n, const std::string& a, T fallback) {
  auto it = n.attrs.find(a);
  if (it == n.attrs.end()) return fallback;
  if (const T* v = std::get_if<T>(&it->second)) return *v;
  throw UserError("node {} ({}): attribute '{}' has the wrong type", n.name, n.op, a);
}
}  // namespace

int64_t Node::getInt(const std::string& a, int64_t f) const {
  return attrOr<int64_t>(*this, a, f);
}
float Node::getFloat(const std::string& a, float f) const {
  return attrOr<float>(*this, a, f);
}
std::string Node::getString(const std::string& a, const std::string& f) const {
  return attrOr<std::string>(*this, a, f);
}
std::vector<int64_t> Node::getInts(const std::string& a, std::vector<int64_t> f) const {
  return attrOr<std::vector<int64_t>>(*this, a, std::move(f));
}
std::vector<float> Node::getFloats(const std::string& a) const {
  return attrOr<std::vector<float>>(*this, a, {});
}

std::string Graph::uniqueName(const std::string& base) {
  auto [it, fresh] = names_.try_emplace(base, 0);
  if (fresh) return base;
  std::string s;
  do s = fmt::format("{}.{}", base, ++it->second);
  while (names_.count(s));
  names_[s] = 0;
  return s;
}
void Graph::rename(Value* v, const std::string& name) {
  if (v->name == name) return;
  if (names_.count(name))
    for (auto& other : values_)
      if (other->name == name) throw UserError("the name '{}' is taken by another tensor of the network", name);
  names_.erase(v->name);
  names_.try_emplace(name, 0);
  v->name = name;
}
Value* Graph::makeValue(const std::string& name, Type type) {
  auto v = std::make_unique<Value>();
  v->name = uniqueName(name.empty() ? "value" : name);
  v->type = std::move(type);
  values_.push_back(std::move(v));
  return values_.back().get();
}
Value* Graph::makeConstant(const std::string& name, Tensor t) {
  Value* v = makeValue(name, Type::tensor(t.dtype(), toDims(t.shape())));
  v->constant = std::move(t);
  return v;
}
Node* Graph::makeNode(Region& r, const std::string& op, std::vector<Value*> inputs, std::vector<Value*> outputs,
                      const Node* before) {
  auto n = std::make_unique<Node>();
  n->op = op;
  n->name = outputs.empty() || !outputs[0] ? op : outputs[0]->name;
  n->inputs = std::move(inputs);
  n->outputs = std::move(outputs);
  n->parent = &r;
  Node* p = n.get();
  for (Value* v : p->inputs)
    if (v) v->users.push_back(p);
  for (size_t i = 0; i < p->outputs.size(); i++)
    if (Value* v = p->outputs[i]) {
      v->producer = p;
      v->outputIndex = int(i);
    }
  auto at =
      before ? std::find_if(r.nodes.begin(), r.nodes.end(), [&](auto& q) { return q.get() == before; }) : r.nodes.end();
  r.nodes.insert(at, std::move(n));
  return p;
}
namespace {
void dropUse(Value* v, Node* n) {
  auto it = std::find(v->users.begin(), v->users.end(), n);
  if (it != v->users.end()) v->users.erase(it);
}
template <typename F>
void forEachRegion(Region& r, F&& f) {
  f(r);
  for (auto& n : r.nodes)
    for (auto& s : n->regions) forEachRegion(*s, f);
}
}  // namespace
void Graph::setInput(Node* n, size_t i, Value* v) {
  if (n->inputs.size() <= i) n->inputs.resize(i + 1, nullptr);
  if (n->inputs[i]) dropUse(n->inputs[i], n);
  n->inputs[i] = v;
  if (v) v->users.push_back(n);
}
void Graph::replaceUses(Value* from, Value* to) {
  if (from == to) return;
  auto users = std::move(from->users);
  from->users.clear();
  for (Node* n : users)
    for (size_t i = 0; i < n->inputs.size(); i++)
      if (n->inputs[i] == from) {
        n->inputs[i] = to;
        to->users.push_back(n);
      }
  // A node that used the value twice was listed twice and rewired at its first entry.
  forEachRegion(*top_, [&](Region& r) { std::replace(r.outputs.begin(), r.outputs.end(), from, to); });
}
void Graph::eraseNode(Node* n) {
  for (Value* v : n->outputs)
    if (v) {
      RUTTER_CHECK(v->users.empty(), "erasing {} whose output {} is used", n->name, v->name);
      v->producer = nullptr;
    }
  for (Value* v : n->inputs)
    if (v) dropUse(v, n);
  auto& l = n->parent->nodes;
  l.erase(std::find_if(l.begin(), l.end(), [&](auto& q) { return q.get() == n; }));
}
bool Graph::isOutput(const Value* v) const {
  return std::find(top_->outputs.begin(), top_->outputs.end(), v) != top_->outputs.end();
}

int Graph::removeDead() {
  std::unordered_set<const Value*> live;
  forEachRegion(*top_, [&](Region& r) { live.insert(r.outputs.begin(), r.outputs.end()); });
  int removed = 0;
  auto sweep = [&](auto&& self, Region& r) -> void {
    for (auto it = r.nodes.end(); it != r.nodes.begin();) {
      --it;
      Node* n = it->get();
      bool used = false;
      for (Value* v : n->outputs) used |= v && (!v->users.empty() || live.count(v));
      if (!used) {
        for (Value* v : n->inputs)
          if (v) dropUse(v, n);
        for (Value* v : n->outputs)
          if (v) v->producer = nullptr;
        it = r.nodes.erase(it);
        removed++;
      } else {
        for (auto& s : n->regions) self(self, *s);
      }
    }
  };
  sweep(sweep, *top_);
  return removed;
}
void Graph::removeDeadValues() {
  std::unordered_set<const Value*> keep;
  forEachRegion(*top_, [&](Region& r) {
    keep.insert(r.inputs.begin(), r.inputs.end());
    keep.insert(r.outputs.begin(), r.outputs.end());
  });
  values_.remove_if(
      [&](const std::unique_ptr<Value>& v) { return v->users.empty() && !v->producer && !keep.count(v.get()); });
}

void Graph::verify() const {
  std::unordered_set<const Value*> defined;
  for (auto& v : values_)
    if (v->constant) defined.insert(v.get());
  auto check = [&](auto&& self, const Region& r) -> void {
    for (const Value* v : r.inputs) defined.insert(v);
    for (auto& n : r.nodes) {
      for (const Value* v : n->inputs) {
        if (!v) continue;
        RUTTER_CHECK(defined.count(v), "node {} ({}) reads {} before it is defined", n->name, n->op, v->name);
        RUTTER_CHECK(
            std::count(v->users.begin(), v->users.end(), n.get()) == std::count(n->inputs.begin(), n->inputs.end(), v),
            "use list of {} disagrees with node {}", v->name, n->name);
      }
      for (auto& s : n->regions) self(self, *s);
      for (size_t i = 0; i < n->outputs.size(); i++)
        if (const Value* v = n->outputs[i]) {
          RUTTER_CHECK(v->producer == n.get() && v->outputIndex == int(i), "producer of {} is not {}", v->name,
                       n->name);
          defined.insert(v);
        }
    }
    for (const Value* v : r.outputs)
      RUTTER_CHECK(v && defined.count(v), "region output {} is not defined", v ? v->name : "null");
  };
  check(check, *top_);
}

std::string Graph::print() const {
  std::string s;
  auto value = [](const Value* v) { return v ? fmt::format("%{}", v->name) : std::string("_"); };
  auto region = [&](auto&& self, const Region& r, int depth) -> void {
    std::string pad(depth * 2, ' ');
    for (const Value* v : r.inputs) s += fmt::format("{}input {}: {}\n", pad, value(v), v->type.text());
    for (auto& n : r.nodes) {
      std::vector<std::string> in, out, attrs;
      for (auto* v : n->inputs)
        in.push_back(v && v->constant ? fmt::format("{}:{}", value(v), v->type.text()) : value(v));
      for (auto* v : n->outputs) out.push_back(v ? fmt::format("{}:{}", value(v), v->type.text()) : "_");
      for (auto& [k, a] : n->attrs) {
        if (auto* i = std::get_if<int64_t>(&a))
          attrs.push_back(fmt::format("{}={}", k, *i));
        else if (auto* f = std::get_if<float>(&a))
          attrs.push_back(fmt::format("{}={}", k, *f));
        else if (auto* t = std::get_if<std::string>(&a))
          attrs.push_back(fmt::format("{}={}", k, *t));
        else if (auto* v = std::get_if<std::vector<int64_t>>(&a))
          attrs.push_back(fmt::format("{}=[{}]", k, fmt::join(*v, ",")));
        else
          attrs.push_back(k);
      }
      s += fmt::format("{}{} = {}{}({}) {{{}}}\n", pad, fmt::join(out, ", "), n->domain.empty() ? "" : n->domain + ".",
                       n->op, fmt::join(in, ", "), fmt::join(attrs, ", "));
      for (auto& sub : n->regions) self(self, *sub, depth + 1);
    }
    for (const Value* v : r.outputs) s += fmt::format("{}output {}: {}\n", pad, value(v), v->type.text());
  };
  region(region, *top_, 0);
  return s;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto g = std::make_unique<Graph>();
  g->symbols = symbols;
  g->constraints = constraints;
  g->name = name;
  g->names_ = names_;
  std::unordered_map<const Value*, Value*> map;
  for (auto& v : values_) {
    auto c = std::make_unique<Value>();
    c->name = v->name;
    c->type = v->type;
    c->constant = v->constant;
    c->symbolic = v->symbolic;
    map[v.get()] = c.get();
    g->values_.push_back(std::move(c));
  }
  auto values = [&](const std::vector<Value*>& in) {
    std::vector<Value*> out;
    for (auto* v : in) out.push_back(v ? map.at(v) : nullptr);
    return out;
  };
  auto copy = [&](auto&& self, const Region& from, Region& to) -> void {
    to.inputs = values(from.inputs);
    for (auto& n : from.nodes) {
      Node* c = g->makeNode(to, n->op, values(n->inputs), values(n->outputs));
      c->domain = n->domain;
      c->name = n->name;
      c->origins = n->origins;
      c->attrs = n->attrs;
      for (auto& s : n->regions) {
        c->regions.push_back(std::make_unique<Region>());
        c->regions.back()->owner = c;
        self(self, *s, *c->regions.back());
      }
    }
    to.outputs = values(from.outputs);
  };
  copy(copy, *top_, *g->top_);
  return g;
}

}  // namespace rutter::ir
