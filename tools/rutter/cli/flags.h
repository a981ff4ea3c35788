#pragma once
// The table of flags, and the cutting of a command line by it. A table of our own rather than CLI11: the rules are
// trtexec's (values only by "=", groups in which order matters, booleans that are an error with any value but
// true/false, flags that are known but ignored or refused), and one table also makes help and suggestions.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rutter::cli {

enum class Flag {
#define FLAG(name, ...) k_##name,
#include "cli/flags.def"
#undef FLAG
};

enum class Kind {
  Switch,
  OptText,
  Text,
  Path,
  Int,
  Real,
  Millis,
  Seconds,
  Choice,
  Shapes,
  Files,
  Sizes,
  List,
  Percentiles
};
enum class Status { Yes, Repeat, Later, Warn, Na, Error };
enum class Group { Model, Build, Tuning, Inference, Reporting, System };

struct FlagInfo {
  Flag flag;
  std::string_view name;  ///< without dashes
  Kind kind;
  Status status;
  Group group;
  std::string_view argument;  ///< see flags.def
  std::string_view help;
  std::string_view note;
};
std::span<const FlagInfo> flagTable();
const FlagInfo& info(Flag f);

/// One argument as given.
struct Given {
  Flag flag;
  std::optional<std::string> value;  ///< what follows "="
  size_t position = 0;               ///< index in argv
};

/// A command line, cut and checked flag by flag; what flags mean together is checked when Options are made of it.
class CommandLine {
 public:
  /// `args` without the program's name. UserError: unknown or refused flags, missing or malformed values, a flag given
  /// twice. Ignored flags leave a warning.
  static CommandLine parse(const std::vector<std::string>& args);
  /// True if `flag` (--help, -h, --version) is among `args`, however broken the rest is.
  static bool mentions(const std::vector<std::string>& args, std::string_view flag);

  bool has(Flag f) const;    ///< given, and not as =false
  bool given(Flag f) const;  ///< given at all
  /// The value of a flag that may be given once; empty if it is not given.
  std::string text(Flag f) const;
  std::optional<std::string> value(Flag f) const;
  const std::vector<Given>& all() const { return given_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<Given> given_;
  std::vector<std::string> warnings_;
};

/// The text of --help: flags that do something, by group.
std::string helpText();

}  // namespace rutter::cli
