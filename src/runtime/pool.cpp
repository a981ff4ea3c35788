#include "runtime/pool.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <fstream>

#include "base/cpu.h"
#include "base/error.h"

namespace rutter::runtime {
namespace {

void futexWait(std::atomic<uint32_t>& a, uint32_t seen) {
  syscall(SYS_futex, &a, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void futexWake(std::atomic<uint32_t>& a) {
  syscall(SYS_futex, &a, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Spins until `done()` or for `us` microseconds. The clock is asked rarely: it costs more than a pause.
template <typename F>
bool spin(int us, F done) {
  for (int i = 0; i < 64; i++) {
    if (done()) return true;
    _mm_pause();
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  do {
    for (int i = 0; i < 32; i++) {
      if (done()) return true;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return done();
}

int physicalCore(int cpu) {
  std::ifstream f(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  int first = -1;
  return f >> first ? first : cpu;
}

// How many forks lie between this process and the one that first asked.
int forks() {
  static std::atomic<int> count{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  (void)registered;
  return count.load(std::memory_order_relaxed);
}

}  // namespace

FloatingPointScope::FloatingPointScope() : mxcsr_(_mm_getcsr()) {
  asm volatile("fnstcw %0" : "=m"(x87_));
  _mm_setcsr(0x1f80);
  const uint16_t initial = 0x037f;
  asm volatile("fldcw %0" : : "m"(initial));
}
FloatingPointScope::~FloatingPointScope() {
  _mm_setcsr(mxcsr_);
  asm volatile("fldcw %0" : : "m"(x87_));
}

Pool::Pool(const PoolOptions& o) : threads_(usableThreads(o.threads)), forksAtStart_(forks()) {
  if (threads_ > 4096) throw UserError("{} threads asked for; at most 4096", threads_);
  std::vector<int> allowed = allowedCpus();
  if (o.pin && threads_ > 1 && int(allowed.size()) >= threads_) {
    // One processor of every physical core first, then their siblings.
    std::vector<int> rest, used;
    for (int cpu : allowed) {
      int core = physicalCore(cpu);
      if (int(coreOf_.size()) <= cpu) coreOf_.resize(size_t(cpu) + 1, -1);
      coreOf_[size_t(cpu)] = core;
      bool fresh = std::find(used.begin(), used.end(), core) == used.end();
      if (fresh) used.push_back(core);
      (fresh ? slots_ : rest).push_back(cpu);
    }
    slots_.insert(slots_.end(), rest.begin(), rest.end());
    slots_.resize(size_t(threads_));
    for (int cpu : slots_) slotCores_.push_back(coreOf_[size_t(cpu)]);
  }
  // Signals are the program's business: workers take none.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string failure;
  try {
    for (int i = 1; i < threads_; i++) {
      auto w = std::make_unique<Worker>();
      w->thread = std::thread([this, i, self = w.get()] { work(*self, i); });
      workers_.push_back(std::move(w));
      if (!slots_.empty()) pinTo(*workers_.back(), i);
    }
  } catch (const std::system_error& e) {
    failure = e.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure.empty()) return;
  stop();
  throw DeviceError("cannot start {} threads: {}", threads_, failure);
}
Pool::~Pool() {
  stop();
}

void Pool::stop() {
  if (forks() != forksAtStart_) {  // in a child: the threads are not here
    for (auto& w : workers_) w->thread.detach();
    return;
  }
  stop_.store(true);
  for (auto& w : workers_) {
    w->ticket.fetch_add(1);
    futexWake(w->ticket);
  }
  for (auto& w : workers_) w->thread.join();
}

void Pool::pinTo(Worker& w, int slot) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(slots_[size_t(slot)], &set);
  pthread_setaffinity_np(w.thread.native_handle(), sizeof set, &set);  // a refusal costs speed, not correctness
  w.slot = slot;
}
// A worker pinned to the core on which the caller runs would share it with the caller while another core idles.
void Pool::makeWayForCaller() {
  int cpu = sched_getcpu();
  if (cpu < 0 || cpu >= int(coreOf_.size())) return;
  int core = coreOf_[size_t(cpu)];
  if (slotCores_[size_t(freeSlot_)] == core) return;
  for (auto& w : workers_)
    if (slotCores_[size_t(w->slot)] == core) {
      int freed = w->slot;
      pinTo(*w, freeSlot_);
      freeSlot_ = freed;
      return;
    }
}

// The part of thread `index` of `threads`. Chunks are of `grain` tasks; every chunk belongs to exactly one thread.
void Pool::share(const Job& job, int index, int threads) {
  const int64_t chunks = (job.tasks + job.grain - 1) / job.grain;
  void* scratch = job.scratch ? job.scratch + index * job.scratchStride : nullptr;
  auto call = [&](int64_t from, int64_t to) {
    int32_t code = job.kernel(&job.args, from * job.grain, std::min(to * job.grain, job.tasks), scratch);
    if (code == 0) return true;
    int32_t none = 0;
    error_.compare_exchange_strong(none, code, std::memory_order_relaxed);
    return false;
  };
  switch (job.schedule) {
    case Schedule::kInterleaved:
      for (int64_t c = index; c < chunks; c += threads)
        if (!call(c, c + 1)) return;
      return;
    case Schedule::kDynamic:
      for (int64_t c; (c = next_.fetch_add(1, std::memory_order_relaxed)) < chunks;)
        if (!call(c, c + 1) || error_.load(std::memory_order_relaxed)) return;
      return;
    default: {
      int64_t each = chunks / threads, more = chunks % threads;  // the first `more` threads take one chunk extra
      int64_t from = index * each + std::min<int64_t>(index, more), to = from + each + (index < more);
      if (from < to) call(from, to);
    }
  }
}

void Pool::work(Worker& self, int index) {
  FloatingPointScope floatingPoint;
  prctl(PR_SET_NAME, "rutter-pool", 0, 0, 0);
  uint32_t seen = 0;
  int spinUs = 0;  // until the first job there is nothing to hurry for
  while (true) {
    auto called = [&] { return self.ticket.load(std::memory_order_acquire) != seen; };
    if (!spin(spinUs, called)) {
      self.asleep.store(1);  // sequentially consistent with the ticket: either we see it raised, or we are woken
      while (self.ticket.load() == seen) futexWait(self.ticket, seen);
      self.asleep.store(0);
    }
    seen++;
    if (stop_.load(std::memory_order_relaxed)) return;
    spinUs = job_.spinUs;
    share(job_, index, jobThreads_);
    if (pending_.fetch_sub(1) == 1 && callerAsleep_.load()) futexWake(pending_);
  }
}

int32_t Pool::run(const Job& job) {
  if (job.tasks <= 0) return 0;
  void* own = job.scratch;
  const int64_t chunks = (job.tasks + job.grain - 1) / job.grain;
  // Other contexts in the middle of a run have a thread each of their own: leave them that.
  int limit = threads_ - std::max(0, turns_.load(std::memory_order_relaxed) - 1);
  int threads = int(std::min<int64_t>(chunks, limit));
  if (job.maxThreads > 0) threads = std::min(threads, job.maxThreads);
  std::unique_lock<std::mutex> lock(busy_, std::defer_lock);
  if (threads <= 1 || forks() != forksAtStart_ || !lock.try_lock()) return job.kernel(&job.args, 0, job.tasks, own);

  if (!slots_.empty()) makeWayForCaller();
  job_ = job;
  jobThreads_ = threads;
  next_.store(0, std::memory_order_relaxed);
  error_.store(0, std::memory_order_relaxed);
  pending_.store(uint32_t(threads - 1), std::memory_order_relaxed);
  for (int i = 1; i < threads; i++) {
    Worker& w = *workers_[size_t(i) - 1];
    w.ticket.fetch_add(1);
    if (w.asleep.load()) futexWake(w.ticket);
  }
  share(job_, 0, threads);
  auto finished = [&] { return pending_.load(std::memory_order_acquire) == 0; };
  if (!spin(job.waitUs, finished)) {
    callerAsleep_.store(1);
    for (uint32_t left; (left = pending_.load()) != 0;) futexWait(pending_, left);
    callerAsleep_.store(0);
  }
  return error_.load(std::memory_order_relaxed);
}

Pool::Turn::Turn(Pool& p) : pool_(p) {
  pool_.turns_.fetch_add(1, std::memory_order_relaxed);
}
Pool::Turn::~Turn() {
  pool_.turns_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace rutter::runtime
