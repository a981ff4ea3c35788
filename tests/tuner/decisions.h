#pragma once
// The decisions of a journal, and how two lists of them are compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tuner/search.h"

namespace rutter::tuner::test {

/// Those that follow from the recorded numbers, without the moments at which they were made.
inline std::vector<Json> decisionsOf(const std::vector<Json>& records) {
  std::vector<Json> out;
  for (Json j : records) {
    if (!isDecision(j) || isTimed(j)) continue;
    j.erase("t");
    out.push_back(std::move(j));
  }
  return out;
}

/// Says the first difference, not both lists.
inline testing::AssertionResult same(const std::vector<Json>& a, const std::vector<Json>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); i++) {
    const std::string x = i < a.size() ? a[i].dump() : "nothing", y = i < b.size() ? b[i].dump() : "nothing";
    if (x != y) return testing::AssertionFailure() << "at " << i << ":\n" << x << "\n" << y;
  }
  return testing::AssertionSuccess();
}

}  // namespace rutter::tuner::test
