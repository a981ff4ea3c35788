#pragma once
// Times kernels alone, for levels 4 and 5: emits, links and loads a choice, and runs it on memory of its own.
#include <map>
#include <memory>
#include <set>

#include "codegen/alternatives.h"
#include "compiler/kernel_cache.h"
#include "compiler/timing_cache.h"
#include "runtime/pool.h"

namespace rutter::compiler {

struct TimingOptions {
  int level = 4;                           ///< 4 or 5
  int maxTactics = -1;                     ///< choices timed for a problem; -1: by level
  int avgTiming = 8;                       ///< measurements of each; their median counts
  bool errorOnMiss = false;                ///< a time that the cache lacks is a UserError
  std::map<std::string, double> seconds;   ///< that measuring a layer's kernels may take, by first origin, and none
                                           ///< for others; empty: no bound
  std::function<void(int measured)> tick;  ///< before each measurement; may throw to cancel
};

class KernelTimer : public codegen::TacticTimer {
 public:
  /// `kernels`: where emitted kernels are looked up. UserError if kernels of this profile cannot run here.
  KernelTimer(const TimingOptions& o, const codegen::Target& target, const codegen::MachineProfile& machine,
              TimingCache& times, const KernelCache& kernels);
  ~KernelTimer() override;
  int level() const override { return o_.level; }
  int mostTactics() const override;
  void nextLayer(const std::vector<std::string>& origins) override;
  double seconds(const codegen::LoweredGroup& l, const codegen::Choice& c) override;

  int measured() const { return measured_; }               ///< times that the cache lacked
  const std::set<Hash128>& used() const { return used_; }  ///< kernels that were asked about
  /// Kernels emitted for timing, by key: the chosen ones need not be emitted again.
  const std::map<Hash128, std::shared_ptr<const codegen::KernelObject>>& emitted() const { return emitted_; }

 private:
  double measure(const codegen::LoweredGroup& l, const codegen::Choice& c, const Hash128& key);

  TimingOptions o_;
  const codegen::Target& target_;
  codegen::MachineProfile machine_;
  TimingCache& times_;
  const KernelCache& kernels_;
  std::map<Hash128, std::shared_ptr<const codegen::KernelObject>> emitted_;
  std::unique_ptr<runtime::Pool> pool_;
  std::set<Hash128> used_;
  int measured_ = 0;
  double left_ = 0;  ///< seconds, for the layer at hand
};

}  // namespace rutter::compiler
