#pragma once
// The threads that kernels run on. One pool belongs to a runtime object and is shared by all its contexts.
//
// A launch is cut as the plan says and given to the calling thread and to workers, which spin for a while between
// launches and then sleep. If another context is being served, the calling thread runs its launch alone: nobody waits
// for the pool, so there is nothing to deadlock on, and results do not depend on the number of threads.
// Workers are pinned, one a core, away from the core on which the caller happens to be; the caller's own affinity is
// never touched. Threads do not survive a fork: in a forked child a pool of the
// parent runs everything on the caller, and the child makes its own.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/kernel_abi.h"

namespace rutter::runtime {

enum class Schedule : uint8_t { kContiguous = 0, kInterleaved = 1, kDynamic = 2 };

/// One launch, with all addresses known.
struct Job {
  Kernel kernel = nullptr;
  Args args{};
  int64_t tasks = 0;
  int64_t grain = 1;  ///< tasks taken at a time; boundaries between threads lie at its multiples
  Schedule schedule = Schedule::kContiguous;
  int maxThreads = 0;         ///< 0: no limit
  int spinUs = 50;            ///< how long a worker looks for the next launch before it sleeps, microseconds
  int waitUs = 200;           ///< how long the caller looks for the workers' end before it sleeps, microseconds
  char* scratch = nullptr;    ///< one piece for each thread of the pool
  int64_t scratchStride = 0;  ///< bytes between pieces
};

struct PoolOptions {
  int threads = 0;  ///< the calling thread included; 0: usableThreads()
  bool pin = true;  ///< if the affinity mask holds at least that many processors
};

class Pool {
 public:
  explicit Pool(const PoolOptions& options = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  /// Runs every task of a job once; returns the code of a kernel call that failed, or 0. After a failure the tasks not
  /// yet started may be left out. Any number of threads may call this at once. Does not allocate.
  int32_t run(const Job& job);

  /// Held by a context during a whole run: how many are held tells how to share the threads.
  class Turn {
   public:
    explicit Turn(Pool& p);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Pool& pool_;
  };

 private:
  struct alignas(128) Worker {
    std::atomic<uint32_t> ticket{0};  // raised by one for every job that this worker takes part in
    std::atomic<uint32_t> asleep{0};
    int slot = 0;  // index into slots_, guarded by busy_
    std::thread thread;
  };
  void work(Worker& self, int index);
  void share(const Job& job, int index, int threads);
  void makeWayForCaller();
  void stop();
  void pinTo(Worker& w, int slot);

  int threads_;
  int forksAtStart_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<int> slots_, slotCores_;  // processors for pinning, one a thread, and their physical cores
  std::vector<int> coreOf_;             // by processor number
  int freeSlot_ = 0;                    // the slot that no worker has: the caller's
  std::mutex busy_;

  Job job_;
  int jobThreads_ = 0;
  alignas(128) std::atomic<int64_t> next_{0};      // dynamic schedule: next chunk
  alignas(128) std::atomic<uint32_t> pending_{0};  // workers that have not finished
  alignas(128) std::atomic<int32_t> error_{0};
  std::atomic<uint32_t> callerAsleep_{0};
  alignas(128) std::atomic<int> turns_{0};
  std::atomic<bool> stop_{false};
};

/// Default floating-point control (round to nearest, no traps, denormals kept) for kernels while this lives; then what
/// was before, sticky flags included.
class FloatingPointScope {
 public:
  FloatingPointScope();
  ~FloatingPointScope();
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

 private:
  uint32_t mxcsr_;
  uint16_t x87_;
};

}  // namespace rutter::runtime
