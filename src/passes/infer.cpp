#include "passes/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/ints.h"
#include "base/text.h"
#include "ops/op.h"

namespace rutter::passes {
namespace {

std::string inputNames(const ir::Graph& g) {
  std::vector<std::string> names;
  for (const ir::Value* v : g.top().inputs) names.push_back("'" + v->name + "'");
  return fmt::format("{}", fmt::join(names, ", "));
}

// What the profile says of one symbol: an intersection over all axes that carry it.
struct Bound {
  ir::SymbolInfo info;
  std::string where;
};

// What a profile fixes: values of symbols, and axes that are open in the model, as it writes them.
struct Fixed {
  std::map<std::string, ir::Dim> symbols;
  std::map<std::pair<std::string, size_t>, ir::Dim> axes;
};

class Specialiser {
 public:
  Specialiser(ir::Graph& g, const Profile& p) : graph_(g), profile_(p) {}

  const Fixed& fixed() const { return fixed_; }

  void run() {
    for (const auto& [name, range] : profile_) {
      auto it = std::find_if(graph_.top().inputs.begin(), graph_.top().inputs.end(),
                             [&](const ir::Value* v) { return v->name == name; });
      if (it == graph_.top().inputs.end())
        throw UserError("the profile has a shape for '{}', which is no input of the model; its inputs are {}", name,
                        inputNames(graph_));
      apply(**it, range);
    }
    std::map<std::string, ir::Dim>& substitution = fixed_.symbols;
    for (const auto& [symbol, b] : bounds_) {
      if (b.info.min == b.info.max) {
        substitution[symbol] = b.info.min;
        graph_.symbols.erase(symbol);
      } else {
        graph_.symbols[symbol] = b.info;
      }
    }
    for (ir::Value* v : graph_.top().inputs) {
      if (!v->type.known)
        throw UserError("input '{}' has no shape in the model: give one, e.g. --shapes={}", v->name,
                        printShape(v->name, std::vector<int64_t>{1, 3, 224, 224}));
      for (size_t i = 0; i < v->type.rank(); i++) {
        ir::Dim& d = v->type.dims[i];
        if (!d.isConstant() && d.substitute(substitution).isConstant()) fixed_.axes.try_emplace({v->name, i}, d);
        d = d.substitute(substitution);
        std::vector<std::string> symbols;
        d.collectSymbols(symbols);
        if (const int64_t most = d.isConstant() ? d.value() : 0; most > INT32_MAX)
          throw UserError("input '{}': axis {} of {}: an axis has at most {} elements", v->name, i, most, INT32_MAX);
        for (const std::string& s : symbols)
          if (!graph_.symbols.count(s))
            throw UserError("input '{}' has a dynamic axis {} ({}) without a range: give shapes, e.g. --shapes={}",
                            v->name, i, d.text(), printShape(v->name, example(v->type.dims)));
      }
    }
    // Names of symbols may survive in declared types; they are inferred again below.
    for (auto& c : graph_.constraints) {
      c.a = c.a.substitute(substitution);
      c.b = c.b.substitute(substitution);
    }
  }

 private:
  static std::vector<int64_t> example(const ir::Dims& dims) {
    std::vector<int64_t> out;
    for (const ir::Dim& d : dims) out.push_back(d.constant().value_or(1));
    return out;
  }

  void apply(ir::Value& v, const ShapeRange& r) {
    size_t rank = r.opt.size();
    if (r.min.size() != rank || r.max.size() != rank)
      throw UserError("input '{}': min, opt and max of the profile have {}, {} and {} axes; they must agree", v.name,
                      r.min.size(), rank, r.max.size());
    if (!v.type.known) {
      v.type = ir::Type::tensor(v.type.dtype, {});
      for (size_t i = 0; i < rank; i++) v.type.dims.push_back(ir::Dim::symbol(freshSymbol(v.name, i)));
    }
    if (v.type.rank() != rank)
      throw UserError("input '{}' has {} axes ({}) in the model, the profile gives {}", v.name, v.type.rank(),
                      ir::toString(v.type.dims), rank);
    for (size_t i = 0; i < rank; i++) {
      int64_t lo = r.min[i], opt = r.opt[i], hi = r.max[i];
      if (lo < 0 || lo > opt || opt > hi)
        throw UserError("input '{}', axis {}: 0 <= min <= opt <= max does not hold for {}, {}, {}", v.name, i, lo, opt,
                        hi);
      ir::Dim& d = v.type.dims[i];
      if (auto c = d.constant()) {
        if (lo != *c || hi != *c)
          throw UserError("input '{}', axis {}: the model fixes it to {}, the profile says {}", v.name, i, *c,
                          lo == hi ? std::to_string(lo) : fmt::format("{} to {}", lo, hi));
        continue;
      }
      auto symbol = d.asSymbol();
      if (!symbol) {  // an expression of other symbols: the profile's own numbers replace it
        symbol = freshSymbol(v.name, i);
        d = ir::Dim::symbol(*symbol);
      }
      std::string where = fmt::format("input '{}', axis {}", v.name, i);
      auto [it, fresh] = bounds_.try_emplace(*symbol, Bound{{lo, hi, opt}, where});
      if (fresh) continue;
      Bound& b = it->second;
      int64_t min = std::max(b.info.min, lo), max = std::min(b.info.max, hi);
      if (min > max)
        throw UserError(
            "{} and {} are the same symbol '{}' in the model, but their ranges {}..{} and {}..{} have nothing in "
            "common",
            b.where, where, *symbol, b.info.min, b.info.max, lo, hi);
      b.info = {min, max, std::clamp(b.info.opt, min, max)};
    }
  }

