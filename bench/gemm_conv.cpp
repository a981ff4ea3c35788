// GEMM, convolution and transposed convolution kernels on one thread, as a share of an FMA loop that runs between them.
// bench_gemm_conv [--isa=avx2] [--route="-gemm:tile_m=8 …"] [--tactic=NAME] [--code=DIR] [FILTER]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "kernel_run.h"

namespace {
using namespace rutter;
using codegen::KDim;
using codegen::Operand;
using codegen::Problem;
using codegen::PwOp;

double now() {
  // CPU time of this thread: what else runs on the machine does not count.
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Twelve independent chains: enough for four cycles of latency at two a cycle, and for ymm and zmm alike.
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define FMA_Z(i) "vfmadd231ps %%zmm14,%%zmm15,%%zmm" #i "\n"
#define FMA_Y(i) "vfmadd231ps %%ymm14,%%ymm15,%%ymm" #i "\n"
#define MUL_ADD_X(i) "movaps %%xmm14,%%xmm13\n mulps %%xmm15,%%xmm13\n addps %%xmm13,%%xmm" #i "\n"
double peakFlops(const std::string& isa, long n) {
  alignas(64) static const float in[32] = {1.25f, .5f};
  double t = now();
  long rounds = n;
  if (isa == "avx512")
    asm volatile("vmovups (%1),%%zmm14\n vmovups 64(%1),%%zmm15\n1:\n" CHAINS(FMA_Z) "dec %0\n jnz 1b\n vzeroupper"
                 : "+r"(n)
                 : "r"(in)
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm14", "xmm15");
  else if (isa == "avx2")
    asm volatile("vmovups (%1),%%ymm14\n vmovups 32(%1),%%ymm15\n1:\n" CHAINS(FMA_Y) "dec %0\n jnz 1b\n vzeroupper"
                 : "+r"(n)
                 : "r"(in)
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm14", "xmm15");
  else
    asm volatile("movups (%1),%%xmm14\n movups 16(%1),%%xmm15\n1:\n" CHAINS(MUL_ADD_X) "dec %0\n jnz 1b"
                 : "+r"(n)
                 : "r"(in)
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm13", "xmm14", "xmm15");
  t = now() - t;
  return double(rounds) * 12 * 2 * (isa == "avx512" ? 16 : isa == "avx2" ? 8 : 4) / t;
}

struct Case {
  std::string group, name;
  Problem p;
  int count = 1;  // how often it occurs in the network
};
std::vector<KDim> dims(const std::vector<int64_t>& v) {
  return {v.begin(), v.end()};
}

void addEpilogue(Problem& p, bool bias, bool residual, bool relu, const std::vector<KDim>& biasStrides,
                 const std::vector<KDim>& outStrides) {
  auto f = ir::DType::kF32;
  int acc = p.epilogue.add({PwOp::kAcc, f});
  auto input = [&](const std::vector<KDim>& s) {
    Operand o;
    o.strides = s;
    p.operands.push_back(o);
    return p.epilogue.load(int(p.operands.size()) - 1, f);
  };
  if (bias) acc = p.epilogue.binary(PwOp::kAdd, f, acc, input(biasStrides));
  if (residual) acc = p.epilogue.binary(PwOp::kAdd, f, acc, input(outStrides));
  if (relu) acc = p.epilogue.binary(PwOp::kMax, f, acc, p.epilogue.constant(f, 0));
  p.epilogue.outputs = {acc};
  Operand out;
  out.output = true;
  out.strides = outStrides;
  p.operands.push_back(out);
}
Problem gemm(int64_t m, int64_t n, int64_t k, bool constant, int64_t batch = 1, bool transB = false) {
  Problem p;
  p.kind = codegen::ProblemKind::kGemm;
  p.anchors = 2;
  p.space = dims({batch, m, n});
  Operand a, b;
  a.dims = dims({batch, m, k});
  a.strides = dims({m * k, k, 1});
  b.dims = dims({batch, k, n});
  b.strides = transB ? dims({n * k, 1, k}) : dims({n * k, n, 1});
  if (constant) b.strides[0] = 0;
  b.constant = constant;
  p.operands = {a, b};
  addEpilogue(p, constant, false, false, dims({0, 0, 1}), dims({m * n, n, 1}));
  return p;
}
Problem conv(int64_t ic, int64_t ih, int64_t iw, int64_t oc, int64_t k, int64_t s, int64_t pad, int64_t groups = 1,
             bool planarInput = false, int64_t kh = 0, bool residual = false) {
  if (!kh) kh = k;
  int64_t ph = kh == 1 ? 0 : pad;
  Problem p;
  p.kind = codegen::ProblemKind::kConv;
  p.anchors = 2;
  int64_t oh = (ih + 2 * ph - kh) / s + 1, ow = (iw + 2 * pad - k) / s + 1;
  p.space = dims({1, oc, oh, ow});
  Operand x, w;
  x.dims = dims({1, ic, ih, iw});
  x.strides = planarInput ? dims({ic * ih * iw, ih * iw, iw, 1}) : dims({ic * ih * iw, 1, iw * ic, ic});
  w.dims = dims({oc, ic / groups, kh, k});
  w.strides = dims({ic / groups * kh * k, kh * k, k, 1});
  w.constant = true;
  p.ints["groups"] = {groups};
  p.ints["kernel"] = dims({kh, k});
  p.ints["strides"] = dims({s, s});
  p.ints["dilations"] = dims({1, 1});
  p.ints["pads"] = dims({ph, pad, ph, pad});
  p.operands = {x, w};
  addEpilogue(p, true, residual, true, dims({0, 1, 0, 0}), dims({oc * oh * ow, 1, ow * oc, oc}));
  return p;
}
Problem deconv(int64_t ic, int64_t ih, int64_t iw, int64_t oc, int64_t k, int64_t s) {
  Problem p = conv(ic, ih, iw, oc, k, 1, 0);
  p.kind = codegen::ProblemKind::kDeconv;
  p.space = dims({1, oc, ih * s, iw * s});
  p.operands[1].dims = dims({ic, oc, k, k});
  p.operands[1].strides = dims({oc * k * k, k * k, k, 1});
  p.ints["strides"] = dims({s, s});
  p.operands.back().strides = dims({oc * ih * iw * s * s, 1, iw * s * oc, oc});
  return p;
}

std::vector<Case> cases() {
  std::vector<Case> r;
  auto add = [&](std::string group, std::string name, Problem p, int count = 1) {
    r.push_back({group, name, std::move(p), count});
  };
  add("gemm", "1024x1024x1024", gemm(1024, 1024, 1024, true));
  add("resnet50-first", "7x7/2 3-64 224 planar", conv(3, 224, 224, 64, 7, 2, 3, 1, true));
  add("resnet50-first", "7x7/2 3-64 224", conv(3, 224, 224, 64, 7, 2, 3));
  int64_t in = 64;
  struct Stage {
    int64_t mid, size;
    int blocks;
  };
  for (Stage s : {Stage{64, 56, 3}, Stage{128, 28, 4}, Stage{256, 14, 6}, Stage{512, 7, 3}}) {
    int64_t out = s.mid * 4, before = s.mid == 64 ? 56 : 2 * s.size, stride = s.mid == 64 ? 1 : 2;
    add("resnet50", fmt::format("1x1 {}-{} {}", in, s.mid, before), conv(in, before, before, s.mid, 1, 1, 0));
    add("resnet50", fmt::format("1x1/{} {}-{} {}", stride, in, out, before),
        conv(in, before, before, out, 1, stride, 0));
    if (stride == 2)
      add("resnet50", fmt::format("3x3/2 {0}-{0} {1}", s.mid, before), conv(s.mid, before, before, s.mid, 3, 2, 1));
    add("resnet50", fmt::format("3x3 {0}-{0} {1}", s.mid, s.size), conv(s.mid, s.size, s.size, s.mid, 3, 1, 1),
        s.blocks - (stride == 2));
    add("resnet50", fmt::format("1x1 {}-{} {} +res", s.mid, out, s.size),
        conv(s.mid, s.size, s.size, out, 1, 1, 0, 1, false, 0, true), s.blocks);
    add("resnet50", fmt::format("1x1 {}-{} {}", out, s.mid, s.size), conv(out, s.size, s.size, s.mid, 1, 1, 0),
        s.blocks - 1);
    in = out;
  }
  for (auto [n, k] : {std::pair<int64_t, int64_t>{768, 768}, {2304, 768}, {3072, 768}, {768, 3072}})
    add("bert", fmt::format("128x{}x{}", n, k), gemm(128, n, k, true));
  add("bert", "QK 12x128x128x64", gemm(128, 128, 64, false, 12, true));
  add("bert", "PV 12x128x64x128", gemm(128, 64, 128, false, 12));
  for (auto [n, k] : {std::pair<int64_t, int64_t>{384, 384}, {1536, 384}, {384, 1536}})
    add("minilm", fmt::format("128x{}x{}", n, k), gemm(128, n, k, true));
  for (int64_t m : {1, 4}) add("small", fmt::format("{}x1000x2048", m), gemm(m, 1000, 2048, true));
  add("ppocr", "3x3/2 3-16 320 planar", conv(3, 320, 320, 16, 3, 2, 1, 1, true));
  add("ppocr", "1x1 16-32 160", conv(16, 160, 160, 32, 1, 1, 0));
  add("ppocr", "1x1 64-64 80", conv(64, 80, 80, 64, 1, 1, 0));
  add("ppocr", "1x1 256-256 20", conv(256, 20, 20, 256, 1, 1, 0));
  add("ppocr", "1x1 512-512 10", conv(512, 10, 10, 512, 1, 1, 0));
  add("ppocr", "3x3 96-24 80", conv(96, 80, 80, 24, 3, 1, 1));
  add("ppocr", "3x3 24-24 160", conv(24, 160, 160, 24, 3, 1, 1));
  add("ppocr", "9x9 32-32 20", conv(32, 20, 20, 32, 9, 1, 4));
  add("ppocr", "2x2/2 t 24-24 80", deconv(24, 80, 80, 24, 2, 2));
  add("ppocr", "2x2/2 t 24-1 160", deconv(24, 160, 160, 1, 2, 2));
  add("depthwise", "3x3 64 80", conv(64, 80, 80, 64, 3, 1, 1, 64));
  add("depthwise", "5x5 256 20", conv(256, 20, 20, 256, 5, 1, 2, 256));
  add("depthwise", "3x3/2 128 80", conv(128, 80, 80, 128, 3, 2, 1, 128));
  add("ddddocr", "3x3 128-128 52", conv(128, 52, 52, 128, 3, 1, 1));
  add("ddddocr", "3x3 256-256 13", conv(256, 13, 13, 256, 3, 1, 1));
  return r;
}
}  // namespace

int main(int argc, char** argv) try {
  std::string isa, route, tactic, filter, code;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i];
    auto value = [&](const char* key, std::string& to) {
      if (a.rfind(key, 0) != 0) return false;
      to = a.substr(std::strlen(key));
      return true;
    };
    if (!value("--isa=", isa) && !value("--route=", route) && !value("--tactic=", tactic) && !value("--code=", code))
      filter = a;
  }
  codegen::MachineProfile m = codegen::findTarget("cpu").profile(isa, 1);
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> u(-1, 1);
  std::map<std::string, std::pair<double, double>> groups;  // FLOPs, seconds at peak over seconds
  fmt::print("isa {} one thread; share of an interleaved FMA loop, median over slices\n", m.isa);
  for (Case& c : cases()) {
    if (!filter.empty() && (c.group + " " + c.name).find(filter) == std::string::npos) continue;
    try {
      double begin = now();
      bench::KernelRun k(c.p, m, route, tactic);
      double compile = now() - begin;
      std::vector<std::unique_ptr<bench::Buffer>> buffers;
      std::vector<void*> ptr;
      for (const Operand& o : c.p.operands) {
        int64_t n = 1;
        for (size_t i = 0; i < o.strides.size(); i++)
          n += ((o.dims.empty() ? c.p.space[i] : o.dims[i]).value - 1) * o.strides[i].value;
        buffers.push_back(std::make_unique<bench::Buffer>(n * 4));
        for (int64_t i = 0; i < n; i++) static_cast<float*>(buffers.back()->data)[i] = u(rng);
        ptr.push_back(buffers.back()->data);
      }
      k.prepare(ptr, {});
      if (!code.empty()) std::ofstream(code + "/" + c.name.substr(0, c.name.find('/')) + ".s") << k.disassembly();
      double flops = c.p.flops() - double(c.p.epilogue.code.size()) * double([&] {
                                     double n = 1;
                                     for (const KDim& d : c.p.space) n *= double(d.value);
                                     return n;
                                   }());
      k.run();
      double one = now();
      k.run();
      one = now() - one;
      int repeat = std::max(1, int(1e-3 / std::max(one, 1e-7)));
      std::vector<double> ratio, time;
      double until = now() + 0.4;
      while (now() < until || ratio.size() < 7) {
        double before = peakFlops(m.isa, 20000);
        double t = now();
        for (int i = 0; i < repeat; i++) k.run();
        t = (now() - t) / repeat;
        double peak = (before + peakFlops(m.isa, 20000)) / 2;
        ratio.push_back(flops / t / peak);
        time.push_back(t);
      }
      std::sort(ratio.begin(), ratio.end());
      std::sort(time.begin(), time.end());
      double share = ratio[ratio.size() / 2];
      fmt::print("{:15} {:24} {:5.1f} %  {:8.1f} us  {:6.1f} GFLOP/s  compile {:4.1f} ms {:3} KiB  {}\n", c.group,
                 c.name, 100 * share, 1e6 * time[time.size() / 2], flops / time[time.size() / 2] / 1e9, 1e3 * compile,
                 k.object().object.size() / 1024, k.config().print());
      for (const auto& r : k.refusals()) fmt::print("    refused {}\n", r);
      std::fflush(stdout);
      groups[c.group].first += flops * c.count;
      groups[c.group].second += flops * c.count / share;
    } catch (const UserError& e) {
      fmt::print("{:15} {:24} {}\n", c.group, c.name, e.what());
    }
  }
  for (auto& [name, g] : groups) fmt::print("{:15} weighted by FLOPs {:5.1f} %\n", name, 100 * g.first / g.second);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
