#include "compiler/kernel_timer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/ints.h"
#include "base/log.h"
#include "runtime/engine.h"
#include "runtime/memory.h"

namespace rutter::compiler {
namespace {

using codegen::KDim;
using codegen::Problem;

// A kernel of a few microseconds is run often enough that the clock does not matter.
constexpr double kSampleSeconds = 100e-6;
// Lines by which a measurement's operands are shifted: where they lie moves a kernel that lives in the caches.
constexpr int kShifts = 16;

// Memory of one operand: from its lowest to its highest element, at the profile's opt.
struct Extent {
  int64_t before = 0, after = 0;  ///< elements in front of and behind the base address
};
Extent extentOf(const Problem& p, size_t i) {
  const codegen::Operand& o = p.operands[i];
  const bool own = int(i) < p.anchors;
  Extent e;
  for (size_t a = 0; a < o.strides.size(); a++) {
    int64_t n = p.optOf(own ? o.dims.at(a) : p.space.at(a));
    if (!o.lo.empty()) n = std::max(n, p.optOf(o.hi[a]) - p.optOf(o.lo[a]));
    const int64_t reach = std::max<int64_t>(n - 1, 0) * p.optOf(o.strides[a]);
    (reach < 0 ? e.before : e.after) += std::abs(reach);
  }
  return e;
}

// Floats near one, so that no arithmetic is slow or special; integers are 0, which every table has.
void fill(char* data, int64_t bytes, ir::DType t) {
  std::memset(data, 0, size_t(bytes));
  auto each = [&](auto value, auto step) {
    auto* x = reinterpret_cast<decltype(value)*>(data);
    for (int64_t i = 0; i < bytes / int64_t(sizeof value); i++)
      x[i] = decltype(value)(value + step * decltype(value)(i % 61));
  };
  if (t == ir::DType::kF32) each(0.5f, 0.01f);
  if (t == ir::DType::kF64) each(0.5, 0.01);
}

// The layer's kernels with memory of their own.
struct Bench {
  std::vector<std::unique_ptr<runtime::Memory>> memory;
  std::vector<int64_t> dims;
  struct Address {
    char* base = nullptr;
    bool shifts = false;
  };
  std::vector<std::vector<Address>> refs;
  std::vector<std::vector<void*>> ptrs;
  std::vector<runtime::Job> jobs;

  char* room(int64_t bytes) {
    memory.push_back(std::make_unique<runtime::Memory>());
    memory.back()->ensure(bytes + 2 * 4096);
    return memory.back()->data();
  }

