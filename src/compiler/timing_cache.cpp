#include "compiler/timing_cache.h"

#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "codegen/tactic.h"
#include "runtime/engine_file.h"

extern "C" const char* rutterVersion();

namespace rutter::compiler {
namespace {

constexpr std::string_view kMagic = "RUTTER timing cache\n";
constexpr uint32_t kFormat = 1;

Fingerprint here() {
  Fingerprint f = Fingerprint::ofMachine();
  f.facts["rutter"] = rutterVersion();
  f.facts["emitter"] = codegen::findTarget("cpu").emitterId();
  return f;
}

}  // namespace

TimingCache::TimingCache() : origin_(here()) {}
TimingCache::TimingCache(TimingCache&& o) noexcept : origin_(std::move(o.origin_)), times_(std::move(o.times_)) {}

TimingCache TimingCache::parse(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) throw UserError("this is no timing cache");
  if (bytes.size() < kMagic.size() + 16) throw UserError("the timing cache is torn");
  Hash128 want;
  std::memcpy(&want.lo, bytes.data() + bytes.size() - 16, 8);
  std::memcpy(&want.hi, bytes.data() + bytes.size() - 8, 8);
  bytes.remove_suffix(16);
  if (hashBytes(bytes) != want) throw UserError("the timing cache is torn or altered: its checksum is wrong");
  ByteReader r(bytes.substr(kMagic.size()));
  if (const uint32_t format = r.get<uint32_t>(); format != kFormat)
    throw UserError("the timing cache has format {}, this version reads {}", format, kFormat);
  TimingCache c;
  c.origin_ = Fingerprint::parse(std::string(r.getString()));
  for (uint64_t n = r.get<uint64_t>(); n > 0; n--) {
    Hash128 key;
    key.lo = r.get<uint64_t>();
    key.hi = r.get<uint64_t>();
    c.times_[key] = r.get<uint64_t>();
  }
  return c;
}

std::string TimingCache::serialize() const {
  std::lock_guard lock(mutex_);
  ByteWriter w;
  w.put(kFormat);
  w.put(origin_.text());
  w.put<uint64_t>(times_.size());
  for (const auto& [key, ns] : times_) {
    w.put(key.lo);
    w.put(key.hi);
    w.put(ns);
  }
  std::string out = std::string(kMagic) + w.take();
  const Hash128 h = hashBytes(out);
  out.append(reinterpret_cast<const char*>(&h.lo), 8);
  out.append(reinterpret_cast<const char*>(&h.hi), 8);
  return out;
}
Hash128 TimingCache::hash() const {
  return hashBytes(serialize());
}

std::vector<std::string> TimingCache::mismatches() const {
  return origin_.differences(here());
}
void TimingCache::requireMatch(const std::string& name) const {
  std::string all;
  for (const std::string& d : mismatches()) all += (all.empty() ? "" : "; ") + d;
  if (!all.empty())
    throw UserError("{} was measured on another machine or with another version ({}): use a file of its own here", name,
                    all);
}

std::optional<uint64_t> TimingCache::find(const Hash128& kernel) const {
  std::lock_guard lock(mutex_);
  auto it = times_.find(kernel);
  return it == times_.end() ? std::nullopt : std::optional(it->second);
}
void TimingCache::add(const Hash128& kernel, uint64_t nanoseconds) {
  std::lock_guard lock(mutex_);
  times_.try_emplace(kernel, nanoseconds);
}
void TimingCache::combine(const TimingCache& other, bool ignoreMismatch) {
  if (&other == this) return;
  if (!ignoreMismatch) {
    other.requireMatch("the other timing cache");
    requireMatch("this timing cache");
  }
  std::scoped_lock lock(mutex_, other.mutex_);
  times_.insert(other.times_.begin(), other.times_.end());
}
void TimingCache::reset() {
  std::lock_guard lock(mutex_);
  times_.clear();
  origin_ = here();
}
size_t TimingCache::size() const {
  std::lock_guard lock(mutex_);
  return times_.size();
}

TimingCache TimingCache::of(const std::set<Hash128>& kernels) const {
  std::lock_guard lock(mutex_);
  TimingCache out(origin_);
  for (const Hash128& k : kernels)
    if (auto it = times_.find(k); it != times_.end()) out.times_.insert(*it);
  return out;
}
std::vector<Hash128> TimingCache::keys() const {
  std::lock_guard lock(mutex_);
  std::vector<Hash128> out;
  for (const auto& [key, ns] : times_) out.push_back(key);
  return out;
}

namespace {
// An empty file is a place for times, made beforehand.
bool holdsNothing(const std::string& path) {
  struct stat file{};
  return ::stat(path.c_str(), &file) != 0 || (S_ISREG(file.st_mode) && file.st_size == 0);
}
}  // namespace

TimingCache TimingCache::read(const std::string& path) {
  if (holdsNothing(path)) return {};
  const auto blob = runtime::Blob::map(path);
  try {
    TimingCache c = parse(blob->bytes());
    c.requireMatch("it");
    return c;
  } catch (const UserError& e) {
    throw UserError("{}: {}", path, e.what());
  }
}
void TimingCache::write(const std::string& path) const {
  TimingCache all = read(path);
  {
    std::scoped_lock lock(mutex_);
    for (const auto& [key, ns] : times_) all.times_[key] = ns;
  }
  const std::string bytes = all.serialize();
  if (!holdsNothing(path) && runtime::Blob::map(path)->bytes() == bytes) return;
  writeFileAtomically(path, bytes);
}

}  // namespace rutter::compiler