  std::string freshSymbol(const std::string& input, size_t axis) {
    std::string s;
    for (char c : input) s += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s = "_" + s;
    return fmt::format("{}_{}", s, axis);
  }

  ir::Graph& graph_;
  const Profile& profile_;
  std::map<std::string, Bound> bounds_;
  Fixed fixed_;
};

void inferRegion(ir::Graph& g, ir::Region& r) {
  for (auto& n : r.nodes) {
    for (auto& sub : n->regions) inferRegion(g, *sub);
    if (!(n->domain == "rutter" && n->op == "ShapeValue"))  // its contents are its definition
      for (ir::Value* v : n->outputs)
        if (v) {
          v->type.known = false;
          v->symbolic.reset();
        }
    ops::inferNode(g, *n);
  }
}

// Shapes near the profile's, which do not fit the model. The first axis is the batch, as a rule, and stays unless its
// symbol is elsewhere.
std::string shapesThatFit(const ir::Graph& wrong, const Fixed& fixed) {
  if (!wrong.symbols.empty()) return "";
  std::vector<std::string> inner;  // symbols of other axes
  for (const auto& [axis, dim] : fixed.axes)
    if (axis.second > 0) dim.collectSymbols(inner);
  for (const int64_t multiple : kLikelyMultiples) {
    std::map<std::string, ir::Dim> symbols = fixed.symbols;
    bool changed = false, possible = true;
    for (const std::string& s : inner) {
      const int64_t was = symbols.at(s).value(), now = roundUp(was, multiple);
      symbols[s] = now;
      changed |= now != was;
    }
    if (!changed) continue;
    const auto g = wrong.clone();
    std::string text;
    for (ir::Value* v : g->top().inputs) {
      for (size_t i = 0; i < v->type.rank(); i++)
        if (auto open = fixed.axes.find({v->name, i}); open != fixed.axes.end()) {
          v->type.dims[i] = open->second.substitute(symbols);
          possible &= v->type.dims[i].value() <= INT32_MAX;
        }
      text +=
          (text.empty() ? "" : ",") + printShape(v->name, ir::constants(v->type.dims).value_or(std::vector<int64_t>{}));
    }
    if (!possible) continue;
    try {
      inferTypes(*g);
      return text;
    } catch (const UserError&) {  // nor do these
    }
  }
  return "";
}

// Something must write every output: one that is a constant of the model gets a copy.
void makeOutputs(ir::Graph& g) {
  for (ir::Value*& v : g.top().outputs) {
    if (v->producer) continue;
    if (!v->constant)
      throw UserError(
          "'{}' is an input and an output of the model: give the output a name and an Identity node of its own",
          v->name);
    ir::Value* out = g.makeValue(v->name, v->type);
    std::swap(v->name, out->name);
    ir::Node* copy = g.makeNode(g.top(), "Identity", {v}, {out});
    copy->name = out->name;
    copy->origins = {out->name};
    v = out;
  }
}

}  // namespace

void specialise(ir::Graph& g, const Profile& profile) {
  Specialiser specialiser(g, profile);
  specialiser.run();
  makeOutputs(g);
  try {
    inferTypes(g);
  } catch (const UserError& e) {
    if (const std::string fit = shapesThatFit(g, specialiser.fixed()); !fit.empty())
      throw UserError("{}; {} would fit", e.what(), fit);
    throw;
  }
}

void inferTypes(ir::Graph& g) {
  g.constraints.clear();
  inferRegion(g, g.top());
  tidyConstraints(g);
}

void tidyConstraints(ir::Graph& g) {
  std::set<std::string> seen;
  std::vector<ir::Constraint> kept;
  for (ir::Constraint& c : g.constraints) {
    if (c.kind == ir::Constraint::Kind::kAtLeast && c.a.range(g.symbols).first >= c.b.range(g.symbols).second) continue;
    if (c.kind == ir::Constraint::Kind::kDivisible && exactDiv(c.a, c.b)) continue;
    if (seen.insert(fmt::format("{} {} {}", int(c.kind), c.a.text(), c.b.text())).second) kept.push_back(std::move(c));
  }
  g.constraints = std::move(kept);
}

}  // namespace rutter::passes
