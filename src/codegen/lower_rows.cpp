// Reductions, softmax and normalisations.
#include <algorithm>

#include "base/error.h"
#include "codegen/lower.h"
#include "codegen/pointwise.h"

namespace rutter::codegen {
namespace {
using ir::Dim;
using ir::Dims;
using ir::Node;
using ir::Value;

size_t positive(int64_t a, size_t rank) {
  return size_t(a < 0 ? a + int64_t(rank) : a);
}

// The reduced axes of a node: attribute, second input, or all; global pools reduce the spatial axes.
std::vector<int> reducedAxes(const Node& n) {
  size_t rank = n.inputs[0]->type.rank();
  std::vector<int> f(rank, 0);
  if (n.op.rfind("Global", 0) == 0) {
    for (size_t a = 2; a < rank; a++) f[a] = 1;
    return f;
  }
  if (n.op == "ArgMax" || n.op == "ArgMin") {
    f[positive(n.getInt("axis", 0), rank)] = 1;
    return f;
  }
  std::vector<int64_t> axes = n.getInts("axes");
  if (const Value* v = n.input(1)) {
    if (v->constant)
      axes = v->constant->toInts();
    else if (v->symbolic)
      for (const Dim& d : *v->symbolic) axes.push_back(d.value());
    else
      throw LowerRefusal{"axes are computed at run time"};
  }
  if (axes.empty() && n.getInt("noop_with_empty_axes", 0)) return f;
  if (axes.empty()) std::fill(f.begin(), f.end(), 1);
  for (int64_t a : axes) f[positive(a, rank)] = 1;
  return f;
}
}  // namespace

void lowerReduce(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kReduce;
  static const std::map<std::string, std::string> words = {
      {"ReduceSum", "sum"},    {"ReduceMean", "mean"}, {"ReduceMax", "max"},
      {"ReduceMin", "min"},    {"ReduceProd", "prod"}, {"ReduceSumSquare", "sumsq"},
      {"ReduceL1", "l1"},      {"ReduceL2", "l2"},     {"ReduceLogSumExp", "logsumexp"},
      {"ArgMax", "argmax"},    {"ArgMin", "argmin"},   {"GlobalAveragePool", "mean"},
      {"GlobalMaxPool", "max"}};
  auto it = words.find(n.op);
  RUTTER_CHECK(it != words.end(), "no reduction for {}", n.op);
  if (n.getInt("select_last_index", 0)) throw LowerRefusal{"select_last_index"};
  b.words["op"] = it->second;
  const Value* x = n.inputs[0];
  b.space = x->type.dims;
  b.reduced = reducedAxes(n);
  std::map<const Value*, int> known;
  b.program(b.prologue, b.group.prologue, known, b.space);
  b.prologue.outputs = {b.value(b.prologue, x, known, b.space)};
  // The epilogue runs on reduced points: its operands see the result's axes spread over the full space.
  const Dims& rd = n.outputs[0]->type.dims;
  bool keep = rd.size() == b.space.size();
  std::map<const Value*, int> after;
  after[n.outputs[0]] = b.epilogue.add({PwOp::kAcc, n.outputs[0]->type.dtype});
  size_t firstOperand = b.inputs.size();
  b.program(b.epilogue, b.group.nodes, after, rd);
  Dims full = b.space;
  auto spread = [&](Dims& s) {
    Dims r(full.size(), Dim(0));
    size_t j = 0;
    for (size_t a = 0; a < full.size(); a++) {
      if (b.reduced[a]) {
        if (keep) j++;
      } else {
        r[a] = s[j++];
      }
    }
    s = r;
  };
  for (size_t i = firstOperand; i < b.inputs.size(); i++) spread(b.inputs[i].strides);
  for (const Value* v : b.group.outputs) {
    const Placement& p = b.storage.of(v);
    Dims s = p.strides;
    spread(s);
    b.outs.push_back({v, {}, s, p.offset, true});
    b.epilogue.outputs.push_back(after.at(v));
  }
  if (b.space.empty()) {
    b.space = {Dim(1)};
    b.reduced = {1};
    for (auto* list : {&b.inputs, &b.outs})
      for (auto& o : *list) o.strides = {Dim(0)};
  }
  b.normalise(b.inputs.empty() ? Dims(b.space.size(), Dim(0)) : b.inputs[0].strides);
}

void lowerRow(ProblemBuilder& b) {
  const Node& n = *b.group.anchor;
  b.kind = ProblemKind::kRow;
  const Value* x = n.inputs[0];
  size_t rank = x->type.rank();
  b.space = x->type.dims;
  b.reduced.assign(rank, 0);
  if (n.op == "Softmax" || n.op == "LogSoftmax") {
    b.words["op"] = n.op == "Softmax" ? "softmax" : "logsoftmax";
    b.reduced[positive(n.getInt("axis", -1), rank)] = 1;
  } else {
    b.words["op"] = n.op == "LayerNormalization" ? "layernorm" : "rmsnorm";
    b.reals["eps"] = n.getFloat("epsilon", 1e-5f);
    for (size_t a = positive(n.getInt("axis", -1), rank); a < rank; a++) b.reduced[a] = 1;
    for (size_t i = 1; i < n.outputs.size(); i++)
      if (n.outputs[i] && (!n.outputs[i]->users.empty() || b.graph.isOutput(n.outputs[i])))
        throw LowerRefusal{"mean or deviation is an output"};
  }
  std::map<const Value*, int> known;
  b.program(b.prologue, b.group.prologue, known, b.space);
  b.prologue.outputs = {b.value(b.prologue, x, known, b.space)};
  std::map<const Value*, int> after;
  ir::DType t = n.outputs[0]->type.dtype;
  int y = b.epilogue.add({PwOp::kAcc, t});
  if (n.op == "LayerNormalization" || n.op == "RMSNormalization") {
    y = b.epilogue.binary(PwOp::kMul, t, y, b.value(b.epilogue, n.inputs[1], after, b.space));
    if (n.input(2)) y = b.epilogue.binary(PwOp::kAdd, t, y, b.value(b.epilogue, n.inputs[2], after, b.space));
  }
  after[n.outputs[0]] = y;
  b.program(b.epilogue, b.group.nodes, after, b.space);
  b.finishOutputs(b.epilogue, after);
  b.normalise(b.outs[0].strides);
}

}  // namespace rutter::codegen
