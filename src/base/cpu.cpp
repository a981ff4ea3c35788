#include "base/cpu.h"

#include <cpuid.h>
#include <sched.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace rutter {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(CpuFeature::kCount)> kFeatureNames = {
    "avx2", "fma",  "f16c", "bmi2",     "avx512f",  "avx512bw", "avx512dq", "avx512vl",
    "vnni", "bf16", "fp16", "amx-tile", "amx-bf16", "amx-int8", "avx-vnni"};

struct Regs {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};
Regs cpuid(uint32_t leaf, uint32_t sub = 0) {
  Regs r;
  if (leaf > uint32_t(__get_cpuid_max(leaf & 0x80000000u, nullptr))) return r;
  __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
  return r;
}
uint64_t xcr0() {
  uint32_t lo, hi;
  asm volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return uint64_t(hi) << 32 | lo;
}
bool bit(uint32_t r, int n) {
  return r >> n & 1;
}

// Bits: Intel SDM vol. 2A, CPUID; XCR0 bits: vol. 1, 13.3.
CpuFeatures readFeatures() {
  using enum CpuFeature;
  CpuFeatures f;
  Regs one = cpuid(1), seven = cpuid(7), sevenOne = cpuid(7, 1);
  if (!bit(one.c, 27)) return f;  // no OSXSAVE: the system saves no vector state beyond SSE
  uint64_t os = xcr0();
  bool ymm = (os & 0x6) == 0x6, zmm = ymm && (os & 0xe0) == 0xe0, tile = (os & 0x60000) == 0x60000;
  auto add = [&](bool have, CpuFeature x) {
    if (have) f.add(x);
  };
  add(ymm && bit(seven.b, 5), kAvx2);
  add(ymm && bit(one.c, 12), kFma);
  add(ymm && bit(one.c, 29), kF16c);
  add(bit(seven.b, 8), kBmi2);
  bool f512 = zmm && bit(seven.b, 16);
  add(f512, kAvx512f);
  add(f512 && bit(seven.b, 30), kAvx512bw);
  add(f512 && bit(seven.b, 17), kAvx512dq);
  add(f512 && bit(seven.b, 31), kAvx512vl);
  add(f512 && bit(seven.c, 11), kVnni);
  add(f512 && bit(sevenOne.a, 5), kBf16);
  add(f512 && bit(seven.d, 23), kFp16);
  add(tile && bit(seven.d, 24), kAmxTile);
  add(tile && bit(seven.d, 22), kAmxBf16);
  add(tile && bit(seven.d, 25), kAmxInt8);
  add(ymm && bit(sevenOne.a, 4), kAvxVnni);
  return f;
}

// Intel's leaf 4 and AMD's 0x8000001D have one format.
bool readCaches(CpuInfo& c, uint32_t leaf) {
  bool any = false;
  for (uint32_t i = 0; i < 16; i++) {
    Regs r = cpuid(leaf, i);
    uint32_t type = r.a & 31, level = r.a >> 5 & 7;
    if (type == 0) break;
    if (type == 2) continue;  // instructions
    int64_t line = (r.b & 0xfff) + 1, parts = (r.b >> 12 & 0x3ff) + 1, ways = (r.b >> 22) + 1;
    int64_t size = ways * parts * line * (int64_t(r.c) + 1);
    if (level == 1) c.l1d = size, c.line = int(line), any = true;
    if (level == 2) c.l2 = size;
    if (level == 3) c.l3 = size;
  }
  return any;
}
std::string readLine(const std::string& path) {
  std::ifstream f(path);
  std::string s;
  std::getline(f, s);
  return s;
}
// Some virtual machines hide the cache leaves but not what the kernel found.
void readCachesFromSysfs(CpuInfo& c) {
  for (int i = 0; i < 8; i++) {
    std::string at = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    std::string level = readLine(at + "level"), type = readLine(at + "type"), size = readLine(at + "size");
    if (size.empty() || type == "Instruction") continue;
    int64_t bytes = std::atoll(size.c_str()) * (size.back() == 'K' ? 1024 : size.back() == 'M' ? 1 << 20 : 1);
    if (bytes <= 0) continue;
    if (level == "1") c.l1d = bytes;
    if (level == "2") c.l2 = bytes;
    if (level == "3") c.l3 = bytes;
  }
}
CpuInfo readInfo() {
  CpuInfo c;
  Regs zero = cpuid(0), one = cpuid(1);
  char v[12];
  std::memcpy(v, &zero.b, 4);
  std::memcpy(v + 4, &zero.d, 4);
  std::memcpy(v + 8, &zero.c, 4);
  c.vendor.assign(v, 12);
  c.family = one.a >> 8 & 15;
  if (c.family == 15) c.family += one.a >> 20 & 0xff;
  c.features = readFeatures();
  bool amdLeaves = bit(cpuid(0x80000001).c, 22);  // topology extensions
  if (!(amdLeaves && readCaches(c, 0x8000001d)) && !readCaches(c, 4)) readCachesFromSysfs(c);
  return c;
}

