#include "cli/console.h"

#include <cstdio>
#include <ctime>
#include <mutex>

#include "cli/values.h"

namespace rutter::cli {
namespace {

std::mutex g_mutex;

void put(std::FILE* to, const std::string& text) {
  std::lock_guard lock(g_mutex);
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
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
int Console::passed() {
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
