#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "api/runtime/objects.h"

namespace rutter::api {

class Queue final : public IQueue {
 public:
  Queue() : thread_([this] { work(); }) {}
  ~Queue() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  bool synchronize() noexcept override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
    return !std::exchange(failed_, false);
  }
  void put(std::function<bool()> job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_all();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      busy_ = true;
      lock.unlock();
      bool ok = job();
      lock.lock();
      busy_ = false;
      failed_ |= !ok;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<bool()>> jobs_;
  bool busy_ = false, failed_ = false, stop_ = false;
  std::thread thread_;
};

IQueue* makeQueue(const Reporter& reporter) {
  return reporter.guard(static_cast<IQueue*>(nullptr), []() -> IQueue* { return new Queue; });
}
void enqueue(IQueue* queue, std::function<bool()> work) {
  auto* q = dynamic_cast<Queue*>(queue);
  if (!q) throw UserError("the queue is not one that IRuntime::createQueue made; pass null to run at once");
  q->put(std::move(work));
}

}  // namespace rutter::api
