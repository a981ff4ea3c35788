#pragma once
// A logger and an error recorder as a program would write them.
#include <rutter/rutter.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rutter::test {

class Logger : public ILogger {
 public:
  void log(Severity s, char const* msg) noexcept override {
    std::lock_guard lock(mutex_);
    lines.emplace_back(s, msg);
  }
  std::vector<std::pair<Severity, std::string>> lines;

 private:
  std::mutex mutex_;
};
class Recorder : public IErrorRecorder {
 public:
  int32_t getNbErrors() const noexcept override { return int32_t(errors.size()); }
  ErrorCode getErrorCode(int32_t i) const noexcept override { return errors[size_t(i)].first; }
  ErrorDesc getErrorDesc(int32_t i) const noexcept override { return errors[size_t(i)].second.c_str(); }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override { errors.clear(); }
  bool reportError(ErrorCode c, ErrorDesc d) noexcept override {
    std::lock_guard lock(mutex_);
    errors.emplace_back(c, d);
    return false;
  }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  /// The latest error, which is then forgotten: "code: text", or "" if there was none.
  std::string take() {
    if (errors.empty()) return "";
    auto e = errors.back();
    errors.clear();
    return std::to_string(int(e.first)) + ": " + e.second;
  }
  std::vector<std::pair<ErrorCode, std::string>> errors;
  std::atomic<int> references = 0;

 private:
  std::mutex mutex_;
};

}  // namespace rutter::test
