#include "cli/values.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/error.h"

namespace rutter::cli {
namespace {

template <typename... A>
[[noreturn]] void fail(std::string_view flag, std::string_view text, fmt::format_string<A...> f, A&&... a) {
  throw UserError("--{}={}: {}", flag, text, fmt::format(f, std::forward<A>(a)...));
}

// Plain finite decimal numbers: std::from_chars alone would also take "inf" and "nan".
bool readReal(std::string_view text, double& v, std::string_view* rest = nullptr) {
  if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-' || text[0] == '.'))
    return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || !std::isfinite(v)) return false;
  if (rest)
    *rest = std::string_view(end, text.data() + text.size() - end);
  else if (end != text.data() + text.size())
    return false;
  return true;
}

struct Named {
  std::string name;
  std::string_view rest;
};

// The last colon outside quotes splits; a name in single quotes loses them.
Named splitName(std::string_view flag, std::string_view all, std::string_view item, const char* form) {
  Named out;
  if (item.starts_with('\'')) {
    auto end = item.find('\'', 1);
    if (end == item.npos || end + 1 >= item.size() || item[end + 1] != ':')
      fail(flag, all, "'{}' is not {}", item, form);
    out.name = item.substr(1, end - 1);
    out.rest = item.substr(end + 2);
  } else {
    auto colon = item.rfind(':');
    if (colon == item.npos) fail(flag, all, "'{}' is not {}", item, form);
    out.name = item.substr(0, colon);
    out.rest = item.substr(colon + 1);
  }
  if (out.name.empty()) fail(flag, all, "'{}' has no name before the colon; write {}", item, form);
  if (out.name.find('*') != out.name.rfind('*')) fail(flag, all, "the name '{}' holds more than one *", out.name);
  return out;
}

template <typename T>
void checkUnique(std::string_view flag, std::string_view all, const std::vector<T>& items) {
  std::set<std::string> seen;
  for (const auto& i : items)
    if (!seen.insert(i.name).second) fail(flag, all, "'{}' is given twice", i.name);
}

}  // namespace

int64_t parseInt(std::string_view flag, std::string_view text, int64_t min, int64_t max) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  bool complete = end == text.data() + text.size() && !text.empty();
  if (error == std::errc::invalid_argument || !complete) fail(flag, text, "'{}' is not an integer", text);
  if (error == std::errc() && v >= min && v <= max) return v;
  constexpr auto kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  if (min == kLow && max == kHigh) fail(flag, text, "the number is too large");
  if (max == kHigh || max == INT32_MAX)
    fail(flag, text, "must be an integer from {}{}", min, max == INT32_MAX ? fmt::format(" to {}", max) : " on");
  fail(flag, text, "must be an integer from {} to {}", min, max);
}

double parseReal(std::string_view flag, std::string_view text, double min, double max) {
  double v = 0;
  if (!readReal(text, v)) fail(flag, text, "'{}' is not a number", text);
  if (v < min && max == std::numeric_limits<double>::max()) fail(flag, text, "must not be below {}", min);
  if (v < min || v > max) fail(flag, text, "must lie from {} to {}", min, max);
  return v;
}

double parseTime(std::string_view flag, std::string_view text, double bareUnit) {
  double v = 0;
  std::string_view unit;
  if (!readReal(text, v, &unit)) fail(flag, text, "'{}' is not a time; write for example 90s or 10m", text);
  if (unit.empty()) return v * bareUnit;
  if (unit == "us") return v * 1e-6;
  if (unit == "ms") return v * 1e-3;
  if (unit == "s") return v;
  if (unit == "m" || unit == "min") return v * 60;
  if (unit == "h") return v * 3600;
  fail(flag, text, "'{}' is no unit of time; there are us, ms, s, m and h", unit);
}

uint64_t parseSize(std::string_view flag, std::string_view text, uint64_t bareUnit) {
  double v = 0;
  std::string_view unit;
  if (!readReal(text, v, &unit) || v < 0) fail(flag, text, "'{}' is not a size; write for example 512M", text);
  double scale = static_cast<double>(bareUnit);
  if (unit == "B")
    scale = 1;
  else if (unit == "K")
    scale = 1024;
  else if (unit == "M")
    scale = 1024.0 * 1024;
  else if (unit == "G")
    scale = 1024.0 * 1024 * 1024;
  else if (!unit.empty())
    fail(flag, text, "'{}' is no unit of size; there are B, K, M and G", unit);
  if (v * scale >= 9.2e18) fail(flag, text, "the size is too large");
  return static_cast<uint64_t>(v * scale);
}

