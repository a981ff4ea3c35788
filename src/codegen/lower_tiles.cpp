// Matrix products, convolutions, poolings, resize, gather, pad, tile.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "codegen/lower.h"
#include "codegen/pointwise.h"

namespace rutter::codegen {
namespace {
using ir::Dim;
using ir::Dims;
using ir::Node;
using ir::Value;

// The anchor's result enters the epilogue; the group's outputs leave it.
void epilogueFromAcc(ProblemBuilder& b, int acc) {
  std::map<const Value*, int> known;
  known[b.group.anchor->outputs[0]] = acc;
  b.program(b.epilogue, b.group.nodes, known, b.space);
  b.finishOutputs(b.epilogue, known);
}
Dims intsOf(const std::vector<int64_t>& v) {
  return ir::toDims(v);
}
}  // namespace

void lowerGemm(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kGemm;
  const Value *A = n.inputs[0], *B = n.inputs[1], *Y = n.outputs[0];
  Placement pa = b.storage.of(A), pb = b.storage.of(B);
  Dims da = A->type.dims, db = B->type.dims, sa = pa.strides, sb = pb.strides;
  b.space = Y->type.dims;
  ir::DType t = Y->type.dtype;
  bool vecA = da.size() == 1, vecB = db.size() == 1;
  if (n.op == "Gemm") {
    if (n.getInt("transA", 0)) std::swap(da[0], da[1]), std::swap(sa[0], sa[1]);
    if (n.getInt("transB", 0)) std::swap(db[0], db[1]), std::swap(sb[0], sb[1]);
  }
  if (vecA) da.insert(da.begin(), Dim(1)), sa.insert(sa.begin(), Dim(0));
  if (vecB) db.push_back(Dim(1)), sb.push_back(Dim(0));
  int acc = b.epilogue.add({PwOp::kAcc, t});
  if (n.op == "Gemm") {
    float alpha = n.getFloat("alpha", 1), beta = n.getFloat("beta", 1);
    if (alpha != 1) acc = b.epilogue.binary(PwOp::kMul, t, acc, b.epilogue.constant(t, alpha));
    if (n.input(2) && beta != 0) {
      std::map<const Value*, int> none;
      int c = b.value(b.epilogue, n.inputs[2], none, b.space);
      if (beta != 1) c = b.epilogue.binary(PwOp::kMul, t, c, b.epilogue.constant(t, beta));
      acc = b.epilogue.binary(PwOp::kAdd, t, acc, c);
    }
  }
  epilogueFromAcc(b, acc);
  // Vectors as matrices: the space gets the axis of extent one back.
  auto insertAxis = [&](size_t at) {
    b.space.insert(b.space.begin() + at, Dim(1));
    for (auto* list : {&b.inputs, &b.outs})
      for (auto& o : *list) o.strides.insert(o.strides.begin() + at, Dim(0));
  };
  if (vecB) insertAxis(b.space.size());
  if (vecA) insertAxis(b.space.size() - 1);
  // Batch axes of both operands against those of the result.
  size_t batch = b.space.size() - 2;
  auto align = [&](Dims& d, Dims& s) {
    Dims nd(batch, Dim(1)), ns(batch, Dim(0));
    size_t own = d.size() - 2;
    for (size_t i = 0; i < own; i++) {
      nd[batch - own + i] = d[i];
      if (!d[i].is(1)) ns[batch - own + i] = s[i];
    }
    nd.insert(nd.end(), d.end() - 2, d.end());
    ns.insert(ns.end(), s.end() - 2, s.end());
    d = nd, s = ns;
  };
  align(da, sa);
  align(db, sb);
  // Fold batch axes into rows where B is the same for all of them and everything else strides evenly; drop and merge
  // others.
  auto erase = [&](size_t a) {
    auto cut = [&](Dims& d) { d.erase(d.begin() + a); };
    cut(b.space), cut(da), cut(sa), cut(db), cut(sb);
    for (auto* list : {&b.inputs, &b.outs})
      for (auto& o : *list) cut(o.strides);
    batch--;
  };
  for (size_t a = batch; a-- > 0;)
    if (b.space[a].is(1)) erase(a);
  for (size_t a = batch; a-- > 0;) {
    size_t x = a + 1;  // the axis to merge into: another batch axis or m
    bool rows = x == batch;
    bool ok = sa[a] == sa[x] * da[x] || (da[x].is(1) && rows);
    ok &= rows ? sb[a].is(0) : (sb[a] == sb[x] * b.space[x]);
    for (auto* list : {&b.inputs, &b.outs})
      for (auto& o : *list) ok &= o.strides[a] == o.strides[x] * b.space[x] || (rows && b.space[x].is(1));
    if (rows && b.space[x].is(1) && ok) {  // one row a batch: its stride is the batch's
      sa[x] = sa[a];
      for (auto* list : {&b.inputs, &b.outs})
        for (auto& o : *list) o.strides[x] = o.strides[a];
    }
    if (!ok) {
      if (rows) break;
      continue;
    }
    b.space[x] = b.space[x] * b.space[a];
    da[x] = rows ? b.space[x] : da[x] * da[a];
    if (!rows) db[x] = db[x] * db[a];
    erase(a);
  }
  b.anchor(A, da, sa, pa.offset);
  b.anchor(B, db, sb, pb.offset);
}

void lowerConv(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  bool transposed = n.op == "ConvTranspose";
  b.kind = transposed ? ProblemKind::kDeconv : ProblemKind::kConv;
  const Value *X = n.inputs[0], *W = n.inputs[1], *Y = n.outputs[0];
  size_t spatial = X->type.rank() - 2;
  b.space = Y->type.dims;
  auto attr = [&](const char* name, int64_t fallback) {
    return n.getInts(name, std::vector<int64_t>(spatial, fallback));
  };
  auto stride = attr("strides", 1), dilation = attr("dilations", 1);
  Dims kernel(W->type.dims.begin() + 2, W->type.dims.end());
  b.ints["kernel"] = kernel;
  b.ints["strides"] = intsOf(stride);
  b.ints["dilations"] = intsOf(dilation);
  b.ints["groups"] = {Dim(n.getInt("group", 1))};
  Dims pads = intsOf(n.getInts("pads", std::vector<int64_t>(2 * spatial, 0)));
  std::string autoPad = n.getString("auto_pad", "NOTSET");
  if (autoPad == "VALID") pads.assign(2 * spatial, Dim(0));
  // Padding that follows from the extents: SAME_*, or an explicit output shape of a transposed convolution.
  bool derived = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER" || (transposed && n.has("output_shape"));
  for (size_t i = 0; derived && i < spatial; i++) {
    Dim in = X->type.dims[2 + i], out = Y->type.dims[2 + i], reach = (kernel[i] - Dim(1)) * Dim(dilation[i]) + Dim(1);
    Dim total =
        transposed ? (in - Dim(1)) * Dim(stride[i]) + reach - out : (out - Dim(1)) * Dim(stride[i]) + reach - in;
    if (transposed) total = total + Dim(n.getInts("output_padding", std::vector<int64_t>(spatial, 0))[i]);
    total = max(total, Dim(0));
    Dim small = floorDiv(total, Dim(2)), big = total - small;
    bool upper = autoPad == "SAME_UPPER";
    if (transposed && autoPad != "SAME_UPPER") upper = false;
    pads[i] = upper ? small : big;
    pads[spatial + i] = upper ? big : small;
  }
  b.ints["pads"] = pads;
  int acc = b.epilogue.add({PwOp::kAcc, Y->type.dtype});
  if (n.input(2)) {  // bias [oc], along axis 1
    Dims s(b.space.size(), Dim(0));
    s[1] = b.storage.of(n.inputs[2]).strides[0];
    b.inputs.push_back({n.inputs[2], {}, s, b.storage.of(n.inputs[2]).offset});
    acc = b.epilogue.binary(PwOp::kAdd, Y->type.dtype, acc, b.epilogue.load(0, n.inputs[2]->type.dtype));
  }
  epilogueFromAcc(b, acc);
  b.anchor(X);
  b.anchor(W);
}

void lowerPool(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kPool;
  const Value *X = n.inputs[0], *Y = n.outputs[0];
  for (size_t i = 1; i < n.outputs.size(); i++)
    if (n.outputs[i]) throw LowerRefusal{"indices of a MaxPool"};
  size_t spatial = X->type.rank() - 2;
  b.space = Y->type.dims;
  b.words["op"] = n.op == "MaxPool" ? "max" : "average";
  auto kernel = n.getInts("kernel_shape");
  auto stride = n.getInts("strides", std::vector<int64_t>(spatial, 1));
  auto dilation = n.getInts("dilations", std::vector<int64_t>(spatial, 1));
  Dims pads = intsOf(n.getInts("pads", std::vector<int64_t>(2 * spatial, 0)));
  std::string autoPad = n.getString("auto_pad", "NOTSET");
  for (size_t i = 0; i < spatial && autoPad != "NOTSET"; i++) {
    Dim total(0);
    if (autoPad != "VALID")
      total = max((Y->type.dims[2 + i] - Dim(1)) * Dim(stride[i]) + Dim((kernel[i] - 1) * dilation[i] + 1) -
                      X->type.dims[2 + i],
                  Dim(0));
    Dim small = floorDiv(total, Dim(2)), big = total - small;
    pads[i] = autoPad == "SAME_UPPER" ? small : big;
    pads[spatial + i] = autoPad == "SAME_UPPER" ? big : small;
  }
  b.ints["kernel"] = intsOf(kernel);
  b.ints["strides"] = intsOf(stride);
  b.ints["dilations"] = intsOf(dilation);
  b.ints["pads"] = pads;
  b.ints["include_pad"] = {Dim(n.getInt("count_include_pad", 0))};
  epilogueFromAcc(b, b.epilogue.add({PwOp::kAcc, Y->type.dtype}));
  b.anchor(X);
}

namespace {
// Nearest neighbour by whole factors repeats elements: a copy whose output axes are cut in two, the inner one read with
// stride 0. Source index floor(x / factor) is what asymmetric + floor means, and what half_pixel means with either
// rounding.
bool repeatRows(ProblemBuilder& b, const Value* X) {
  const std::string &c = b.words["coordinates"], &r = b.words["nearest_mode"];
  bool floors = (c == "asymmetric" && r == "floor") ||
                ((c == "half_pixel" || c == "pytorch_half_pixel") && r.rfind("round_prefer", 0) == 0);
  if (!floors || !b.group.nodes.empty()) return false;
  const Value* Y = b.group.anchor->outputs[0];
  const Placement &px = b.storage.of(X), &py = b.storage.of(Y);
  Dims space, in, out;
  for (size_t a = 0; a < X->type.rank(); a++) {
    auto it = b.reals.find("scale" + std::to_string(a));
    double scale = it == b.reals.end() ? 1 : it->second;
    int64_t factor = int64_t(scale);
    if (scale != double(factor) || factor < 1 || !(Y->type.dims[a] == X->type.dims[a] * Dim(factor))) return false;
    space.insert(space.end(), {X->type.dims[a], Dim(factor)});
    in.insert(in.end(), {px.strides[a], Dim(0)});
    out.insert(out.end(), {py.strides[a] * Dim(factor), py.strides[a]});
  }
  b.kind = ProblemKind::kLoop;
  b.words.clear();
  b.reals.clear();
  b.space = space;
  b.inputs.push_back({X, {}, in, px.offset});
  b.outs.push_back({Y, {}, out, py.offset, true});
  b.epilogue.outputs = {b.epilogue.load(0, X->type.dtype)};
  b.normalise(b.outs[0].strides);
  return true;
}
}  // namespace

void lowerResize(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kResize;
  const Value *X = n.inputs[0], *Y = n.outputs[0];
  if (n.getInt("antialias", 0)) throw LowerRefusal{"antialias"};
  if (n.getInt("exclude_outside", 0)) throw LowerRefusal{"exclude_outside"};
  b.space = Y->type.dims;
  b.words["mode"] = n.getString("mode", "nearest");
  b.words["coordinates"] = n.getString("coordinate_transformation_mode", "half_pixel");
  b.words["nearest_mode"] = n.getString("nearest_mode", "round_prefer_floor");
  if (b.words["coordinates"] == "tf_crop_and_resize") throw LowerRefusal{"tf_crop_and_resize"};
  b.reals["cubic_a"] = n.getFloat("cubic_coeff_a", -0.75f);
  const Value* scales = n.input(2);
  bool bySize = n.input(3) != nullptr;
  std::vector<int64_t> axes = n.getInts("axes");
  if (axes.empty())
    for (size_t a = 0; a < X->type.rank(); a++) axes.push_back(int64_t(a));
  if (bySize && n.getString("keep_aspect_ratio_policy", "stretch") != "stretch")
    throw LowerRefusal{"keep_aspect_ratio_policy"};
  for (size_t i = 0; i < axes.size(); i++) {
    size_t a = size_t(axes[i] < 0 ? axes[i] + int64_t(X->type.rank()) : axes[i]);
    double scale;
    if (!bySize) {
      if (!scales || !scales->constant) throw LowerRefusal{"scales are computed at run time"};
      scale = scales->constant->getDouble(int64_t(i));
    } else {
      auto in = X->type.dims[a].constant(), out = Y->type.dims[a].constant();
      if (X->type.dims[a] == Y->type.dims[a]) continue;
      if (in && out) {
        scale = double(*out) / double(*in);
      } else {  // a constant ratio of two expressions
        auto q = exactDiv(Y->type.dims[a], X->type.dims[a]);
        if (!q || !q->isConstant()) throw LowerRefusal{"the ratio of sizes varies with the input's shape"};
        scale = double(q->value());
      }
    }
    if (scale != 1) b.reals["scale" + std::to_string(a)] = scale;
  }
  if (b.words["mode"] == "nearest" && repeatRows(b, X)) return;
  epilogueFromAcc(b, b.epilogue.add({PwOp::kAcc, Y->type.dtype}));
  b.anchor(X);
}

void lowerGather(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kGather;
  int64_t axis = n.getInt("axis", 0);
  b.ints["axis"] = {Dim(axis < 0 ? axis + int64_t(n.inputs[0]->type.rank()) : axis)};
  b.space = n.outputs[0]->type.dims;
  epilogueFromAcc(b, b.epilogue.add({PwOp::kAcc, n.outputs[0]->type.dtype}));
  b.anchor(n.inputs[0]);
  b.anchor(n.inputs[1]);
}

void lowerPad(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kLoop;
  if (n.getString("mode", "constant") != "constant") throw LowerRefusal{"mode " + n.getString("mode", "constant")};
  const Value *X = n.inputs[0], *Y = n.outputs[0];
  b.space = Y->type.dims;
  size_t rank = b.space.size();
  auto list = [&](const Value* v) -> Dims {
    if (v->symbolic) return *v->symbolic;
    if (v->constant) return ir::toDims(v->constant->toInts());
    throw LowerRefusal{"pads are computed at run time"};
  };
  Dims pads = list(n.inputs[1]), axes;
  if (n.input(3))
    axes = list(n.inputs[3]);
  else
    for (size_t a = 0; a < rank; a++) axes.push_back(Dim(int64_t(a)));
  Dims lo(rank, Dim(0)), hi = b.space;
  for (size_t i = 0; i < axes.size(); i++) {
    int64_t a = axes[i].value();
    if (a < 0) a += int64_t(rank);
    lo[a] = pads[i];
    hi[a] = pads[i] + X->type.dims[a];
    if (pads[i].range(b.graph.symbols).first < 0 || pads[axes.size() + i].range(b.graph.symbols).first < 0)
      throw LowerRefusal{"negative pads"};
  }
  double fill = 0;
  if (n.input(2)) {
    if (!n.inputs[2]->constant) throw LowerRefusal{"the fill value is computed at run time"};
    const ir::Tensor& t = *n.inputs[2]->constant;
    fill = t.getDouble(0);
    if (ir::bitsOf(t.dtype()) == 64 && ir::isInteger(t.dtype()) && std::abs(fill) > 0x1p53)
      throw LowerRefusal{"a fill value beyond 2^53"};
  }
  const Placement& p = b.storage.of(X);
  b.inputs.push_back({X, {}, p.strides, p.offset, false, lo, hi, fill});
  epilogueFromAcc(b, b.epilogue.load(0, X->type.dtype));
  b.normalise(b.outs[0].strides);
}

// Repeats: each axis d becomes (repeats, d), the first with stride 0 in the input.
void lowerTile(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kLoop;
  const Value* X = n.inputs[0];
  if (!b.group.nodes.empty()) throw LowerRefusal{"an epilogue of Tile"};
  const Placement &px = b.storage.of(X), &py = b.storage.of(n.outputs[0]);
  Dims in, out;
  for (size_t a = 0; a < X->type.rank(); a++) {
    auto r = exactDiv(n.outputs[0]->type.dims[a], X->type.dims[a]);
    if (!r) throw LowerRefusal{"repeats are computed at run time"};
    b.space.insert(b.space.end(), {*r, X->type.dims[a]});
    in.insert(in.end(), {Dim(0), px.strides[a]});
    out.insert(out.end(), {py.strides[a] * X->type.dims[a], py.strides[a]});
  }
  b.inputs.push_back({X, {}, in, px.offset});
  b.outs.push_back({n.outputs[0], {}, out, py.offset, true});
  b.epilogue.outputs = {b.epilogue.load(0, X->type.dtype)};
  b.normalise(b.outs[0].strides);
}

}  // namespace rutter::codegen
