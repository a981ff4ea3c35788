#pragma once
// The three kinds of failure inside Rutter. The public API turns them into error-recorder entries; the command
// line into one line and exit 1. A tactic that cannot take a problem does not throw: a refusal is a value.
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace rutter {

/// Something that the user gave is wrong. The text says what, where, and what to do, on one line.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& text) : std::runtime_error(text) {}
  template <typename... A>
  UserError(fmt::format_string<A...> f, A&&... a) : std::runtime_error(fmt::format(f, std::forward<A>(a)...)) {}
};
/// The machine failed (memory, disk, device): trying again elsewhere may work.
class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(const std::string& text) : std::runtime_error(text) {}
  template <typename... A>
  DeviceError(fmt::format_string<A...> f, A&&... a) : std::runtime_error(fmt::format(f, std::forward<A>(a)...)) {}
};
/// No room is left where something was being written, or the quota is used up.
class DiskFullError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};
/// A bug in Rutter. The text names the place and asks for a report.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& text)
      : std::logic_error("internal error (please report it with the model and the command line): " + text) {}
};

}  // namespace rutter

/// Checks an invariant in every build type; a failure is an InternalError that names file and line.
#define RUTTER_CHECK(cond, ...)                                                                          \
  do {                                                                                                   \
    if (!(cond)) [[unlikely]]                                                                            \
      throw ::rutter::InternalError(                                                                     \
          ::fmt::format("{}:{}: {} failed: {}", __FILE__, __LINE__, #cond, ::fmt::format(__VA_ARGS__))); \
  } while (0)
