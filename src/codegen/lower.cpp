#include "codegen/lower.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "codegen/pointwise.h"

namespace rutter::codegen {

using ir::Dim;
using ir::Dims;
using ir::Node;
using ir::Value;

Dims ProblemBuilder::broadcastStrides(const Value* v, const Dims& over) const {
  const Placement& p = storage.of(v);
  const Dims& d = v->type.dims;
  RUTTER_CHECK(d.size() <= over.size(), "operand {} has rank {}, space {}", v->name, d.size(), ir::toString(over));
  Dims s(over.size(), Dim(0));
  for (size_t i = 0; i < d.size(); i++)
    if (!d[i].is(1)) s[over.size() - d.size() + i] = p.strides[i];
  return s;
}
void ProblemBuilder::anchor(const Value* v, Dims dims, Dims strides, Dim offset) {
  anchors.push_back({v, std::move(dims), std::move(strides), std::move(offset)});
}
void ProblemBuilder::anchor(const Value* v) {
  const Placement& p = storage.of(v);
  anchor(v, v->type.dims, p.strides, p.offset);
}

int ProblemBuilder::value(PwProgram& p, const Value* v, std::map<const Value*, int>& known, const Dims& over) {
  if (auto it = known.find(v); it != known.end()) return it->second;
  int r;
  if (v->constant && v->constant->size() == 1) {
    r = p.constant(v->type.dtype, v->constant->getDouble(0));
    if (!ir::isFloat(v->type.dtype)) p.code[r].immInt = v->constant->getInt(0);
  } else {
    Dims strides = broadcastStrides(v, over);
    std::string key = v->name;
    for (const Dim& d : strides) key += "," + d.text();
    auto [it, fresh] = loads_.try_emplace(key, int(inputs.size()));
    if (fresh) inputs.push_back({v, {}, strides, storage.of(v).offset});
    r = p.load(it->second, v->type.dtype);  // index among inputs: build() adds the anchors
  }
  known[v] = r;
  return r;
}
void ProblemBuilder::program(PwProgram& p, const std::vector<Node*>& nodes, std::map<const Value*, int>& known,
                             const Dims& over) {
  for (const Node* n : nodes) {
    std::vector<int> args;
    // Shape operands of Range and ConstantOfShape are not data.
    bool shapeOnly = n->op == "Range" || n->op == "ConstantOfShape" || n->op == "ShapeValue";
    bool castLike = n->op == "CastLike";
    for (size_t i = 0; i < n->inputs.size(); i++)
      args.push_back(!n->inputs[i] || shapeOnly || (castLike && i > 0) ? -1 : value(p, n->inputs[i], known, over));
    PwLowering low{p,
                   [&](const Dim& d) {
                     if (auto c = d.constant())
                       return p.add({PwOp::kConst, ir::DType::kI64, {-1, -1, -1}, double(*c), *c});
                     auto& list = ints["param"];
                     size_t at = std::find(list.begin(), list.end(), d) - list.begin();
                     if (at == list.size()) list.push_back(d);
                     return p.add({PwOp::kParam, ir::DType::kI64, {int(at), -1, -1}});
                   },
                   [&](size_t axis) { return p.add({PwOp::kIndex, ir::DType::kI64, {int(axis), -1, -1}}); }};
    known[n->outputs[0]] = lowerPointwise(low, *n, args);
  }
}
void ProblemBuilder::finishOutputs(PwProgram& p, const std::map<const Value*, int>& known) {
  for (const Value* v : group.outputs) {
    auto it = known.find(v);
    RUTTER_CHECK(it != known.end(), "output {} of {} is not computed", v->name, group.name);
    const Placement& pl = storage.of(v);
    Op o{v, {}, {}, pl.offset, true};
    Dims s = pl.strides;
    // Outputs of a reduction that dropped axes are aligned by lowerReduce itself.
    if (s.size() == space.size())
      o.strides = s;
    else
      o.strides = Dims(space.size(), Dim(0));
    outs.push_back(std::move(o));
    p.outputs.push_back(it->second);
  }
}

void ProblemBuilder::normalise(const Dims& orderBy, size_t keepFrom) {
  std::vector<Op*> all;
  for (auto* list : {&inputs, &outs})
    for (Op& o : *list) all.push_back(&o);
  size_t rank = space.size();
  auto indexed = [&](int axis) {
    for (PwProgram* p : {&prologue, &epilogue})
      for (PwInstr& i : p->code)
        if (i.op == PwOp::kIndex && i.args[0] == axis) return true;
    return false;
  };
  auto windowed = [&](size_t axis) {
    for (Op* o : all)
      if (!o->lo.empty() && !(o->lo[axis].is(0) && o->hi[axis] == space[axis])) return true;
    return false;
  };
  auto rebuild = [&](const std::vector<size_t>& perm) {  // new axis i is old axis perm[i]
    auto pick = [&](Dims& d) {
      if (d.empty()) return;
      Dims r;
      for (size_t a : perm) r.push_back(d[a]);
      d = r;
    };
    pick(space);
    for (Op* o : all) {
      pick(o->strides);
      pick(o->lo);
      pick(o->hi);
    }
    if (!reduced.empty()) {
      std::vector<int> r;
      for (size_t a : perm) r.push_back(reduced[a]);
      reduced = r;
    }
    for (PwProgram* p : {&prologue, &epilogue})
      for (PwInstr& i : p->code)
        if (i.op == PwOp::kIndex)
          i.args[0] = int(std::find(perm.begin(), perm.end(), size_t(i.args[0])) - perm.begin());
  };
  // Order by stride where the kind leaves the order free.
  std::vector<size_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::vector<int64_t> weight(rank);
  for (size_t a = 0; a < rank; a++) weight[a] = std::abs(orderBy[a].optimum(graph.symbols));
  if (keepFrom == 0) {
    // Broadcast axes of the ordering operand keep their places; the others are sorted among theirs.
    std::vector<size_t> places;
    for (size_t a = 0; a < rank; a++)
      if (weight[a] > 0) places.push_back(a);
    std::vector<size_t> sorted = places;
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t x, size_t y) { return weight[x] > weight[y]; });
    for (size_t i = 0; i < places.size(); i++) perm[places[i]] = sorted[i];
    rebuild(perm);
  }
  // Drop extents of one.
  perm.clear();
  for (size_t a = 0; a < space.size(); a++)
    if (!space[a].is(1) || indexed(int(a)) || windowed(a)) perm.push_back(a);
  if (perm.empty() && !space.empty()) perm.push_back(space.size() - 1);
  rebuild(perm);
  // Merge neighbours.
  for (size_t a = space.size(); a-- > 1;) {
    size_t x = a - 1;
    if (indexed(int(x)) || indexed(int(a)) || windowed(x) || windowed(a)) continue;
    if (!reduced.empty() && reduced[x] != reduced[a]) continue;
    bool ok = true;
    for (Op* o : all) ok &= o->strides[x] == o->strides[a] * space[a];
    if (!ok) continue;
    space[x] = space[x] * space[a];
    std::vector<size_t> keep;
    for (size_t i = 0; i < space.size(); i++)
      if (i != a) keep.push_back(i);
    for (Op* o : all) {
      o->strides[x] = o->strides[a];
      if (!o->hi.empty()) o->hi[x] = space[x];
    }
    rebuild(keep);
  }
}

