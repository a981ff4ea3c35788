#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace rutter {

// Backtracks to the last star only, so the cost is at most |pattern| * |text|.
bool globMatch(std::string_view p, std::string_view t) {
  size_t i = 0, j = 0, star = std::string_view::npos, mark = 0;
  while (j < t.size()) {
    if (i < p.size() && p[i] == '*') {
      star = i++;
      mark = j;
    } else if (i < p.size() && (p[i] == '?' || p[i] == t[j])) {
      i++, j++;
    } else if (star != std::string_view::npos) {
      i = star + 1;
      j = ++mark;
    } else {
      return false;
    }
  }
  while (i < p.size() && p[i] == '*') i++;
  return i == p.size();
}

size_t editDistance(std::string_view a0, std::string_view b0) {
  auto lower = [](std::string_view s) {
    std::string r(s);
    for (auto& c : r) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return r;
  };
  const std::string a = lower(a0), b = lower(b0);
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); i++) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()] + (a == b && a0 != b0);
}

std::vector<std::string> nearestNames(std::string_view wanted, std::span<const std::string> names, size_t n) {
  // Suggestions cost |wanted| * |name| each: a megabyte of garbage gets none worth waiting for.
  wanted = wanted.substr(0, 256);
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < names.size(); i++)
    order.emplace_back(editDistance(wanted, std::string_view(names[i]).substr(0, 256)), i);
  n = std::min(n, order.size());
  std::partial_sort(order.begin(), order.begin() + n, order.end());
  std::vector<std::string> out;
  for (size_t i = 0; i < n; i++) out.push_back(names[order[i].second]);
  return out;
}

std::string printDims(std::span<const int64_t> dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

std::string printShape(std::string_view name, std::span<const int64_t> dims) {
  const char* quote = name.find_first_of(":,") == name.npos ? "" : "'";
  return fmt::format("{0}{1}{0}:{2}", quote, name, printDims(dims));
}

std::string joinOr(std::span<const std::string> items) {
  std::string out;
  for (size_t i = 0; i < items.size(); i++) {
    if (i) out += i + 1 == items.size() ? " or " : ", ";
    out += items[i];
  }
  return out;
}

}  // namespace rutter
