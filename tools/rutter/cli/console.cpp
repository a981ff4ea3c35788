#include "cli/console.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>

#include "cli/values.h"

namespace rutter::cli {
namespace {

std::mutex g_mutex;
int g_outputError = 0;  // errno of the first write to standard output that failed

void put(std::FILE* to, const std::string& text) {
  std::lock_guard lock(g_mutex);
  const bool whole = std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0;
  if (!whole && to == stdout && !g_outputError) g_outputError = errno;
}

}  // namespace

std::string bannerTail(const std::vector<std::string>& argv) {
  return fmt::format("rutter [Rutter v{}] # {}", RUTTER_VERSION, shellJoin(argv));
}

std::string logPrefix(Severity s, int64_t seconds) {
  std::time_t t = seconds;
  std::tm tm{};
  localtime_r(&t, &tm);
  char stamp[64];
  std::strftime(stamp, sizeof stamp, "%m/%d/%Y-%H:%M:%S", &tm);
  return fmt::format("[{}] [{}] ", stamp, "FEWIV"[static_cast<int>(s)]);
}

void Console::log(Severity s, std::string_view text) {
  if (s == Severity::kVerbose && !verbose_) return;
  std::string out;
  const auto prefix = logPrefix(s, std::time(nullptr));
  // Every line of a message has its prefix: readers cut the log by lines.
  for (size_t from = 0; from <= text.size();) {
    size_t to = std::min(text.find('\n', from), text.size());
    out += prefix;
    out += text.substr(from, to - from);
    out += '\n';
    from = to + 1;
  }
  put(s <= Severity::kWarning || json_ ? stderr : stdout, out);
}

void Console::note(std::string_view text) {
  put(stderr, fmt::format("{}{}\n", logPrefix(Severity::kInfo, std::time(nullptr)), text));
}

void Console::lines(const std::vector<std::string>& all) {
  for (const auto& l : all) info(l);
}

void Console::marker(std::string_view word, std::string_view text) {
  put(json_ ? stderr : stdout, fmt::format("&&&& {} {}\n", word, text));
}
void Console::running() {
  marker("RUNNING", tail_);
}
std::string outputError() {
  std::lock_guard lock(g_mutex);
  if (std::fflush(stdout) != 0 && !g_outputError) g_outputError = errno;
  if (!std::ferror(stdout) && !g_outputError) return "";
  return fmt::format("standard output could not be written{}{}", g_outputError ? ": " : "",
                     g_outputError ? std::strerror(g_outputError) : "");
}

int Console::passed() {
  if (const auto e = outputError(); !e.empty()) {
    error(e);
    return failed();
  }
  marker("PASSED", tail_);
  return 0;
}
int Console::failed() {
  marker("FAILED", tail_);
  return 1;
}
void Console::result(std::string_view text) {
  std::string out(text);
  if (out.empty() || out.back() != '\n') out += '\n';
  put(stdout, out);
}

}  // namespace rutter::cli
