#include "host.h"

#include <csignal>
#include <iterator>

namespace rutter::cli {

void HostLogger::log(Severity severity, AsciiChar const* msg) noexcept {
  try {
    if (severity >= Severity::kWARNING) console_.log(static_cast<rutter::Severity>(severity), msg);
  } catch (const std::exception&) {  // a log line that cannot be written stops nothing
  }
}

int32_t Errors::getNbErrors() const noexcept {
  std::lock_guard lock(mutex_);
  return any_;
}
ErrorCode Errors::getErrorCode(int32_t) const noexcept {
  std::lock_guard lock(mutex_);
  return code_;
}
IErrorRecorder::ErrorDesc Errors::getErrorDesc(int32_t) const noexcept {
  std::lock_guard lock(mutex_);
  return text_.c_str();
}
void Errors::clear() noexcept {
  std::lock_guard lock(mutex_);
  any_ = false;
  text_.clear();
}
bool Errors::reportError(ErrorCode val, ErrorDesc desc) noexcept {
  std::lock_guard lock(mutex_);
  if (!any_) {
    any_ = true;
    code_ = val;
    try {
      text_ = desc;
    } catch (const std::exception&) {
    }
  }
  return false;
}

void Errors::raise(const std::string& otherwise) {
  std::unique_lock lock(mutex_);
  const std::string text = any_ && !text_.empty() ? text_ : otherwise;
  const auto code = any_ ? code_ : ErrorCode::kUNSPECIFIED_ERROR;
  any_ = false;
  lock.unlock();
  if (code == ErrorCode::kFAILED_ALLOCATION || code == ErrorCode::kFAILED_INITIALIZATION) throw DeviceError("{}", text);
  throw UserError("{}", text);
}

namespace {
std::atomic<int> g_interrupts{0};
// Ctrl-C, the system's request to end (timeout, shutdown), the terminal that goes away.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction g_before[std::size(kSignals)];

void onInterrupt(int signal) {
  if (g_interrupts.fetch_add(1) >= 2) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}
}  // namespace

Interrupts::Interrupts() {
  g_interrupts = 0;
  struct sigaction a{};
  a.sa_handler = onInterrupt;
  sigemptyset(&a.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); i++) {
    ::sigaction(kSignals[i], &a, &g_before[i]);
    // Under nohup a terminal that goes away is nothing to us.
    if (kSignals[i] == SIGHUP && g_before[i].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &g_before[i], nullptr);
  }
}
Interrupts::~Interrupts() {
  for (size_t i = 0; i < std::size(kSignals); i++) ::sigaction(kSignals[i], &g_before[i], nullptr);
}
const std::atomic<int>& Interrupts::count() {
  return g_interrupts;
}

}  // namespace rutter::cli
