#include "codegen/storage.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/pointwise.h"

namespace rutter::codegen {

using ir::Dim;
using ir::Dims;
using ir::Node;
using ir::Value;

std::optional<Dims> reshapeStrides(const Dims& from, const Dims& strides, const Dims& to) {
  // Extents of 1 carry no information and may have any stride.
  Dims d, s;
  for (size_t i = 0; i < from.size(); i++)
    if (!from[i].is(1)) {
      d.push_back(from[i]);
      s.push_back(strides[i]);
    }
  Dims out(to.size(), Dim(0));
  size_t i = 0, j = 0;
  while (i < d.size() || j < to.size()) {
    if (j < to.size() && to[j].is(1)) {
      j++;
      continue;
    }
    if (i >= d.size() || j >= to.size()) return std::nullopt;
    // Grow both sides until the products meet.
    size_t i1 = i + 1, j1 = j + 1;
    Dim a = d[i], b = to[j];
    while (!(a == b)) {
      bool growTo = true;  // which side is behind? constants decide; otherwise try the target side first
      auto ca = a.constant(), cb = b.constant();
      if (ca && cb)
        growTo = *cb < *ca;
      else if (exactDiv(b, a))
        growTo = false;
      if (growTo) {
        if (j1 >= to.size()) return std::nullopt;
        b = b * to[j1++];
      } else {
        if (i1 >= d.size()) return std::nullopt;
        a = a * d[i1++];
      }
    }
    for (size_t k = i; k + 1 < i1; k++)
      if (!(s[k] == s[k + 1] * d[k + 1])) return std::nullopt;
    Dim stride = s[i1 - 1];
    for (size_t k = j1; k-- > j;) {
      out[k] = stride;
      stride = stride * to[k];
    }
    i = i1;
    j = j1;
  }
  return out;
}

bool isDenseRowMajor(const Dims& dims, const Dims& strides) {
  Dim n(1);
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i].is(1)) continue;
    if (!(strides[i] == n)) return false;
    n = n * dims[i];
  }
  return true;
}

namespace {
std::optional<Dims> valuesOf(const Value* v) {
  if (!v) return std::nullopt;
  if (v->symbolic) return v->symbolic;
  if (v->constant) return ir::toDims(v->constant->toInts());
  return std::nullopt;
}
// min(max(x, lo), hi), simplified where the profile proves it.
Dim clamp(const ir::Graph& g, Dim x, const Dim& lo, const Dim& hi) {
  auto r = [&](const Dim& d) { return d.range(g.symbols); };
  auto below = r(x - lo), above = r(hi - x);
  if (below.first < 0) x = below.second <= 0 ? lo : max(x, lo);
  above = r(hi - x);
  if (above.first < 0) x = above.second <= 0 ? hi : min(x, hi);
  return x;
}
}  // namespace

std::vector<SliceAxis> sliceAxes(const ir::Graph& g, const Node& n) {
  const Dims& dims = n.inputs[0]->type.dims;
  std::vector<SliceAxis> out(dims.size());
  for (size_t a = 0; a < dims.size(); a++) out[a] = {Dim(0), n.outputs[0]->type.dims[a], 1};
  auto starts = valuesOf(n.input(1)), axes = valuesOf(n.input(3)), steps = valuesOf(n.input(4));
  RUTTER_CHECK(starts, "Slice {} with unknown starts", n.name);
  for (size_t i = 0; i < starts->size(); i++) {
    int64_t a = axes ? (*axes)[i].value() : int64_t(i);
    if (a < 0) a += int64_t(dims.size());
    int64_t step = steps ? (*steps)[i].value() : 1;
    Dim s = (*starts)[i];
    auto range = s.range(g.symbols);
    if (range.second < 0) s = s + dims[a];
    s = step > 0 ? clamp(g, s, Dim(0), dims[a]) : clamp(g, s, Dim(0), dims[a] - Dim(1));
    out[a].start = s;
    out[a].step = step;
  }
  return out;
}

Storage::Storage(ir::Graph& g, const knobs::Route& route, const std::set<const Node*>& reference)
    : graph_(&g), route_(&route), reference_(&reference) {
  placeBackwards();
  placeForwards();
}
const Placement& Storage::of(const Value* v) const {
  auto it = placement_.find(v);
  RUTTER_CHECK(it != placement_.end(), "value {} has no placement", v->name);
  return it->second;
}
bool Storage::isInPlace(const Node* concat, size_t i) const {
  return inPlace_.count({concat, i}) > 0;
}
void Storage::note(const Node& n, const knobs::LayerKnobs& k) {
  reads_[n.name].insert(k.reads().begin(), k.reads().end());
  // A view or Concat may end up without a layer of its own: whoever computes its inputs shows the knob.
  if (!isViewOp(n) && n.op != "Concat") return;
  for (const Value* v : n.inputs) {
    if (!v || !v->producer) continue;
    const auto& known = reads_[v->producer->name];
    if (!std::includes(known.begin(), known.end(), k.reads().begin(), k.reads().end())) note(*v->producer, k);
  }
}

// A value whose producer can be told where to write: computed by a kernel of ours, not a model output, not placed yet.
bool Storage::movable(const Value* v) const {
  if (!v || v->constant || !v->producer || placement_.count(v) || graph_->isOutput(v)) return false;
  if (reference_->count(v->producer) || !isCompilable(*v->producer)) return false;
  return !isViewOp(*v->producer);
}

namespace {
// Kernels store whole vectors along the innermost axis of a value's layout: it must stay contiguous.
bool keepsInnermost(const Value* v, const Dims& strides) {
  if (strides.empty()) return true;
  Dims own = v->type.strides();
  for (size_t a = 0; a < own.size(); a++)
    if (own[a].is(1) && !v->type.dims[a].is(1)) return strides[a].is(1);
  return true;
}
}  // namespace

