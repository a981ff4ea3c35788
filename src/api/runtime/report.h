#pragma once
// The border between exceptions inside and the noexcept public API: every failure becomes a null or a false, a message
// to the logger and an entry in the error recorder.
#include <rutter/types.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "runtime/context.h"

namespace rutter::api {

/// An error recorder with its reference counted.
class RecorderRef {
 public:
  RecorderRef() = default;
  explicit RecorderRef(IErrorRecorder* r) { set(r); }
  RecorderRef(const RecorderRef& o) : RecorderRef(o.get()) {}
  RecorderRef& operator=(const RecorderRef& o) {
    set(o.get());
    return *this;
  }
  ~RecorderRef() { set(nullptr); }
  void set(IErrorRecorder* r) noexcept {
    if (r) r->incRefCount();
    if (recorder_) recorder_->decRefCount();
    recorder_ = r;
  }
  IErrorRecorder* get() const noexcept { return recorder_; }

 private:
  IErrorRecorder* recorder_ = nullptr;
};

/// An error with a code of its own choosing.
class CodedError : public UserError {
 public:
  CodedError(ErrorCode code, const std::string& text) : UserError(text), code(code) {}
  ErrorCode code;
};

class Reporter {
 public:
  explicit Reporter(ILogger* logger, IErrorRecorder* recorder = nullptr) : logger_(logger), recorder_(recorder) {}
  ILogger* logger() const noexcept { return logger_; }
  IErrorRecorder* recorder() const noexcept { return recorder_.get(); }
  void setRecorder(IErrorRecorder* r) noexcept { recorder_.set(r); }

  void report(ErrorCode code, const char* text) const noexcept {
    bool bug = code == ErrorCode::kINTERNAL_ERROR;
    if (logger_) logger_->log(bug ? ILogger::Severity::kINTERNAL_ERROR : ILogger::Severity::kERROR, text);
    if (recorder_.get()) recorder_.get()->reportError(code, text);
  }
  /// The exception in flight, as code and text.
  void reportException() const noexcept {
    try {
      throw;
    } catch (const CodedError& e) {
      report(e.code, e.what());
    } catch (const runtime::ExecutionError& e) {
      report(ErrorCode::kFAILED_EXECUTION, e.what());
    } catch (const UserError& e) {
      report(ErrorCode::kINVALID_ARGUMENT, e.what());
    } catch (const DeviceError& e) {
      report(ErrorCode::kFAILED_INITIALIZATION, e.what());
    } catch (const InternalError& e) {
      report(ErrorCode::kINTERNAL_ERROR, e.what());
    } catch (const std::bad_alloc&) {
      report(ErrorCode::kFAILED_ALLOCATION, "out of memory");
    } catch (const std::exception& e) {
      report(ErrorCode::kUNSPECIFIED_ERROR, e.what());
    } catch (...) {
      report(ErrorCode::kUNSPECIFIED_ERROR, "unknown exception");
    }
  }
  /// Runs `f` with this thread's messages going to the logger; `failed` if it throws.
  template <typename F, typename R = decltype(std::declval<F>()())>
  R guard(R failed, F f) const noexcept {
    try {
      LogScope scope([logger = logger_](Severity s, const std::string& text) {
        if (logger) logger->log(static_cast<ILogger::Severity>(s), text.c_str());
      });
      return f();
    } catch (...) {
      reportException();
      return failed;
    }
  }

 private:
  ILogger* logger_;
  RecorderRef recorder_;
};

/// Bytes that own themselves.
class HostMemory final : public IHostMemory {
 public:
  explicit HostMemory(std::string bytes) : bytes_(std::move(bytes)) {}
  void* data() const noexcept override { return const_cast<char*>(bytes_.data()); }
  std::size_t size() const noexcept override { return bytes_.size(); }
  DataType type() const noexcept override { return DataType::kINT8; }

 private:
  std::string bytes_;
};

/// nbDims -1 if the rank is above Dims::MAX_DIMS.
template <typename V>
Dims makeDims(const V& v) {
  Dims d;
  d.nbDims = v.size() <= size_t(Dims::MAX_DIMS) ? int32_t(v.size()) : -1;
  for (int32_t i = 0; i < d.nbDims; i++) d.d[i] = v[size_t(i)];
  return d;
}
inline Dims invalidDims() {
  Dims d;
  d.nbDims = -1;
  return d;
}

}  // namespace rutter::api