std::vector<std::string> parseList(std::string_view flag, std::string_view text) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : text) {
    if (c == '\'') quoted = !quoted;
    if (c == ',' && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  if (quoted) fail(flag, text, "a single quote is not closed");
  for (const auto& item : out)
    if (item.empty()) fail(flag, text, "an item between commas is empty");
  return out;
}

std::vector<NamedShape> parseShapes(std::string_view flag, std::string_view text) {
  constexpr auto kForm = "name:1x3x224x224";
  std::vector<NamedShape> out;
  for (const auto& item : parseList(flag, text)) {
    auto [name, rest] = splitName(flag, text, item, kForm);
    NamedShape s{name, {}};
    if (!rest.empty() && rest != "scalar") {
      for (size_t from = 0; from <= rest.size();) {
        size_t to = std::min(rest.find('x', from), rest.size());
        auto dim = rest.substr(from, to - from);
        int64_t v = 0;
        auto [end, error] = std::from_chars(dim.data(), dim.data() + dim.size(), v);
        if (dim.empty() || end != dim.data() + dim.size() || error != std::errc() || v < 0)
          fail(flag, text, "'{}' in '{}' is not a dimension; write {}", dim, item, kForm);
        s.dims.push_back(v);
        from = to + 1;
      }
      if (s.dims.size() > 8) fail(flag, text, "'{}' has {} dimensions; at most 8 are possible", name, s.dims.size());
    }
    out.push_back(std::move(s));
  }
  checkUnique(flag, text, out);
  return out;
}

std::vector<NamedFile> parseFiles(std::string_view flag, std::string_view text) {
  std::vector<NamedFile> out;
  for (const auto& item : parseList(flag, text)) {
    auto [name, rest] = splitName(flag, text, item, "name:file");
    if (rest.empty()) fail(flag, text, "'{}' names no file; write name:file", item);
    out.push_back({name, std::string(rest)});
  }
  checkUnique(flag, text, out);
  return out;
}

std::vector<NamedSize> parseSizes(std::string_view flag, std::string_view text, uint64_t bareUnit) {
  std::vector<NamedSize> out;
  for (const auto& item : parseList(flag, text)) {
    auto [name, rest] = splitName(flag, text, item, "pool:size");
    out.push_back({name, parseSize(flag, rest, bareUnit)});
  }
  checkUnique(flag, text, out);
  return out;
}

std::vector<double> parsePercentiles(std::string_view flag, std::string_view text) {
  std::vector<double> out;
  for (const auto& item : parseList(flag, text)) {
    double v = 0;
    if (!readReal(item, v) || v < 0 || v > 100) fail(flag, text, "'{}' is no percentile; they lie from 0 to 100", item);
    out.push_back(v);
  }
  return out;
}

std::string expandHome(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  return home ? home + path.substr(1) : path;
}

std::string shellJoin(const std::vector<std::string>& args) {
  std::string out;
  for (const auto& a : args) {
    if (!out.empty()) out += ' ';
    bool plain = !a.empty(), control = false;
    for (unsigned char c : a) {
      control = control || c < 0x20;
      plain =
          plain && (std::isalnum(c) || c >= 0x80 || std::string_view("@%+=:,./-_").find(c) != std::string_view::npos);
    }
    if (plain) {
      out += a;
      continue;
    }
    if (control) {  // $'…' keeps the command line on one line
      out += "$'";
      for (unsigned char c : a) {
        if (c < 0x20)
          out += fmt::format("\\x{:02x}", c);
        else
          out += (c == '\'' || c == '\\') ? fmt::format("\\{}", static_cast<char>(c))
                                          : std::string(1, static_cast<char>(c));
      }
      out += '\'';
      continue;
    }
    out += '\'';
    for (char c : a) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace rutter::cli