namespace {
// Any machine can copy 16 bits, not any can convert halves: what only moves them needs no conversion.
void moveHalvesAsIntegers(Problem& p) {
  auto half = [](ir::DType t) { return t == ir::DType::kF16 || t == ir::DType::kBF16; };
  bool moves = p.kind == ProblemKind::kLoop;
  for (const PwInstr& i : p.epilogue.code) moves &= i.op == PwOp::kLoad && half(i.type);
  for (const Operand& o : p.operands) moves &= half(o.dtype) && o.fill == 0;
  if (!moves) return;
  for (PwInstr& i : p.epilogue.code) i.type = ir::DType::kU16;
  for (Operand& o : p.operands) o.dtype = ir::DType::kU16;
}
}  // namespace

LoweredGroup ProblemBuilder::build() {
  LoweredGroup r;
  Problem& p = r.problem;
  std::map<std::string, int> index;
  auto k = [&](const Dim& d) -> KDim {
    if (auto c = d.constant()) return KDim(*c);
    auto [it, fresh] = index.try_emplace(d.text(), int(r.params.size()));
    if (fresh) {
      auto range = d.range(graph.symbols);
      p.params.push_back({range.first, range.second, d.optimum(graph.symbols), d.divisor()});
      r.params.push_back(d);
    }
    return KDim::parameter(it->second);
  };
  auto ks = [&](const Dims& v) {
    std::vector<KDim> out;
    for (const Dim& d : v) out.push_back(k(d));
    return out;
  };
  p.kind = kind;
  p.space = ks(space);
  for (auto& [name, v] : ints) p.ints[name] = ks(v);
  if (!reduced.empty())
    for (int f : reduced) p.ints["reduced"].push_back(KDim(f));
  p.words = words;
  p.reals = reals;
  p.anchors = int(anchors.size());
  for (auto* list : {&anchors, &inputs, &outs})
    for (Op& o : *list) {
      Operand q;
      q.dtype = o.value->type.dtype;
      q.dims = ks(o.dims);
      q.strides = ks(o.strides);
      q.output = o.output;
      q.constant = o.value->isConstant();
      q.lo = ks(o.lo);
      q.hi = ks(o.hi);
      q.fill = o.fill;
      p.operands.push_back(std::move(q));
      const Placement& pl = storage.of(o.value);
      r.operands.push_back({pl.root, o.value, o.offset});
    }
  for (PwProgram* src : {&prologue, &epilogue})
    for (PwInstr& i : src->code)
      if (i.op == PwOp::kLoad) i.args[0] += int(anchors.size());
  p.prologue = prologue;
  p.epilogue = epilogue;
  moveHalvesAsIntegers(p);
  return r;
}

