#pragma once
// Messages for people. One sink for the process; the API installs the user's ILogger per object through LogScope.
#include <fmt/format.h>

#include <functional>
#include <string>

namespace rutter {

enum class Severity { kInternalError = 0, kError = 1, kWarning = 2, kInfo = 3, kVerbose = 4 };
using LogSink = std::function<void(Severity, const std::string&)>;

/// Routes this thread's messages to `sink` while it lives (scopes nest).
class LogScope {
 public:
  explicit LogScope(LogSink sink);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  LogSink previous_;
};
void logMessage(Severity s, const std::string& text);
template <typename... A>
void logInfo(fmt::format_string<A...> f, A&&... a) {
  logMessage(Severity::kInfo, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void logWarning(fmt::format_string<A...> f, A&&... a) {
  logMessage(Severity::kWarning, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void logVerbose(fmt::format_string<A...> f, A&&... a) {
  logMessage(Severity::kVerbose, fmt::format(f, std::forward<A>(a)...));
}

}  // namespace rutter
