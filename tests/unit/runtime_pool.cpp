#include <fenv.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <chrono>
#include <set>
#include <thread>

#include "base/cpu.h"
#include "runtime/pool.h"

namespace rutter::runtime {
namespace {

// ptr[0]: int32 counters, one a task; dim[0]: task that fails (or -1).
int32_t countTasks(const Args* a, int64_t begin, int64_t end, void*) {
  auto* n = static_cast<int32_t*>(a->ptr[0]);
  for (int64_t i = begin; i < end; i++) {
    n[i]++;
    if (i == a->dim[0]) return 7;
  }
  return 0;
}
struct Counting {
  explicit Counting(int64_t tasks, int64_t failing = -1) : counts(size_t(tasks)), ptr(counts.data()), dim(failing) {
    job.kernel = countTasks;
    job.args = {&ptr, &dim};
    job.tasks = tasks;
  }
  std::vector<int32_t> counts;
  void* ptr;
  int64_t dim;
  Job job;
};

TEST(Pool, EveryTaskRunsOnceUnderEverySchedule) {
  for (int threads : {1, 2, 3, 8}) {
    Pool pool({threads, true});
    EXPECT_EQ(pool.threads(), threads);
    for (auto s : {Schedule::kContiguous, Schedule::kInterleaved, Schedule::kDynamic})
      for (int64_t tasks : {0, 1, 2, 7, 64, 1000})
        for (int64_t grain : {1, 3, 100})
          for (int limit : {0, 1, 2}) {
            Counting c(tasks);
            c.job.schedule = s;
            c.job.grain = grain;
            c.job.maxThreads = limit;
            ASSERT_EQ(pool.run(c.job), 0);
            for (int32_t n : c.counts) ASSERT_EQ(n, 1) << int(s) << ' ' << tasks << ' ' << grain;
          }
  }
}
TEST(Pool, ChunksStartAtMultiplesOfTheGrain) {
  Pool pool({3, true});
  for (auto s : {Schedule::kContiguous, Schedule::kInterleaved, Schedule::kDynamic}) {
    Counting c(100);
    c.job.grain = 8;
    c.job.schedule = s;
    c.job.kernel = [](const Args*, int64_t begin, int64_t end, void*) {
      return int32_t(begin % 8 || (end % 8 && end != 100));
    };
    EXPECT_EQ(pool.run(c.job), 0) << int(s);
  }
}
TEST(Pool, AFailureIsReportedAndTheNextRunIsClean) {
  Pool pool({4, true});
  for (auto s : {Schedule::kContiguous, Schedule::kInterleaved, Schedule::kDynamic})
    for (int64_t bad : {0, 50, 99}) {
      Counting c(100, bad);
      c.job.schedule = s;
      EXPECT_EQ(pool.run(c.job), 7);
      Counting good(100);
      EXPECT_EQ(pool.run(good.job), 0);
    }
}
TEST(Pool, ScratchIsPrivateToAThread) {
  Pool pool({4, true});
  std::vector<int64_t> scratch(4 * 8);
  Counting c(400);
  c.job.scratch = reinterpret_cast<char*>(scratch.data());
  c.job.scratchStride = 64;
  c.job.kernel = [](const Args*, int64_t begin, int64_t end, void* s) {
    auto* mine = static_cast<int64_t*>(s);
    for (int64_t i = begin; i < end; i++) ++*mine;
    return 0;
  };
  ASSERT_EQ(pool.run(c.job), 0);
  for (int t = 0; t < 4; t++) EXPECT_EQ(scratch[size_t(t) * 8], 100);
}
// Also what the thread sanitizer looks at: several callers at once, with pauses long enough that workers sleep.
TEST(Pool, ConcurrentCallersAllGetTheirAnswers) {
  Pool pool({3, true});
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; t++)
    callers.emplace_back([&, t] {
      for (int i = 0; i < 300; i++) {
        Counting c(97, i % 10 == 9 ? i % 97 : -1);
        c.job.schedule = Schedule(i % 3);
        c.job.spinUs = i % 50 == 0 ? 0 : 20;
        c.job.waitUs = i % 3 * 20;
        Pool::Turn turn(pool);
        int32_t want = i % 10 == 9 ? 7 : 0;
        wrong += pool.run(c.job) != want;
        if (want == 0)
          for (int32_t n : c.counts) wrong += n != 1;
        if (i % 50 == t) std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}
TEST(Pool, SleepingWorkersWake) {
  Pool pool({2, true});
  for (int i = 0; i < 20; i++) {
    Counting c(2);
    c.job.spinUs = 0;
    ASSERT_EQ(pool.run(c.job), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
TEST(Pool, CallersAffinityStaysAndWorkersArePinnedElsewhere) {
  auto before = allowedCpus();
  Pool pool({2, true});
  static std::atomic<int> tids[2];
  Counting c(2);
  c.job.kernel = [](const Args*, int64_t begin, int64_t, void*) {
    tids[begin] = gettid();
    return 0;
  };
  ASSERT_EQ(pool.run(c.job), 0);
  EXPECT_EQ(allowedCpus(), before);
  if (before.size() < 2) GTEST_SKIP() << "one processor: nothing to pin to";
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(tids[1], sizeof set, &set), 0);
  EXPECT_EQ(CPU_COUNT(&set), 1);
  // A caller that runs on the worker's processor makes the worker move.
  std::thread([&] {
    cpu_set_t here;
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    ASSERT_EQ(pool.run(c.job), 0);
    ASSERT_EQ(sched_getaffinity(tids[1], sizeof here, &here), 0);
    EXPECT_FALSE(CPU_EQUAL(&set, &here));
  }).join();
}
TEST(Pool, FloatingPointStateIsTheCallersAfterwardsAndTheDefaultInside) {
  Pool pool({2, true});
  Counting c(2);
  c.job.kernel = [](const Args*, int64_t, int64_t, void*) { return int32_t((_mm_getcsr() & 0xffc0) != 0x1f80); };
  const uint32_t mine = _mm_getcsr() | 0x8040 | 0x4000;  // flush to zero, denormals are zero, round up
  _mm_setcsr(mine);
  {
    FloatingPointScope scope;
    EXPECT_EQ(pool.run(c.job), 0);
  }
  EXPECT_EQ(_mm_getcsr(), mine);
  _mm_setcsr(0x1f80);
}
TEST(Pool, AForkedChildRunsAloneAndCanMakeItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads after a fork";
#endif
  Pool pool({2, true});
  Counting warm(10);
  ASSERT_EQ(pool.run(warm.job), 0);
  pid_t child = fork();
  if (child == 0) {
    Counting c(10);
    int bad = pool.run(c.job);
    for (int32_t n : c.counts) bad += n != 1;
    {
      Pool own({2, true});
      Counting d(10);
      bad += own.run(d.job);
    }
    _exit(bad ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rutter::runtime