void lowerLoop(ProblemBuilder& b) {
  b.kind = ProblemKind::kLoop;
  const Group& gr = b.group;
  if (gr.kind == GroupKind::kCopyPart) {
    const Node& n = *gr.nodes[0];
    const Value *part = n.inputs[gr.part], *out = n.outputs[0];
    int64_t axis = n.getInt("axis", 0);
    if (axis < 0) axis += int64_t(out->type.rank());
    Dim at(0);
    for (size_t i = 0; i < gr.part; i++) at = at + n.inputs[i]->type.dims[axis];
    const Placement& p = b.storage.of(out);
    b.space = part->type.dims;
    std::map<const Value*, int> known;
    int x = b.value(b.epilogue, part, known, b.space);
    b.outs.push_back({out, {}, p.strides, p.offset + at * p.strides[axis], true});
    b.epilogue.outputs = {x};
  } else if (gr.kind == GroupKind::kCopy) {
    // The output seen with the input's extents where that is a reshape, else the input seen as the output.
    const Node& n = *gr.nodes[0];
    Value* in = n.inputs[0];
    for (const Value* out : n.outputs) {
      if (!out || n.outputs.size() > 1) throw LowerRefusal{"a Split that cannot be a view"};
    }
    const Value* out = n.outputs[0];
    const Placement &pi = b.storage.of(in), &po = b.storage.of(out);
    Dims strides;
    Dim offset = pi.offset;
    b.space = out->type.dims;
    Dims outStrides = po.strides;
    if (n.op == "Transpose") {
      auto perm = n.getInts("perm");
      for (size_t i = 0; i < b.space.size(); i++)
        strides.push_back(pi.strides[perm.empty() ? b.space.size() - 1 - i : size_t(perm[i])]);
    } else if (n.op == "Expand") {
      strides = b.broadcastStrides(in, b.space);
    } else if (n.op == "Slice") {
      auto axes = sliceAxes(b.graph, n);
      for (size_t a = 0; a < axes.size(); a++) {
        offset = offset + axes[a].start * pi.strides[a];
        strides.push_back(pi.strides[a] * Dim(axes[a].step));
      }
    } else {
      auto s = reshapeStrides(out->type.dims, po.strides, in->type.dims);
      if (s) {
        b.space = in->type.dims;
        strides = pi.strides;
        outStrides = *s;
      } else {
        auto q = reshapeStrides(in->type.dims, pi.strides, out->type.dims);
        if (!q) throw LowerRefusal{"a Reshape between two strided tensors"};
        strides = *q;
      }
    }
    b.inputs.push_back({in, {}, strides, offset});
    b.outs.push_back({out, {}, outStrides, po.offset, true});
    b.epilogue.outputs = {b.epilogue.load(0, in->type.dtype)};
  } else {
    b.space = gr.nodes.front()->outputs[0]->type.dims;
    std::map<const Value*, int> known;
    b.program(b.epilogue, gr.nodes, known, b.space);
    b.finishOutputs(b.epilogue, known);
  }
  if (b.space.empty()) {
    b.space = {Dim(1)};
    for (auto* list : {&b.inputs, &b.outs})
      for (auto& o : *list) o.strides = {Dim(0)};
  }
  b.normalise(b.outs[0].strides);
}

LoweredGroup lowerGroup(const ir::Graph& g, const Group& group, const Storage& storage) {
  ProblemBuilder b(g, group, storage);
  if (!group.anchor) {
    lowerLoop(b);
    return b.build();
  }
  static const std::map<std::string, void (*)(ProblemBuilder&)> table = {{"MatMul", lowerGemm},
                                                                         {"Gemm", lowerGemm},
                                                                         {"Conv", lowerConv},
                                                                         {"ConvTranspose", lowerConv},
                                                                         {"MaxPool", lowerPool},
                                                                         {"AveragePool", lowerPool},
                                                                         {"Softmax", lowerRow},
                                                                         {"LogSoftmax", lowerRow},
                                                                         {"LayerNormalization", lowerRow},
                                                                         {"RMSNormalization", lowerRow},
                                                                         {"Resize", lowerResize},
                                                                         {"Gather", lowerGather},
                                                                         {"Pad", lowerPad},
                                                                         {"Tile", lowerTile}};
  auto it = table.find(group.anchor->op);
  if (it != table.end())
    it->second(b);
  else
    lowerReduce(b);
  return b.build();
}

}  // namespace rutter::codegen
