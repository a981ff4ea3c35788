#include <limits>
#include <mutex>

#include "api/runtime/objects.h"
#include "base/cpu.h"

namespace rutter::api {
namespace {

class Runtime final : public IRuntime {
 public:
  explicit Runtime(ILogger* logger) : reporter_(logger), threads_(usableThreads()) {}

  IEngine* deserializeEngine(void const* blob, std::size_t size) noexcept override {
    return load([&] {
      if (!blob && size) throw UserError("the engine's address is null");
      return runtime::Blob::copy({static_cast<const char*>(blob), size});
    });
  }
  IEngine* deserializeEngine(IStreamReaderV2& reader) noexcept override {
    return load([&] {
      std::string bytes;
      for (size_t chunk = 1 << 16; true; chunk = std::min<size_t>(chunk * 2, 64 << 20)) {
        size_t at = bytes.size();
        bytes.resize(at + chunk);
        int64_t n = reader.read(bytes.data() + at, int64_t(chunk), nullptr);
        if (n < 0 || n > int64_t(chunk)) throw UserError("the stream reader failed after {} bytes", at);
        bytes.resize(at + size_t(n));
        if (n == 0) break;
      }
      return runtime::Blob::copy(bytes);
    });
  }
  IEngine* deserializeFile(char const* path) noexcept override {
    return load([&] {
      if (!path) throw UserError("the engine's path is null");
      return runtime::Blob::map(path);
    });
  }
  bool setMaxThreads(int32_t n) noexcept override {
    return reporter_.guard(false, [&] {
      if (n < 1 || n > 4096) throw UserError("{} threads asked for; 1 to 4096 are possible", n);
      std::lock_guard lock(mutex_);
      if (n != threads_) pool_.reset();
      threads_ = n;
      return true;
    });
  }
  int32_t getMaxThreads() const noexcept override { return threads_; }
  IQueue* createQueue() noexcept override { return makeQueue(reporter_); }
  void setErrorRecorder(IErrorRecorder* r) noexcept override { reporter_.setRecorder(r); }
  IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }
  ILogger* getLogger() const noexcept override { return reporter_.logger(); }
  void setTemporaryDirectory(char const* path) noexcept override {
    reporter_.guard(false, [&] { return temporary_ = path ? path : "", true; });
  }
  char const* getTemporaryDirectory() const noexcept override { return temporary_.c_str(); }

 private:
  template <typename F>
  IEngine* load(F bytes) noexcept {
    return reporter_.guard(static_cast<IEngine*>(nullptr), [&]() -> IEngine* {
      runtime::LoadOptions options;
      options.temporaryDirectory = temporary_;
      auto engine = runtime::Engine::load(bytes(), options);
      std::lock_guard lock(mutex_);
      if (!pool_) pool_ = std::make_shared<runtime::Pool>(runtime::PoolOptions{threads_, true});
      return new Engine(std::move(engine), pool_, reporter_);
    });
  }

  Reporter reporter_;
  std::mutex mutex_;
  int threads_;
  std::string temporary_;
  std::shared_ptr<runtime::Pool> pool_;
};

}  // namespace
}  // namespace rutter::api

extern "C" void* rutterCreateInferRuntime(void* logger, int32_t apiVersion) noexcept {
  auto* l = static_cast<rutter::ILogger*>(logger);
  rutter::api::Reporter reporter(l);
  return reporter.guard(static_cast<void*>(nullptr), [&]() -> void* {
    if (!l) throw rutter::UserError("createInferRuntime needs a logger");
    if (apiVersion < 1 || apiVersion > RUTTER_API_VERSION)
      throw rutter::UserError(
          "the program was compiled against version {} of Rutter's headers, this library has {}: use matching ones",
          apiVersion, RUTTER_API_VERSION);
    return static_cast<rutter::IRuntime*>(new rutter::api::Runtime(l));
  });
}
extern "C" int32_t rutterEngineFormatVersion(void const* blob, std::size_t size) noexcept {
  try {
    return int32_t(rutter::runtime::readFormatVersion({static_cast<const char*>(blob), size}));
  } catch (...) {
    return -1;
  }
}
extern "C" char const* rutterRuntimeVersion() noexcept {
  return RUTTER_VERSION;
}
