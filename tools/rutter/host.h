#pragma once
// The program's side of the public API: messages to the console, errors as exceptions.
#include <rutter/runtime.h>

#include <atomic>
#include <mutex>
#include <string>

#include "base/error.h"
#include "cli/console.h"

namespace rutter::cli {

/// Errors are not logged here: they come back through Errors and end as the one line of the program.
class HostLogger : public ILogger {
 public:
  explicit HostLogger(Console& c) : console_(c) {}
  void log(Severity severity, AsciiChar const* msg) noexcept override;

 private:
  Console& console_;
};

/// Keeps the first error since take().
class Errors : public IErrorRecorder {
 public:
  int32_t getNbErrors() const noexcept override;
  ErrorCode getErrorCode(int32_t) const noexcept override;
  ErrorDesc getErrorDesc(int32_t) const noexcept override;
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override;
  bool reportError(ErrorCode val, ErrorDesc desc) noexcept override;
  RefCount incRefCount() noexcept override { return 1; }
  RefCount decRefCount() noexcept override { return 1; }

  /// Throws what was reported, or `otherwise`.
  [[noreturn]] void raise(const std::string& otherwise);
  template <typename T>
  T* need(T* p, const std::string& otherwise) {
    if (!p) raise(otherwise);
    return p;
  }
  void need(bool ok, const std::string& otherwise) {
    if (!ok) raise(otherwise);
  }

 private:
  mutable std::mutex mutex_;
  bool any_ = false;
  ErrorCode code_ = ErrorCode::kSUCCESS;
  std::string text_;
};

/// What Ctrl-C, SIGTERM and SIGHUP ask for: 0 nothing, 1 to end cleanly, 2 to end at once. Counted by a handler while
/// an Interrupts lives; a third one kills.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  static const std::atomic<int>& count();
};

}  // namespace rutter::cli
