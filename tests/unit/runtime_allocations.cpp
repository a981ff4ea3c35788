// A run allocates nothing once shapes and addresses are set. This program's operator new counts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/context.h"
#include "runtime_plans.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
std::atomic<long> g_news{0};
}
__attribute__((noinline)) void* operator new(std::size_t n) {
  g_news.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept {
  std::free(p);
}
__attribute__((noinline)) void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace rutter::runtime {
namespace {

TEST(Allocations, NoneInARun) {
  auto pool = std::make_shared<Pool>(PoolOptions{2, true});
  Context c(testing_::SumTwice().load(), pool);
  float x[40] = {}, y[40] = {}, z[40], other[40];
  c.setInputShape(0, {8, 5});
  c.setInputShape(1, {8, 5});
  c.setAddress(0, x);
  c.setAddress(1, y);
  c.setAddress(2, z);
  c.setProfiling(true);
  c.run();
  long before = g_news.load();
  for (int i = 0; i < 100; i++) {
    c.setAddress(2, i % 2 ? z : other);  // new addresses cost no memory either
    c.run();
  }
  EXPECT_EQ(g_news.load(), before);
  // The counter counts.
  auto one = std::make_unique<int>(1);
  EXPECT_EQ(g_news.load(), before + *one);
}

}  // namespace
}  // namespace rutter::runtime

#endif
