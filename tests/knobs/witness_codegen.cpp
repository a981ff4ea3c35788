// Machine code and kernels over points.
#include <algorithm>

#include "knobs/witness.h"

namespace rutter::test {
namespace {
using V = ir::Value*;
using Model = std::function<void(Net&)>;

Model unary(const char* op, ir::Dims dims) {
  return [=](Net& n) { n.output(n.op(op, {n.input("x", dims)})); };
}
Model gemm() {
  return [](Net& n) { n.output(n.op("MatMul", {n.input("x", {24, 40}), n.random({40, 32})})); };
}
std::function<std::string(const Built&)> config(const char* op, const char* key) {
  return [=](const Built& b) { return std::to_string(b.layer(op).config.get(key)); };
}
/// How many tasks the layer's first launch is cut into.
std::function<std::string(const Built&)> tasks(const char* op) {
  return [=](const Built& b) { return std::to_string(b.plan().exprs.at(size_t(b.launches(op).at(0)->tasks)).value()); };
}
}  // namespace

std::vector<Witness> codegenWitnesses() {
  std::vector<Witness> w;
  w.push_back({"-codegen:contract", "on", "off",
               [](Net& n) {
                 V x = n.input("x", {5, 40});
                 n.output(n.op("Add", {n.op("Mul", {x, n.input("y", {5, 40})}), n.input("z", {5, 40})}));
               },
               config("Mul", "contract"), "1", "0"});
  w.push_back({"-codegen:vector", "128", "256", unary("Tanh", {5, 40}), config("Tanh", "vector"), "16", "32"});
  w.push_back({"-codegen:align_loops", "16", "64", gemm(), config("MatMul", "align_loops"), "16", "64"});
  w.push_back({"-codegen:align_function", "64", "256", gemm(), config("MatMul", "align_function"), "64", "256"});
  w.push_back({"-codegen:passes", "on", "off", gemm(), config("MatMul", "passes"), "1", "0"});
  w.push_back({"-codegen:hoist", "on", "off", gemm(), config("MatMul", "hoist"), "1", "0"});
  w.push_back({"-codegen:tune", "znver3", "skylake-avx512", gemm(), config("MatMul", "tune"), "3", "1"});
  // With 16 registers the allocator has something to choose.
  w.push_back({"-codegen:opt", "2", "3",
               [](Net& n) {
                 V x = n.input("x", {1, 8, 9, 9});
                 n.output(n.op("Conv", {x, n.random({8, 8, 3, 3})}, {{"pads", std::vector<int64_t>(4, 1)}}));
               },
               config("Conv", "opt"), "2", "3", "", "generic"});
  w.push_back({"-pointwise:unroll", "1", "4", unary("Tanh", {5, 203}), config("Tanh", "unroll"), "1", "4"});
  w.push_back({"-pointwise:tail", "mask", "scalar", unary("Tanh", {5, 43}), config("Tanh", "mask"), "1", "0"});
  w.push_back({"-pointwise:task_bytes", "4096", "16384", unary("Exp", {128, 128}), tasks("Exp"), "64", "16"});
  auto turned = [](Net& n) {
    V t = n.op("Transpose", {n.input("x", {40, 56})}, {{"perm", std::vector<int64_t>{1, 0}}});
    n.output(n.op("Mul", {t, n.input("y", {56, 40})}));
  };
  w.push_back({"-pointwise:tactic", "loop", "transpose", turned,
               [](const Built& b) { return b.layer("Mul").config.tactic; }, "loop", "transpose"});
  w.push_back({"-pointwise:tile", "4", "8", turned, config("Mul", "tile"), "4", "8", "", "avx2"});
  auto sum = [](Net& n) { n.output(n.op("ReduceSum", {n.input("x", {64, 200}), n.ints({1})})); };
  auto softmax = unary("Softmax", {6, 200});
  w.push_back({"-reduce:vector", "reduced", "kept", sum, config("ReduceSum", "inner"), "1", "0"});
  w.push_back({"-reduce:chains", "1", "4", sum, config("ReduceSum", "unroll"), "1", "4"});
  w.push_back({"-reduce:task_bytes", "4096", "16384", sum, tasks("ReduceSum"), "13", "4"});
  w.push_back({"-row:vector", "reduced", "kept", softmax, config("Softmax", "inner"), "1", "0"});
  w.push_back({"-row:unroll", "1", "4", softmax, config("Softmax", "unroll"), "1", "4"});
  w.push_back({"-row:softmax", "twopass", "online", softmax, config("Softmax", "form"), "0", "1"});
  w.push_back({"-row:norm", "twopass", "onepass",
               [](Net& n) { n.output(n.op("LayerNormalization", {n.input("x", {6, 200}), n.random({200})})); },
               config("LayerNormalization", "form"), "0", "1"});
  w.push_back({"-row:buffer", "on", "off", unary("Softmax", {6, 200}), config("Softmax", "buffer"), "1", "0"});
  auto pool = [](Net& n) {
    n.output(n.op("MaxPool", {n.input("x", {1, 64, 9, 20})}, {{"kernel_shape", std::vector<int64_t>{2, 2}}}));
  };
  w.push_back({"-pool:vector", "channels", "width", pool, config("MaxPool", "axis"), "1", "3"});
  w.push_back({"-pool:unroll", "1", "4", pool, config("MaxPool", "unroll"), "1", "4"});
  return w;
}

}  // namespace rutter::test
