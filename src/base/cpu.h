#pragma once
// What this machine's processor offers: instruction sets that both CPU and operating system support, cache sizes, and
// the cores that this process may use. Feature bits and cache leaves only, never the processor's name: virtual
// machines mask the model, and makers reuse names.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rutter {

/// Numbers are written into engines: append only.
enum class CpuFeature : uint8_t {
  kAvx2 = 0,
  kFma,
  kF16c,
  kBmi2,
  kAvx512f,
  kAvx512bw,
  kAvx512dq,
  kAvx512vl,
  kVnni,
  kBf16,
  kFp16,
  kAmxTile,
  kAmxBf16,
  kAmxInt8,
  kAvxVnni,
  kCount
};

/// A set of features.
class CpuFeatures {
 public:
  CpuFeatures() = default;
  explicit CpuFeatures(uint64_t bits) : bits_(bits) {}
  CpuFeatures(std::initializer_list<CpuFeature> f) {
    for (auto x : f) add(x);
  }
  bool has(CpuFeature f) const { return bits_ >> static_cast<int>(f) & 1; }
  void add(CpuFeature f) { bits_ |= uint64_t(1) << static_cast<int>(f); }
  void remove(CpuFeature f) { bits_ &= ~(uint64_t(1) << static_cast<int>(f)); }
  uint64_t bits() const { return bits_; }
  bool covers(CpuFeatures o) const { return (o.bits_ & ~bits_) == 0; }
  CpuFeatures without(CpuFeatures o) const { return CpuFeatures(bits_ & ~o.bits_); }
  CpuFeatures with(CpuFeatures o) const { return CpuFeatures(bits_ | o.bits_); }
  bool empty() const { return bits_ == 0; }
  bool operator==(const CpuFeatures&) const = default;
  std::string text() const;                         ///< "avx2,fma"; "" if empty; unknown bits "bit<n>"
  static CpuFeatures parse(std::string_view text);  ///< inverse of text(); UserError on an unknown name

 private:
  uint64_t bits_ = 0;
};

/// Levels that --isa names. Each contains the ones before it.
enum class Isa : uint8_t { kGeneric = 0, kAvx2 = 1, kAvx512 = 2 };
std::string_view isaName(Isa isa);    ///< "generic", "avx2", "avx512"
Isa parseIsa(std::string_view name);  ///< UserError naming the levels that exist
CpuFeatures featuresOf(Isa isa);      ///< what a level needs (generic: none, SSE2 is x86-64's floor)
Isa bestIsa(CpuFeatures available);   ///< the highest level that `available` covers

struct CpuInfo {
  std::string vendor;   ///< CPUID's 12 letters: "GenuineIntel", "AuthenticAMD"
  uint32_t family = 0;  ///< display family (for fingerprints, not for decisions)
  CpuFeatures features;
  int64_t l1d = 32 << 10;  ///< bytes; the values here are what is assumed if nothing tells
  int64_t l2 = 1 << 20;
  int64_t l3 = 8 << 20;
  int line = 64;  ///< bytes
};
/// Read once a process.
const CpuInfo& cpuInfo();

/// Logical processors in this thread's affinity mask, ascending. Read afresh.
std::vector<int> allowedCpus();
/// CPU time quota of this process's cgroup and its ancestors, in cores (2.5 = 250 %); nothing if unlimited.
std::optional<double> cgroupQuota();
/// Threads worth starting: physical cores within the affinity mask, at most the quota (rounded up), at least 1.
int usableThreads();
/// `asked`, or all that are usable if that is 0 or less.
int usableThreads(int asked);

namespace detail {
/// cgroupQuota with the file system at `root` and the contents of /proc/self/cgroup given, for tests.
std::optional<double> cgroupQuotaAt(const std::string& root, const std::string& procSelfCgroup);
}  // namespace detail

}  // namespace rutter
