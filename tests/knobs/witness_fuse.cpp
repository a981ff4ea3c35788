// Fusion groups, the memory plan and the schedule.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "knobs/witness.h"

namespace rutter::test {
namespace fb = runtime::fb;
namespace {
using V = ir::Value*;
using Ints = std::vector<int64_t>;
using Effect = std::function<std::string(const Built&)>;

/// What the layer of an operator computes: "Conv+Relu".
Effect typeOf(const std::string& op) {
  return [op](const Built& b) { return b.layer(op).group.type; };
}
std::string layerCount(const Built& b) {
  return std::to_string(b.decided.decision.layers.size());
}
/// Offsets of the arena's tensors, in order of creation.
std::string offsets(const Built& b) {
  std::vector<int64_t> at;
  for (const auto& u : b.plan().buffers)
    if (u->place == fb::Place::Arena) at.push_back(u->offset);
  return fmt::format("{}", fmt::join(at, ","));
}
std::string arenaBytes(const Built& b) {
  return std::to_string(b.plan().arena_bytes);
}
Effect launchField(const std::string& op, int64_t (*field)(const fb::LaunchT&)) {
  return [op, field](const Built& b) { return std::to_string(field(*b.launches(op).at(0))); };
}

V image(Net& n, const char* name = "x") {
  return n.input(name, {1, 8, 6, 6});
}
V conv(Net& n, V x, int64_t k = 3) {
  return n.op("Conv", {x, n.random({8, 8, k, k})}, {{"pads", Ints(4, k / 2)}});
}
V product(Net& n, V x, int64_t columns) {
  return n.op("MatMul", {x, n.random({x->type.dims.back().value(), columns})});
}
/// Keeps a convolution's result inside the network, where its layout is free.
void inner(Net& n, V x) {
  n.output(conv(n, x, 1));
}
/// Two products in a row with results of 1024 and 1280 bytes in the arena, alive at the same time.
void twoTensors(Net& n) {
  n.output(product(n, product(n, product(n, n.input("x", {16, 16}), 16), 20), 16));
}
}  // namespace

std::vector<Witness> fuseWitnesses() {
  std::vector<Witness> w;
  auto fuse = [&](const char* knob, std::function<void(Net&)> model, const char* op, const char* together,
                  const char* alone) { w.push_back({knob, "on", "off", model, typeOf(op), together, alone}); };
  fuse(
      "-fuse:conv_activation", [](Net& n) { inner(n, n.op("Tanh", {conv(n, image(n))})); }, "Conv", "Conv+Tanh",
      "Conv");
  fuse(
      "-fuse:conv_bias", [](Net& n) { inner(n, n.op("Add", {conv(n, image(n)), n.input("b", {8, 1, 1})})); }, "Conv",
      "Conv+Add", "Conv");
  fuse(
      "-fuse:conv_residual", [](Net& n) { inner(n, n.op("Add", {conv(n, image(n)), image(n, "y")})); }, "Conv",
      "Conv+Add", "Conv");
  fuse(
      "-fuse:gemm_activation", [](Net& n) { n.output(n.op("Tanh", {product(n, n.input("x", {5, 8}), 12)})); }, "MatMul",
      "MatMul+Tanh", "MatMul");
  fuse(
      "-fuse:gemm_bias",
      [](Net& n) { n.output(n.op("Add", {product(n, n.input("x", {5, 8}), 12), n.input("b", {12})})); }, "MatMul",
      "MatMul+Add", "MatMul");
  fuse(
      "-fuse:gemm_residual",
      [](Net& n) { n.output(n.op("Add", {product(n, n.input("x", {5, 8}), 12), n.input("b", {5, 12})})); }, "MatMul",
      "MatMul+Add", "MatMul");
  fuse(
      "-fuse:pointwise", [](Net& n) { n.output(n.op("Tanh", {n.op("Exp", {n.input("x", {5, 7})})})); }, "Exp",
      "Exp+Tanh", "Exp");
  auto reduced = [](Net& n, V x) { return n.op("ReduceSum", {x, n.ints({1})}); };
  fuse(
      "-fuse:reduce_prologue", [=](Net& n) { n.output(reduced(n, n.op("Tanh", {n.input("x", {5, 40})}))); },
      "ReduceSum", "Tanh+ReduceSum", "ReduceSum");
  fuse(
      "-fuse:reduce_epilogue", [=](Net& n) { n.output(n.op("Tanh", {reduced(n, n.input("x", {5, 40}))})); },
      "ReduceSum", "ReduceSum+Tanh", "ReduceSum");
  fuse(
      "-fuse:row_prologue", [](Net& n) { n.output(n.op("Softmax", {n.op("Tanh", {n.input("x", {5, 40})})})); },
      "Softmax", "Tanh+Softmax", "Softmax");
  fuse(
      "-fuse:row_epilogue", [](Net& n) { n.output(n.op("Tanh", {n.op("Softmax", {n.input("x", {5, 40})})})); },
      "Softmax", "Softmax+Tanh", "Softmax");
  fuse(
      "-fuse:pool_epilogue",
      [](Net& n) { n.output(n.op("Tanh", {n.op("MaxPool", {image(n)}, {{"kernel_shape", Ints{2, 2}}})})); }, "MaxPool",
      "MaxPool+Tanh", "MaxPool");
  w.push_back({"-fuse:max_nodes", "64", "2",
               [](Net& n) {
                 V x = n.input("x", {5, 7});
                 for (const char* op : {"Exp", "Neg", "Tanh", "Sin"}) x = n.op(op, {x});
                 n.output(x);
               },
               layerCount, "1", "2"});
  w.push_back({"-fuse:max_outputs", "4", "1",
               [](Net& n) {
                 V e = n.op("Exp", {n.input("x", {5, 7})});
                 n.output(n.op("Tanh", {e}));
                 n.output(n.op("Sin", {e}));
               },
               layerCount, "1", "3"});
  // A view between a product and its reader.
  w.push_back({"-layout:sink_transpose", "on", "off",
               [](Net& n) {
                 V t = n.op("Transpose", {n.op("Exp", {n.input("x", {6, 5, 8})})}, {{"perm", Ints{1, 0, 2}}});
                 n.output(product(n, t, 12));
               },
               [](const Built& b) {
                 const auto& p = b.layer("Exp").lowered.problem;
                 std::vector<int64_t> s;
                 for (const auto& d : p.operands.at(size_t(p.firstOutput())).strides) s.push_back(d.value);
                 return fmt::format("{}", fmt::join(s, ","));
               },
               "48,8,1", "1"});

  w.push_back({"-memory:concat_in_place", "on", "off",
               [](Net& n) {
                 n.output(n.op("Concat", {n.op("Exp", {n.input("x", {3, 8})}), n.op("Tanh", {n.input("y", {2, 8})})},
                               {{"axis", int64_t(0)}}));
               },
               layerCount, "2", "4"});
  // Tensors of the arena: the product and, unless it is overwritten, its tanh.
  w.push_back({"-memory:in_place", "on", "off",
               [](Net& n) { n.output(product(n, n.op("Tanh", {product(n, n.input("x", {8, 8}), 16)}), 8)); }, offsets,
               "0", "0,512", "-fuse:gemm_activation=off"});
  w.push_back({"-memory:reuse", "on", "off",
               [](Net& n) {
                 V x = n.input("x", {16, 16});
                 for (int i = 0; i < 4; i++) x = product(n, x, 16);
                 n.output(x);
               },
               arenaBytes, "2048", "3072"});
  w.push_back({"-memory:order", "size", "time", twoTensors, offsets, "1280,0", "0,1024"});
  w.push_back({"-memory:align", "64", "4096", twoTensors, offsets, "1280,0", "4096,0"});
  w.push_back({"-memory:skew", "0", "192", twoTensors, offsets, "1280,0", "1472,0"});
  // Four tensors lie side by side; the first and third end, and a fifth fits into either gap.
  w.push_back({"-memory:fit", "best", "first",
               [](Net& n) {
                 V x = n.input("x", {16, 16});
                 V a = product(n, x, 64), b = product(n, x, 16), c = product(n, x, 32), d = product(n, x, 16);
                 n.output(product(n, a, 4));
                 n.output(product(n, c, 4));
                 V e = product(n, x, 16);
                 for (V v : {e, b, d}) n.output(product(n, v, 4));
               },
               offsets, "0,4096,5120,7168,5120", "0,4096,5120,7168,0", "-memory:order=time"});

  auto threads = [&](const char* knob, const char* value, const char* other, int64_t (*field)(const fb::LaunchT&),
                     const char* expected, const char* expectedOther) {
    w.push_back({knob, value, other, [](Net& n) { n.output(n.op("Tanh", {n.input("x", {64, 40})})); },
                 launchField("Tanh", field), expected, expectedOther});
  };
  threads("-threads:schedule", "static", "dynamic", [](const fb::LaunchT& l) { return int64_t(l.schedule); }, "0", "2");
  threads("-threads:grain", "1", "4", [](const fb::LaunchT& l) { return int64_t(l.grain); }, "1", "4");
  threads("-threads:limit", "2", "4", [](const fb::LaunchT& l) { return int64_t(l.max_threads); }, "2", "4");
  threads(
      "-threads:serial_below", "0", "2097152", [](const fb::LaunchT& l) { return int64_t(l.max_threads); }, "0", "1");
  w.push_back({"-threads:spin_us", "50", "2000", [](Net& n) { n.output(n.op("Tanh", {n.input("x", {8})})); },
               [](const Built& b) { return std::to_string(b.plan().spin_us); }, "50", "2000"});
  w.push_back({"-threads:wait_us", "0", "2000", [](Net& n) { n.output(n.op("Tanh", {n.input("x", {8})})); },
               [](const Built& b) { return std::to_string(b.plan().wait_us); }, "0", "2000"});
  return w;
}

}  // namespace rutter::test
