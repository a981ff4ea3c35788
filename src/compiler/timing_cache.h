#pragma once
// Times of kernels on one machine: what levels 4 and 5 measured, for builds that are to choose the same again.
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fingerprint.h"
#include "base/hash.h"

namespace rutter::compiler {

class TimingCache {
 public:
  /// Empty, for this machine and this version.
  TimingCache();
  /// Empty, for another machine or version.
  explicit TimingCache(Fingerprint origin) : origin_(std::move(origin)) {}
  /// What serialize() wrote. UserError if it is something else, or torn.
  static TimingCache parse(std::string_view bytes);
  TimingCache(TimingCache&& o) noexcept;

  /// What it was measured with that is not so here: "cores: 8 there, 2 here"; empty if it serves here.
  std::vector<std::string> mismatches() const;
  /// UserError in one line if there are any.
  void requireMatch(const std::string& name) const;

  std::optional<uint64_t> find(const Hash128& kernel) const;  ///< nanoseconds
  void add(const Hash128& kernel, uint64_t nanoseconds);      ///< a time that is known already stays
  /// Takes over times that are not known. UserError if the other was measured elsewhere and that is not to be ignored.
  void combine(const TimingCache& other, bool ignoreMismatch);
  void reset();
  size_t size() const;
  std::vector<Hash128> keys() const;
  std::string serialize() const;                           ///< equal contents, equal bytes
  Hash128 hash() const;                                    ///< of the contents
  TimingCache of(const std::set<Hash128>& kernels) const;  ///< these times alone

  /// The file's contents; empty if there is no file. UserError if it is no timing cache, or one of another machine or
  /// version.
  static TimingCache read(const std::string& path);
  /// Writes this and what others have added to the file since, replacing the file as a whole. DeviceError.
  void write(const std::string& path) const;

 private:
  Fingerprint origin_;  ///< machine, version of Rutter, build of the emitters
  std::map<Hash128, uint64_t> times_;
  mutable std::mutex mutex_;
};

}  // namespace rutter::compiler