std::optional<double> quotaV2(const std::string& dir) {
  std::istringstream s(readLine(dir + "/cpu.max"));
  std::string quota;
  double period = 0;
  if (!(s >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  return std::atof(quota.c_str()) / period;
}
std::optional<double> quotaV1(const std::string& dir) {
  double quota = std::atof(readLine(dir + "/cpu.cfs_quota_us").c_str());
  double period = std::atof(readLine(dir + "/cpu.cfs_period_us").c_str());
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}
}  // namespace

std::string CpuFeatures::text() const {
  std::string s;
  for (int i = 0; i < 64; i++)
    if (bits_ >> i & 1)
      s += (s.empty() ? "" : ",") +
           (i < int(CpuFeature::kCount) ? std::string(kFeatureNames[i]) : fmt::format("bit{}", i));
  return s;
}
CpuFeatures CpuFeatures::parse(std::string_view text) {
  CpuFeatures f;
  while (!text.empty()) {
    size_t n = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, n);
    size_t i = 0;
    while (i < kFeatureNames.size() && kFeatureNames[i] != word) i++;
    if (i == kFeatureNames.size()) throw UserError("unknown CPU feature '{}'", word);
    f.add(static_cast<CpuFeature>(i));
    text.remove_prefix(std::min(n + 1, text.size()));
  }
  return f;
}

std::string_view isaName(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    default:
      return "generic";
  }
}
Isa parseIsa(std::string_view name) {
  for (Isa i : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512})
    if (name == isaName(i)) return i;
  throw UserError("unknown ISA '{}': use generic, avx2 or avx512", name);
}
CpuFeatures featuresOf(Isa isa) {
  using enum CpuFeature;
  CpuFeatures f;
  if (isa >= Isa::kAvx2) f = f.with({kAvx2, kFma, kF16c, kBmi2});
  if (isa >= Isa::kAvx512) f = f.with({kAvx512f, kAvx512bw, kAvx512dq, kAvx512vl});
  return f;
}
Isa bestIsa(CpuFeatures available) {
  for (Isa i : {Isa::kAvx512, Isa::kAvx2})
    if (available.covers(featuresOf(i))) return i;
  return Isa::kGeneric;
}

const CpuInfo& cpuInfo() {
  static const CpuInfo info = readInfo();
  return info;
}

std::vector<int> allowedCpus() {
  // The kernel refuses a mask smaller than its own, so grow until it fits.
  for (int n = 1024; n <= 1 << 20; n *= 2) {
    std::vector<unsigned long> words(n / (8 * sizeof(unsigned long)));
    auto* set = reinterpret_cast<cpu_set_t*>(words.data());
    if (sched_getaffinity(0, n / 8, set) != 0) continue;
    std::vector<int> cpus;
    for (int i = 0; i < n; i++)
      if (CPU_ISSET_S(i, size_t(n / 8), set)) cpus.push_back(i);
    return cpus;
  }
  return {0};
}

std::optional<double> detail::cgroupQuotaAt(const std::string& root, const std::string& procSelfCgroup) {
  std::optional<double> least;
  auto take = [&](std::optional<double> q) {
    if (q && (!least || *q < *least)) least = q;
  };
  std::istringstream lines(procSelfCgroup);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:path"
    size_t one = line.find(':'), two = line.find(':', one + 1);
    if (one == std::string::npos || two == std::string::npos) continue;
    std::string controllers = line.substr(one + 1, two - one - 1), path = line.substr(two + 1);
    bool v2 = controllers.empty();
    bool v1 = ("," + controllers + ",").find(",cpu,") != std::string::npos;
    if (!v2 && !v1) continue;
    if (path == "/") path.clear();
    // In a container the path may name the host's tree, which is not mounted: the root alone then holds the limit.
    while (true) {
      take(v2 ? quotaV2(root + path) : quotaV1(root + "/cpu" + path));
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return least;
}
std::optional<double> cgroupQuota() {
  std::ifstream f("/proc/self/cgroup");
  std::stringstream s;
  s << f.rdbuf();
  return detail::cgroupQuotaAt("/sys/fs/cgroup", s.str());
}

int usableThreads() {
  std::set<std::string> cores;
  for (int cpu : allowedCpus()) {
    std::string siblings = readLine(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  int n = std::max<int>(1, int(cores.size()));
  if (auto q = cgroupQuota()) n = std::min(n, std::max(1, int(std::ceil(*q - 1e-9))));
  return n;
}
int usableThreads(int asked) {
  return asked > 0 ? asked : usableThreads();
}

}  // namespace rutter
