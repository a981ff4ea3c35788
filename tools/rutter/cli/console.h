#pragma once
// What the program prints: time-stamped log lines, the `&&&&` banner and closing line, and results.
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace rutter::cli {

/// "rutter [Rutter v0.1.0] # <command line>": the tail of all `&&&&` lines.
std::string bannerTail(const std::vector<std::string>& argv);
/// "[MM/DD/YYYY-HH:MM:SS] [I] " for a time in seconds since 1970, in local time.
std::string logPrefix(Severity s, int64_t seconds);

/// "standard output could not be written: <reason>"; "" if all that was printed so far has arrived.
std::string outputError();

/// Log lines go to standard output (info, verbose) or standard error (the rest); with `--json` all to standard error.
/// Several threads may use it.
class Console {
 public:
  explicit Console(const std::vector<std::string>& argv) : tail_(bannerTail(argv)) {}
  void setJson(bool on) { json_ = on; }
  void setVerbose(bool on) { verbose_ = on; }
  bool json() const { return json_; }

  void log(Severity s, std::string_view text);
  void info(std::string_view text) { log(Severity::kInfo, text); }
  void warning(std::string_view text) { log(Severity::kWarning, text); }
  void error(std::string_view text) { log(Severity::kError, text); }
  /// An info line on standard error: beside a listing that programs read.
  void note(std::string_view text);
  void lines(const std::vector<std::string>& all);

  void running();
  /// The closing line; the exit code that goes with it. What could not be printed makes a failure of a pass.
  int passed();
  int failed();
  /// "&&&& <word> <text>" without prefix.
  void marker(std::string_view word, std::string_view text);
  /// A result for programs, on standard output, as it is.
  void result(std::string_view text);

 private:
  std::string tail_;
  bool json_ = false, verbose_ = false;
};

}  // namespace rutter::cli
