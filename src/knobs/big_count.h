#pragma once
// An exact natural number of any size: how many routes an expression has.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rutter::knobs {

class BigCount {
 public:
  BigCount(uint64_t v = 0);  // NOLINT: a count is a number
  BigCount& operator*=(uint32_t f);
  /// `v` must not be larger than this.
  BigCount& operator-=(uint64_t v);
  std::string print() const;  ///< decimal, no separators
  /// The value if it is below 2^64.
  std::optional<uint64_t> small() const;
  bool operator==(const BigCount& o) const { return limbs_ == o.limbs_; }
  bool operator<(const BigCount& o) const;

 private:
  std::vector<uint32_t> limbs_;  // base 1e9, lowest first, no leading zero; zero is empty
};

}  // namespace rutter::knobs
