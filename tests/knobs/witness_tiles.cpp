// Matrix products and convolutions.
#include "knobs/witness.h"

namespace rutter::test {
namespace {
using V = ir::Value*;
using Ints = std::vector<int64_t>;
using Model = std::function<void(Net&)>;

Model gemm(int64_t m, int64_t n, int64_t k) {
  return [=](Net& net) { net.output(net.op("MatMul", {net.input("x", {m, k}), net.random({k, n})})); };
}
Model conv(int64_t in, int64_t out, int64_t size, int64_t kernel, int64_t groups = 1) {
  return [=](Net& n) {
    V x = n.input("x", {1, in, size, size});
    n.output(n.op("Conv", {x, n.random({out, in / groups, kernel, kernel})},
                  {{"pads", Ints(4, kernel / 2)}, {"group", groups}}));
  };
}
std::function<std::string(const Built&)> config(const char* op, const char* key) {
  return [=](const Built& b) { return std::to_string(b.layer(op).config.get(key)); };
}
std::function<std::string(const Built&)> tacticOf(const char* op) {
  return [=](const Built& b) { return std::string(b.layer(op).tactic->name()); };
}
}  // namespace

std::vector<Witness> tileWitnesses() {
  std::vector<Witness> w;
  auto product = [&](const char* knob, const char* v, const char* o, Model model, const char* key, const char* expected,
                     const char* expectedOther, const char* base = "") {
    w.push_back({knob, v, o, model, config("MatMul", key), expected, expectedOther, base});
  };
  product("-gemm:tile_m", "4", "6", gemm(24, 32, 16), "tile_m", "4", "6", "-gemm:tile_n=16");
  product("-gemm:tile_n", "8", "16", gemm(24, 32, 16), "tile_n", "8", "16", "-gemm:tile_m=4");
  product("-gemm:unroll_k", "1", "4", gemm(24, 32, 16), "unroll", "1", "4");
  product("-gemm:prefetch", "0", "8", gemm(24, 32, 16), "prefetch", "0", "8");
  product("-gemm:block_k", "64", "128", gemm(24, 32, 300), "block_k", "64", "128");
  product("-gemm:task_m", "8", "16", gemm(64, 32, 16), "task_m", "8", "16", "-gemm:tile_m=4 -gemm:tile_n=16");
  product("-gemm:task_n", "16", "32", gemm(24, 64, 16), "task_n", "16", "32", "-gemm:tile_m=4 -gemm:tile_n=16");
  product("-gemm:order", "columns", "rows", gemm(24, 64, 16), "rows_outer", "0", "1",
          "-gemm:tile_m=4 -gemm:tile_n=16 -gemm:task_m=32 -gemm:task_n=64");
  product("-gemm:task_order", "columns", "rows", gemm(64, 64, 16), "rows_first", "0", "1",
          "-gemm:tile_m=4 -gemm:tile_n=16 -gemm:task_m=16 -gemm:task_n=16");
  product("-gemm:pack_a", "on", "off", gemm(24, 32, 16), "pack_a", "1", "0");
  // A second matrix that is computed.
  product(
      "-gemm:pack_b", "direct", "task",
      [](Net& n) { n.output(n.op("MatMul", {n.input("x", {24, 16}), n.input("y", {16, 32})})); }, "pack_b", "0", "2");
  product(
      "-gemm:epilogue", "registers", "loop",
      [](Net& n) {
        V y = n.op("MatMul", {n.input("x", {24, 16}), n.random({16, 32})});
        n.output(n.op("Tanh", {y}));
      },
      "epilogue_loop", "0", "1");

  // The columns of the second matrix are contiguous along the sum.
  auto transposed = [](Net& n) {
    V b = n.op("Transpose", {n.input("y", {32, 40})}, {{"perm", Ints{1, 0}}});
    n.output(n.op("MatMul", {n.input("x", {2, 40}), b}));
  };
  w.push_back({"-gemm:tactic", "gemm_tile", "gemv", transposed, tacticOf("MatMul"), "gemm_tile", "gemv"});

  auto convolution = [&](const char* knob, const char* v, const char* o, Model model, const char* key,
                         const char* expected, const char* expectedOther,
                         const char* base = "-conv:tactic=conv_direct") {
    w.push_back({knob, v, o, model, config("Conv", key), expected, expectedOther, base});
  };
  const char* tile = "-conv:tactic=conv_direct -conv:tile_m=4 -conv:tile_n=8";
  w.push_back(
      {"-conv:tactic", "conv_direct", "conv_1x1", conv(16, 16, 8, 1), tacticOf("Conv"), "conv_direct", "conv_1x1"});
  w.push_back({"-conv:transposed", "deconv", "deconv_im2col",
               [](Net& n) {
                 n.output(n.op("ConvTranspose", {n.input("x", {1, 8, 9, 9}), n.random({8, 8, 2, 2})},
                               {{"strides", std::vector<int64_t>{2, 2}}}));
               },
               tacticOf("ConvTranspose"), "deconv", "deconv_im2col"});
  convolution("-conv:tile_m", "2", "4", conv(8, 16, 16, 3), "tile_w", "2", "4",
              "-conv:tactic=conv_direct -conv:tile_n=8");
  convolution("-conv:tile_n", "8", "16", conv(8, 16, 16, 3), "tile_n", "8", "16",
              "-conv:tactic=conv_direct -conv:tile_m=4");
  convolution("-conv:unroll", "1", "4", conv(8, 16, 16, 3), "unroll", "1", "4");
  convolution("-conv:prefetch", "0", "8", conv(8, 16, 16, 3), "prefetch", "0", "8");
  convolution("-conv:block_ic", "0", "16", conv(32, 16, 16, 3), "block_ic", "0", "16");
  convolution("-conv:block_oc", "16", "32", conv(8, 64, 16, 3), "task_n", "16", "32", tile);
  convolution("-conv:task_rows", "1", "4", conv(8, 16, 16, 3), "task_h", "1", "4", tile);
  convolution("-conv:task_columns", "16", "32", conv(8, 16, 40, 3), "task_w", "16", "32", tile);
  convolution("-conv:pad", "copy", "clip", conv(8, 16, 16, 3), "copy", "1", "0");
  convolution("-conv:order", "channels", "pixels", conv(8, 64, 16, 3), "channels_outer", "1", "0", tile);
  convolution("-conv:task_order", "channels", "pixels", conv(8, 64, 16, 3), "channels_inner", "1", "0",
              "-conv:tactic=conv_direct -conv:tile_m=4 -conv:tile_n=8 -conv:block_oc=16 -conv:task_rows=4");
  convolution("-conv:dw_tile", "1", "4", conv(16, 16, 16, 3, 16), "tile_w", "1", "4", "-conv:tactic=conv_depthwise");
  convolution("-conv:dw_vectors", "1", "2", conv(16, 16, 16, 3, 16), "tile_v", "1", "2", "-conv:tactic=conv_depthwise");
  return w;
}

}  // namespace rutter::test