void Storage::placeBackwards() {
  for (const Value* v : graph_->top().outputs) placement_[v] = {v, 0, v->type.strides()};
  auto& nodes = graph_->top().nodes;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node& n = **it;
    if (n.domain.empty() && n.op == "Concat") {
      auto k = knobsOf(n);
      bool on = k.getOr(knob::memory_concat_in_place, true);
      note(n, k);
      if (!on || reference_->count(&n)) continue;
      const Value* out = n.outputs[0];
      placement_.try_emplace(out, Placement{out, 0, out->type.strides()});
      Placement base = placement_.at(out);
      int64_t axis = n.getInt("axis", 0);
      if (axis < 0) axis += int64_t(out->type.rank());
      Dim at(0);
      for (size_t i = 0; i < n.inputs.size(); i++) {
        Value* part = n.inputs[i];
        if (movable(part) && part->type.layout == out->type.layout && keepsInnermost(part, base.strides)) {
          placement_[part] = {base.root, base.offset + at * base.strides[axis], base.strides};
          inPlace_.insert({&n, i});
        }
        at = at + part->type.dims[axis];
      }
    } else if (isViewOp(n) && n.op != "Slice" && n.op != "Split" && n.op != "Expand" && !reference_->count(&n)) {
      // A full view of a value whose memory is fixed already: let the producer write there.
      Value *v = n.inputs[0], *w = n.outputs[0];
      auto p = placement_.find(w);
      if (p != placement_.end()) {
        if (!movable(v)) continue;
        std::optional<Dims> s;
        if (n.op == "Transpose") {
          auto perm = n.getInts("perm");
          s = Dims(v->type.rank());
          for (size_t i = 0; i < v->type.rank(); i++) {
            size_t from = perm.empty() ? v->type.rank() - 1 - i : size_t(perm[i]);
            (*s)[from] = p->second.strides[i];
          }
        } else {
          s = reshapeStrides(w->type.dims, p->second.strides, v->type.dims);
        }
        if (s && keepsInnermost(v, *s)) placement_[v] = {p->second.root, p->second.offset, *s};
      } else if (n.op == "Transpose" && movable(v) && v->users.size() == 1 && v->type.layout.isRowMajor()) {
        // The only reader wants another axis order: write it so, and the transposed value is dense.
        auto k = knobsOf(n);
        bool on = k.getOr(knob::layout_sink_transpose, true);
        note(n, k);
        auto perm = n.getInts("perm");
        if (!on || perm.empty() || perm.back() != int64_t(perm.size()) - 1) continue;
        for (size_t i = 0; i < perm.size(); i++)
          v->type.layout.order.resize(perm.size()), v->type.layout.order[i] = uint8_t(perm[i]);
      }
    }
  }
}

std::optional<Placement> Storage::viewOf(const Node& n, size_t output) const {
  const Value *v = n.inputs[0], *w = n.outputs[output];
  const Placement& p = of(v);
  Placement r{p.root, p.offset, {}};
  if (n.op == "Transpose") {
    auto perm = n.getInts("perm");
    for (size_t i = 0; i < v->type.rank(); i++)
      r.strides.push_back(p.strides[perm.empty() ? v->type.rank() - 1 - i : size_t(perm[i])]);
    return r;
  }
  if (n.op == "Expand") {
    size_t skip = w->type.rank() - v->type.rank();
    for (size_t i = 0; i < w->type.rank(); i++)
      r.strides.push_back(i < skip || (v->type.dims[i - skip].is(1) && !w->type.dims[i].is(1)) ? Dim(0)
                                                                                               : p.strides[i - skip]);
    return r;
  }
  if (n.op == "Slice") {
    auto axes = sliceAxes(*graph_, n);
    for (size_t a = 0; a < axes.size(); a++) {
      r.offset = r.offset + axes[a].start * p.strides[a];
      r.strides.push_back(p.strides[a] * Dim(axes[a].step));
    }
    return r;
  }
  if (n.op == "Split") {
    int64_t axis = n.getInt("axis", 0);
    if (axis < 0) axis += int64_t(v->type.rank());
    for (size_t i = 0; i < output; i++) r.offset = r.offset + n.outputs[i]->type.dims[axis] * p.strides[axis];
    r.strides = p.strides;
    return r;
  }
  auto s = reshapeStrides(v->type.dims, p.strides, w->type.dims);
  if (!s) return std::nullopt;
  r.strides = *s;
  return r;
}

void Storage::placeForwards() {
  for (auto& v : graph_->values())
    if (v->constant || !v->producer) placement_.try_emplace(v.get(), Placement{v.get(), 0, v->type.strides()});
  for (auto& np : graph_->top().nodes) {
    Node& n = *np;
    bool view = isViewOp(n) && !reference_->count(&n);
    if (view) {
      bool all = true;
      for (size_t i = 0; i < n.outputs.size(); i++) {
        const Value* w = n.outputs[i];
        auto p = viewOf(n, i);
        if (auto fixed = placement_.find(w); fixed != placement_.end()) {
          // Free only if the input was written where the output lives.
          const Placement& f = fixed->second;
          bool same = p && p->root == f.root && p->offset == f.offset;
          for (size_t a = 0; same && a < f.strides.size(); a++)
            same = w->type.dims[a].is(1) || p->strides[a] == f.strides[a];
          all &= same;
        } else if (p) {
          placement_[w] = *p;
        } else {
          all = false;
        }
      }
      if (all) free_.insert(&n);
    }
    for (const Value* w : n.outputs)
      if (w) placement_.try_emplace(w, Placement{w, 0, w->type.strides()});
  }
}

}  // namespace rutter::codegen
