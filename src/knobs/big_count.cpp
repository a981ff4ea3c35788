#include "knobs/big_count.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace rutter::knobs {
namespace {
constexpr uint64_t kBase = 1'000'000'000;
}

BigCount::BigCount(uint64_t v) {
  for (; v; v /= kBase) limbs_.push_back(static_cast<uint32_t>(v % kBase));
}

BigCount& BigCount::operator*=(uint32_t f) {
  if (f == 0) limbs_.clear();
  uint64_t carry = 0;
  for (auto& l : limbs_) {
    carry += uint64_t{l} * f;
    l = static_cast<uint32_t>(carry % kBase);
    carry /= kBase;
  }
  for (; carry; carry /= kBase) limbs_.push_back(static_cast<uint32_t>(carry % kBase));
  return *this;
}

BigCount& BigCount::operator-=(uint64_t v) {
  RUTTER_CHECK(!(*this < BigCount(v)), "{} - {}", print(), v);
  int64_t borrow = 0;
  for (auto& l : limbs_) {
    int64_t d = int64_t{l} - static_cast<int64_t>(v % kBase) - borrow;
    v /= kBase;
    borrow = d < 0;
    l = static_cast<uint32_t>(d + (borrow ? int64_t{kBase} : 0));
  }
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  return *this;
}

std::string BigCount::print() const {
  if (limbs_.empty()) return "0";
  std::string out = fmt::format("{}", limbs_.back());
  for (size_t i = limbs_.size() - 1; i-- > 0;) out += fmt::format("{:09}", limbs_[i]);
  return out;
}

std::optional<uint64_t> BigCount::small() const {
  __extension__ unsigned __int128 v = 0;
  for (size_t i = limbs_.size(); i-- > 0;) {
    v = v * kBase + limbs_[i];
    if (v > UINT64_MAX) return std::nullopt;
  }
  return static_cast<uint64_t>(v);
}

bool BigCount::operator<(const BigCount& o) const {
  if (limbs_.size() != o.limbs_.size()) return limbs_.size() < o.limbs_.size();
  return std::lexicographical_compare(limbs_.rbegin(), limbs_.rend(), o.limbs_.rbegin(), o.limbs_.rend());
}

}  // namespace rutter::knobs
