#include "inference.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "tuner/accuracy.h"

namespace rutter::cli {
namespace {

using Clock = std::chrono::steady_clock;
double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}
void sleepMs(double ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

ExecutionContextAllocationStrategy strategyOf(const std::string& word) {
  return word == "static"    ? ExecutionContextAllocationStrategy::kSTATIC
         : word == "profile" ? ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE
                             : ExecutionContextAllocationStrategy::kUSER_MANAGED;
}

// Runs kept at most: at 64 bytes each a run until interrupted must not eat the memory.
constexpr size_t kMostRuns = 20'000'000;

class LayerCollector : public IProfiler {
 public:
  void reportLayerTime(char const* name, float ms) noexcept override {
    try {
      if (next_ == layers_.size()) layers_.push_back({name, {}});
      layers_[next_++].ms.push_back(ms);
    } catch (const std::exception&) {
    }
  }
  void endOfRun() { next_ = 0; }
  std::vector<LayerTimes> take() { return std::move(layers_); }

 private:
  std::vector<LayerTimes> layers_;
  size_t next_ = 0;
};

}  // namespace

Inference::Inference(Session& s, const Options& o) : session_(s), options_(o), io_(ioTensors(*s.engine)) {
  firstInputs_ = readInputs(io_, s.shapes, o, 0, s.rules);
  for (int i = 0; i < o.inference.streams; i++) {
    Stream stream;
    stream.context.reset(s.errors.need(s.engine->createExecutionContext(strategyOf(o.inference.allocationStrategy)),
                                       "an execution context could not be created"));
    stream.context->setErrorRecorder(&s.errors);
    if (o.inference.useProfile)
      s.errors.need(stream.context->setOptimizationProfileAsync(o.inference.useProfile, nullptr),
                    "the profile was refused");
    stream.bindings = std::make_unique<Bindings>(*s.engine, *stream.context, s.shapes, s.errors);
    if (o.inference.allocationStrategy == "runtime") {
      const auto size = static_cast<int64_t>(stream.context->updateDeviceMemorySizeForShapes());
      // Untouched, so that only what these shapes use takes memory.
      stream.memory.reset(std::aligned_alloc(64, size_t(size + 63) / 64 * 64));
      if (!stream.memory) throw std::bad_alloc();
      stream.context->setDeviceMemoryV2(stream.memory.get(), size);
    }
    stream.bindings->setInputs(firstInputs_);
    streams_.push_back(std::move(stream));
  }
}

void Inference::run(Stream& s) {
  session_.errors.need(s.context->enqueueV3(nullptr), "the engine failed to run");
}

AccuracyResult Inference::checkAccuracy() {
  AccuracyResult out;
  const auto& inf = options_.inference;
  tuner::AccuracyOptions how{tuner::parseLoss(inf.accuracyAlgorithm), inf.accuracyThreshold, inf.atol, inf.rtol};
  tuner::LossTable table;
  auto& stream = streams_[0];
  for (size_t p = 0; p < inf.pairs.size(); p++) {
    const auto references = readReferences(io_, stream.bindings->outputShapes(), options_, p);
    if (references.empty()) continue;
    stream.bindings->setInputs(readInputs(io_, session_.shapes, options_, p, session_.rules));
    stream.bindings->poisonOutputs();
    run(stream);
    const auto outputs = stream.bindings->outputs();
    for (const auto& [name, output] : outputs) {
      const auto reference = references.find(name);
      if (reference == references.end()) continue;
      const double loss = tuner::loss(how, output, reference->second);
      table.add(name, loss);
      session_.console.info(fmt::format("Accuracy of pair {}, output {}: {} loss {:g} (threshold {:g})", p, name,
                                        inf.accuracyAlgorithm, loss, inf.accuracyThreshold));
    }
  }
  stream.bindings->setInputs(firstInputs_);
  out.losses = table.losses();
  if (auto bad = table.rejectedBy(inf.accuracyThreshold); bad && inf.accuracyThreshold > 0) {
    out.ok = false;
    session_.console.error(fmt::format("output {} is inaccurate: its loss {:g} is not below {:g}", *bad,
                                       out.losses.at(*bad), inf.accuracyThreshold));
  }
  return out;
}

std::vector<RunTimes> Inference::measure() {
  const auto& inf = options_.inference;
  const double until = inf.durationSeconds < 0 ? 1e300 : inf.warmUpMs + inf.durationSeconds * 1e3;
  std::atomic<int64_t> counted{0};
  std::atomic<size_t> kept{0};
  std::atomic<bool> stop{false};
  std::vector<std::vector<RunTimes>> runs(streams_.size());
  std::vector<std::exception_ptr> failures(streams_.size());
  for (auto& s : streams_) s.bindings->poisonOutputs();
  Interrupts interrupts;
  sleepMs(inf.sleepMs);
  const auto start = Clock::now();

  // On a CPU a run returns when it is done, so contexts run at once only from threads of their own, --threads or not.
  auto loop = [&](size_t i) {
    try {
      while (!stop && Interrupts::count() == 0 && (msSince(start) < until || counted < inf.iterations) &&
             kept < kMostRuns) {
        RunTimes t;
        t.startEnq = t.startH2d = t.endH2d = t.startCompute = msSince(start);
        run(streams_[i]);
        t.endEnq = t.endCompute = t.startD2h = t.endD2h = msSince(start);
        runs[i].push_back(t);
        kept++;
        if (t.startCompute >= inf.warmUpMs) counted++;
        sleepMs(inf.idleMs);
      }
    } catch (...) {
      failures[i] = std::current_exception();
      stop = true;
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < streams_.size(); i++) threads.emplace_back(loop, i);
  loop(0);
  for (auto& t : threads) t.join();
  for (auto& f : failures)
    if (f) std::rethrow_exception(f);
  if (Interrupts::count()) session_.console.warning("interrupted: the summary covers the runs until then");
  if (kept >= kMostRuns) session_.console.warning(fmt::format("stopped after {} runs", kMostRuns));
  std::vector<RunTimes> all;
  for (auto& r : runs) all.insert(all.end(), r.begin(), r.end());
  return all;
}

std::vector<LayerTimes> Inference::profile() {
  auto& stream = streams_[0];
  LayerCollector collector;
  Interrupts interrupts;
  for (int i = 0; i < 3; i++) run(stream);
  stream.context->setProfiler(&collector);
  const auto start = Clock::now();
  const double until = std::min(std::abs(options_.inference.durationSeconds), 1.0) * 1e3;
  for (int64_t n = 0; Interrupts::count() == 0 && (n < options_.inference.iterations || msSince(start) < until); n++) {
    run(stream);
    collector.endOfRun();
  }
  stream.context->setProfiler(nullptr);
  return collector.take();
}

}  // namespace rutter::cli
