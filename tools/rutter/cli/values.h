#pragma once
// Values of command-line flags: complete or an error, never "10x" read as 10. Every error is a UserError that begins
// with the flag as it was written.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace rutter::cli {

/// `name:1x3x224x224`; without dims (`name:` or `name:scalar`) a scalar. The name may hold one `*`.
struct NamedShape {
  std::string name;
  std::vector<int64_t> dims;
  bool operator==(const NamedShape&) const = default;
};
/// `name:path`; the name may hold one `*`.
struct NamedFile {
  std::string name, file;
  bool operator==(const NamedFile&) const = default;
};
/// `pool:size`, bytes.
struct NamedSize {
  std::string name;
  uint64_t bytes;
  bool operator==(const NamedSize&) const = default;
};

int64_t parseInt(std::string_view flag, std::string_view text, int64_t min = std::numeric_limits<int64_t>::min(),
                 int64_t max = std::numeric_limits<int64_t>::max());
/// Finite numbers only.
double parseReal(std::string_view flag, std::string_view text, double min = std::numeric_limits<double>::lowest(),
                 double max = std::numeric_limits<double>::max());
/// A number with `us`, `ms`, `s`, `m` or `h`, in seconds; a bare number counts in `bareUnit` seconds.
double parseTime(std::string_view flag, std::string_view text, double bareUnit);
/// A number with B, K, M or G (powers of 1024), in bytes; a bare number counts in `bareUnit` bytes.
uint64_t parseSize(std::string_view flag, std::string_view text, uint64_t bareUnit);

/// Items between commas; none may be empty. Commas inside single quotes do not separate.
std::vector<std::string> parseList(std::string_view flag, std::string_view text);
/// `name:1x3,'in:0':scalar`: the last colon outside quotes splits; no name twice.
std::vector<NamedShape> parseShapes(std::string_view flag, std::string_view text);
std::vector<NamedFile> parseFiles(std::string_view flag, std::string_view text);
std::vector<NamedSize> parseSizes(std::string_view flag, std::string_view text, uint64_t bareUnit);
/// Percentiles in [0, 100].
std::vector<double> parsePercentiles(std::string_view flag, std::string_view text);

/// A `~` or `~/…` at the start stands for the home folder.
std::string expandHome(const std::string& path);
/// For people: arguments joined by blanks, in single quotes where the shell would read them otherwise.
std::string shellJoin(const std::vector<std::string>& args);

}  // namespace rutter::cli