  Bench(const codegen::LoweredGroup& l, const codegen::Choice& c, const runtime::Code& code,
        const codegen::KernelObject& object, int threads) {
    const Problem& p = l.problem;
    std::map<std::string, int64_t> symbols;
    for (size_t i = 0; i < p.params.size(); i++) {
      dims.push_back(p.params[i].opt);
      symbols["$" + std::to_string(i)] = p.params[i].opt;
    }
    std::vector<Address> operands, packs, work;
    for (size_t i = 0; i < p.operands.size(); i++) {
      const auto& s = l.operands[i];
      const int64_t element = ir::bitsOf(p.operands[i].dtype) / 8;
      if (s.root && s.root->constant && s.offset.isConstant()) {
        auto* data = static_cast<const char*>(s.root->constant->data());
        operands.push_back({const_cast<char*>(data) + s.offset.value() * element, false});
        continue;
      }
      const Extent e = extentOf(p, i);
      const int64_t bytes = (e.before + e.after + 1) * element;
      char* data = room(bytes);
      fill(data, bytes + 2 * 4096, p.operands[i].dtype);
      operands.push_back({data + roundUp(e.before * element, 64), true});
    }
    for (const codegen::PackSpec& s : c.lowering.packs) {
      char* data = room(s.bytes);
      s.pack(*l.operands.at(size_t(s.operand)).value->constant, data);
      packs.push_back({data, false});
    }
    for (const ir::Dim& w : c.lowering.workspaces) work.push_back({room(w.evaluate(symbols)), false});
    for (size_t i = 0; i < c.lowering.launches.size(); i++) {
      const codegen::LaunchSpec& s = c.lowering.launches[i];
      refs.emplace_back();
      for (int r : s.refs)
        refs.back().push_back(r >= 1000 ? packs.at(size_t(r - 1000))
                              : r < 0   ? work.at(size_t(-1 - r))
                                        : operands.at(size_t(r)));
      runtime::Job j;
      j.kernel = code.find(object.symbols.at(i));
      j.tasks = s.tasks.evaluate(symbols);
      j.grain = s.grain;
      j.schedule = runtime::Schedule(s.schedule);
      j.maxThreads = s.maxThreads;
      j.scratchStride = roundUp(s.scratch, 64);
      j.scratch = s.scratch ? room(j.scratchStride * threads) : nullptr;
      jobs.push_back(j);
    }
    ptrs.resize(jobs.size());
    place(0);
  }
  void place(int sample) {
    int n = sample;
    for (size_t i = 0; i < jobs.size(); i++) {
      ptrs[i].clear();
      for (const Address& a : refs[i]) ptrs[i].push_back(a.base + (a.shifts ? 64 * (n++ * 7 % kShifts) : 0));
      jobs[i].args = {ptrs[i].data(), dims.data()};
    }
  }
  int32_t run(runtime::Pool& pool) {
    for (const runtime::Job& j : jobs)
      if (const int32_t rc = pool.run(j)) return rc;
    return 0;
  }
};

}  // namespace

KernelTimer::KernelTimer(const TimingOptions& o, const codegen::Target& target, const codegen::MachineProfile& machine,
                         TimingCache& times, const KernelCache& kernels)
    : o_(o), target_(target), machine_(machine), times_(times), kernels_(kernels) {
  if (const CpuFeatures lacking = CpuFeatures(machine.features).without(cpuInfo().features); !lacking.empty())
    throw UserError(
        "optimization levels 4 and 5 time kernels here, and this machine lacks {}: use level 3, or build on the "
        "machine "
        "that is to run the engine",
        lacking.text());
}
KernelTimer::~KernelTimer() = default;

int KernelTimer::mostTactics() const {
  return o_.maxTactics > 0 ? o_.maxTactics : o_.level >= 5 ? 40 : 8;
}

void KernelTimer::nextLayer(const std::vector<std::string>& origins) {
  const auto it = origins.empty() ? o_.seconds.end() : o_.seconds.find(origins.front());
  left_ = o_.seconds.empty() ? INFINITY : it == o_.seconds.end() ? 0 : it->second;
}

double KernelTimer::seconds(const codegen::LoweredGroup& l, const codegen::Choice& c) {
  const Hash128 kernel = codegen::kernelKey(l.problem, c.config, machine_, target_);
  const Hash128 key = codegen::timingKey(kernel, c.lowering, machine_);
  used_.insert(key);
  auto known = times_.find(key);
  if (!known) {
    if (o_.errorOnMiss)
      throw UserError("the timing cache lacks a time for {} ({}); build once without --errorOnTimingCacheMiss",
                      c.config.print(), l.problem.print());
    if (left_ <= 0) return INFINITY;  // which another layer may still find out
    if (o_.tick) o_.tick(measured_);
    const double begin = monotonicSeconds();
    const double t = measure(l, c, kernel);
    left_ -= monotonicSeconds() - begin;
    measured_++;
    times_.add(key, std::isfinite(t) ? uint64_t(std::llround(t * 1e9)) : UINT64_MAX);
    known = times_.find(key);
  }
  return *known == UINT64_MAX ? INFINITY : double(*known) * 1e-9;
}

double KernelTimer::measure(const codegen::LoweredGroup& l, const codegen::Choice& c, const Hash128& key) {
  auto object = kernels_.find(key);
  if (auto it = emitted_.find(key); !object && it != emitted_.end()) object = it->second;
  if (!object) {
    object = std::make_shared<const codegen::KernelObject>(
        target_.emit(l.problem, c.config, machine_, "k" + key.hex().substr(0, 24)));
    emitted_[key] = object;
  }
  if (!pool_) pool_ = std::make_unique<runtime::Pool>(runtime::PoolOptions{machine_.cores, true});
  const runtime::Code code(target_.link({object->object}), "");
  Bench bench(l, c, code, *object, pool_->threads());
  runtime::FloatingPointScope floats;
  runtime::Pool::Turn turn(*pool_);
  double begin = monotonicSeconds();
  if (bench.run(*pool_) != 0) return INFINITY;  // warm, and to see that it works
  begin = monotonicSeconds();
  bench.run(*pool_);
  const double once = std::max(monotonicSeconds() - begin, 1e-9);
  const int runs = int(std::clamp(kSampleSeconds / once, 1.0, 1000.0));
  std::vector<double> samples;
  for (int i = 0; i < o_.avgTiming; i++) {
    bench.place(i);
    bench.run(*pool_);  // into the caches
    begin = monotonicSeconds();
    for (int k = 0; k < runs; k++) bench.run(*pool_);
    samples.push_back((monotonicSeconds() - begin) / runs);
  }
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double t = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  logVerbose("timed {:.3f} us: {}", t * 1e6, c.config.print());
  return t;
}

}  // namespace rutter::compiler
