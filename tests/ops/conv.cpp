// Convolution tactics against the definition of the problem.
#include "ops/gemm_cases.h"

namespace rutter::cputest {
namespace {

std::vector<ConvShape> shapes() {
  std::vector<ConvShape> r;
  auto add = [&](ConvShape s) { r.push_back(s); };
  add({.ic = 5, .h = 9, .w = 11, .oc = 20, .kh = 3, .kw = 3, .pt = 1, .pl = 1, .pb = 1, .pr = 1});
  add({.ic = 16, .h = 7, .w = 7, .oc = 33, .kh = 3, .kw = 3, .pt = 1, .pl = 1, .pb = 1, .pr = 1});
  add({.ic = 8, .h = 10, .w = 31, .oc = 16, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .pt = 1, .pl = 0, .pb = 0, .pr = 1});
  add({.ic = 3,
       .h = 20,
       .w = 20,
       .oc = 16,
       .kh = 7,
       .kw = 7,
       .sh = 2,
       .sw = 2,
       .pt = 3,
       .pl = 3,
       .pb = 3,
       .pr = 3,
       .planarIn = true});
  add({.ic = 12, .h = 9, .w = 17, .oc = 40, .kh = 1, .kw = 1});
  add({.ic = 12, .h = 9, .w = 17, .oc = 40, .kh = 1, .kw = 1, .sh = 2, .sw = 2});
  add({.ic = 6, .h = 12, .w = 12, .oc = 10, .kh = 3, .kw = 2, .dh = 2, .dw = 3, .pt = 2, .pl = 3, .pb = 1, .pr = 0});
  add({.ic = 12, .h = 6, .w = 8, .oc = 24, .kh = 3, .kw = 3, .pt = 1, .pl = 1, .pb = 1, .pr = 1, .groups = 3, .n = 2});
  add({.ic = 7, .h = 1, .w = 50, .oc = 9, .kh = 1, .kw = 5, .pl = 2, .pr = 2, .line = true});
  add({.ic = 1, .h = 4, .w = 4, .oc = 1, .kh = 4, .kw = 4});
  add({.ic = 4, .h = 2, .w = 2, .oc = 5, .kh = 3, .kw = 3, .pt = 2, .pl = 2, .pb = 2, .pr = 2});
  add({.ic = 4, .h = 5, .w = 5, .oc = 5, .kh = 3, .kw = 3, .pt = 1, .pl = 1, .pb = 1, .pr = 1, .n = 3});
  return r;
}
// Spatial extents, and the strides that follow from them, known only at run time.
Case spatialParams(const ConvShape& s, bool bias = true) {
  Case c = convCase(s, bias);
  Case r = c;
  auto change = [&](KDim& d, int64_t min) {
    for (size_t i = 0; i < r.params.size(); i++)
      if (r.params[i] == d.value) {
        d = KDim::parameter(int(i));
        return;
      }
    r.params.push_back(d.value);
    r.problem.params.push_back({min, 2 * d.value, d.value, 1});
    d = KDim::parameter(int(r.params.size()) - 1);
  };
  Problem& p = r.problem;
  for (size_t a = 2; a < p.space.size(); a++) {
    change(p.space[a], 1);
    change(p.operands[0].dims[a], 1);
  }
  for (size_t i = 0; i < p.operands.size(); i++)
    if (i != 1)
      for (size_t a : {size_t(0), size_t(2)})
        if (a + 1 < p.space.size() && !p.operands[i].strides[a].is(0)) change(p.operands[i].strides[a], 1);
  return r;
}

TEST(Conv, ChannelsLast) {
  for (const ConvShape& s : shapes()) {
    Case c = convCase(s, true, true, true);
    SCOPED_TRACE(c.problem.print());
    for (const std::string& isa : isas()) check(c, {.isa = isa, .tactic = "conv_direct"}, 2e-5);
  }
}
TEST(Conv, RunTimeExtents) {
  for (const ConvShape& s : shapes()) {
    Case c = spatialParams(s);
    SCOPED_TRACE(c.problem.print());
    for (const std::string& isa : isas()) check(c, {.isa = isa, .tactic = "conv_direct"}, 2e-5);
  }
}
TEST(Conv, PlanarInputOfManyChannels) {
  check(convCase({.ic = 20,
                  .h = 9,
                  .w = 11,
                  .oc = 20,
                  .kh = 3,
                  .kw = 3,
                  .pt = 1,
                  .pl = 1,
                  .pb = 1,
                  .pr = 1,
                  .planarIn = true}),
        {}, 2e-5);
}
TEST(Conv, ExplicitKnobs) {
  for (const char* route : {"-conv:tile_m=1",           "-conv:tile_m=4",
                            "-conv:tile_m=7",           "-conv:tile_m=14",
                            "-conv:tile_m=28",          "-conv:tile_n=16",
                            "-conv:tile_n=32",          "-conv:tile_n=64",
                            "-conv:unroll=1",           "-conv:unroll=16",
                            "-conv:prefetch=8",         "-conv:block_ic=0",
                            "-conv:block_ic=16",        "-conv:block_oc=16",
                            "-conv:task_rows=1",        "-conv:task_rows=4",
                            "-conv:task_columns=16",    "-conv:pad=copy",
                            "-conv:pad=clip",           "-conv:order=channels",
                            "-conv:order=pixels",       "-conv:task_order=channels",
                            "-conv:task_order=pixels",  "-gemm:epilogue=loop",
                            "-gemm:epilogue=registers", "-codegen:contract=off"})
    for (int64_t w : {7, 30}) {
      int64_t stride = w == 7 ? 1 : 2;
      ConvShape s{.ic = 32,
                  .h = 7,
                  .w = w,
                  .oc = 72,
                  .kh = 3,
                  .kw = 3,
                  .sh = stride,
                  .sw = stride,
                  .pt = 1,
                  .pl = 1,
                  .pb = 1,
                  .pr = 1,
                  .n = 2};
      SCOPED_TRACE(fmt::format("{} width {} stride {}", route, w, stride));
      check(convCase(s, true, false, true), {.isa = "", .route = route, .tactic = "conv_direct"}, 2e-5);
      if (w == 30) check(spatialParams(s), {.isa = "avx2", .route = route, .tactic = "conv_direct"}, 2e-5);
    }
}
TEST(Conv, Depthwise) {
  for (ConvShape s :
       {ConvShape{.h = 9, .w = 21, .kh = 3, .kw = 3, .pt = 1, .pl = 1, .pb = 1, .pr = 1},
        ConvShape{.h = 12, .w = 19, .kh = 5, .kw = 5, .sh = 2, .sw = 2, .pt = 2, .pl = 2, .pb = 2, .pr = 2},
        ConvShape{.h = 5, .w = 5, .kh = 3, .kw = 3, .dh = 2, .dw = 2, .pt = 2, .pl = 2, .pb = 2, .pr = 2},
        ConvShape{.h = 3, .w = 2, .kh = 3, .kw = 4, .pt = 2, .pl = 3, .pb = 1, .pr = 3},
        ConvShape{.h = 1, .w = 40, .kh = 1, .kw = 7, .pl = 6, .pr = 0, .line = true},
        ConvShape{.h = 6, .w = 8, .kh = 1, .kw = 1}})
    for (int64_t channels : {20, 32}) {
      s.ic = s.oc = s.groups = channels;
      s.n = 2;
      for (const char* route : {"", "-conv:order=channels -conv:dw_tile=1", "-conv:dw_tile=8 -conv:dw_vectors=2",
                                "-conv:dw_tile=2 -conv:block_oc=16 -conv:task_rows=2"}) {
        Case c = convCase(s, true, true, true);
        SCOPED_TRACE(c.problem.print() + route);
        for (const std::string& isa : isas()) check(c, {.isa = isa, .route = route, .tactic = "conv_depthwise"}, 2e-5);
        check(spatialParams(s), {.isa = "", .route = route, .tactic = "conv_depthwise"}, 2e-5);
      }
    }
}
TEST(Conv, OneByOneAsGemm) {
  for (ConvShape s :
       {ConvShape{.ic = 12, .h = 7, .w = 9, .oc = 40, .kh = 1, .kw = 1, .n = 2},
        ConvShape{.ic = 12, .h = 7, .w = 1, .oc = 40, .kh = 1, .kw = 1},
        ConvShape{.ic = 5, .h = 1, .w = 33, .oc = 17, .kh = 1, .kw = 1, .line = true},
        ConvShape{.ic = 12, .h = 7, .w = 9, .oc = 40, .kh = 1, .kw = 1, .planarIn = true},
        ConvShape{.ic = 12, .h = 7, .w = 9, .oc = 40, .kh = 1, .kw = 1, .planarIn = true, .planarOut = true}})
    for (const std::string& isa : isas())
      check(convCase(s, true, true, true), {.isa = isa, .tactic = "conv_1x1"}, 2e-5);
  check(spatialParams({.ic = 5, .h = 1, .w = 33, .oc = 17, .kh = 1, .kw = 1, .line = true}), {.tactic = "conv_1x1"},
        2e-5);
}
TEST(Conv, Im2colTakesEveryLayout) {
  for (ConvShape s : shapes())
    for (int layout = 0; layout < 4; layout++) {
      if (layout == 1 || layout == 2) s.n = 1;
      s.planarIn = layout & 1;
      s.planarOut = layout & 2;
      Case c = convCase(s, true, true, true);
      SCOPED_TRACE(c.problem.print());
      for (const std::string& isa : isas()) check(c, {.isa = isa, .tactic = "conv_im2col"}, 2e-5);
      if (layout == 0 || layout == 3)
        check(spatialParams(s), {.isa = layout ? "" : "avx2", .tactic = "conv_im2col"}, 2e-5);
    }
  ConvShape s{.ic = 8,
              .h = 20,
              .w = 30,
              .oc = 40,
              .kh = 3,
              .kw = 3,
              .pt = 1,
              .pl = 1,
              .pb = 1,
              .pr = 1,
              .planarIn = true,
              .planarOut = true};
  for (const char* route : {"-conv:tile_m=4", "-conv:tile_n=64", "-conv:task_rows=2", "-conv:task_columns=16",
                            "-conv:block_oc=16", "-conv:order=channels", "-conv:unroll=1", "-gemm:epilogue=loop"})
    check(convCase(s), {.isa = "", .route = route, .tactic = "conv_im2col"}, 2e-5);
}
// Counts past 255, where a mask made from a byte of them would be empty.
TEST(Conv, Im2colOfManyChannelsAndWideRows) {
  for (bool planar : {false, true})
    for (ConvShape s : {ConvShape{.ic = 256, .h = 3, .w = 20, .oc = 16, .kh = 1, .kw = 1},
                        ConvShape{.ic = 300, .h = 4, .w = 6, .oc = 8, .kh = 1, .kw = 1, .sh = 2, .sw = 2},
                        ConvShape{.ic = 4, .h = 2, .w = 530, .oc = 3, .kh = 1, .kw = 3, .pl = 1, .pr = 1}}) {
      s.planarIn = s.planarOut = planar;
      for (const std::string& isa : isas()) check(convCase(s), {.isa = isa, .tactic = "conv_im2col"}, 1e-4);
    }
}
TEST(Deconv, PhasesAndBorders) {
  for (ConvShape s :
       {ConvShape{.ic = 8, .h = 5, .w = 9, .oc = 20, .kh = 2, .kw = 2, .sh = 2, .sw = 2},
        ConvShape{.ic = 24, .h = 5, .w = 20, .oc = 1, .kh = 2, .kw = 2, .sh = 2, .sw = 2},
        ConvShape{
            .ic = 6, .h = 5, .w = 6, .oc = 7, .kh = 4, .kw = 4, .sh = 2, .sw = 2, .pt = 1, .pl = 1, .pb = 1, .pr = 1},
        ConvShape{.ic = 6,
                  .h = 5,
                  .w = 6,
                  .oc = 7,
                  .kh = 3,
                  .kw = 3,
                  .sh = 2,
                  .sw = 2,
                  .pt = 1,
                  .pl = 1,
                  .pb = 1,
                  .pr = 1,
                  .outputPadding = 1},
        ConvShape{.ic = 6, .h = 4, .w = 6, .oc = 7, .kh = 2, .kw = 1, .sh = 3, .sw = 2},
        ConvShape{.ic = 6, .h = 4, .w = 6, .oc = 8, .kh = 3, .kw = 3, .groups = 2, .n = 2},
        ConvShape{.ic = 6, .h = 1, .w = 16, .oc = 8, .kh = 1, .kw = 4, .sw = 2, .pl = 1, .pr = 1, .line = true}}) {
    s.transposed = true;
    for (const char* route : {"", "-conv:pad=copy", "-conv:pad=clip"}) {
      Case c = convCase(s, true, true, true);
      SCOPED_TRACE(c.problem.print() + route);
      for (const std::string& isa : isas()) check(c, {.isa = isa, .route = route, .tactic = "deconv"}, 2e-5);
      check(spatialParams(s), {.isa = "", .route = route, .tactic = "deconv"}, 2e-5);
    }
    for (bool planar : {false, true}) {
      s.planarIn = s.planarOut = planar;
      for (const std::string& isa : isas())
        check(convCase(s, true, true, true), {.isa = isa, .tactic = "deconv_im2col"}, 2e-5);
      check(spatialParams(s), {.isa = "", .tactic = "deconv_im2col"}, 2e-5);
    }
  }
}

}  // namespace
}  // namespace rutter::cputest
