#include "base/log.h"

namespace rutter {
namespace {
thread_local LogSink t_sink;
}
LogScope::LogScope(LogSink sink) : previous_(std::move(t_sink)) {
  t_sink = std::move(sink);
}
LogScope::~LogScope() {
  t_sink = std::move(previous_);
}
// Without a sink, warnings and errors go to standard error: a library must not print progress on its own.
void logMessage(Severity s, const std::string& text) {
  if (t_sink) return t_sink(s, text);
  if (s <= Severity::kWarning) fmt::print(stderr, "rutter: {}\n", text);
}
}  // namespace rutter
