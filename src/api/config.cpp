#include <algorithm>

#include "api/objects.h"
#include "base/cpu.h"
#include "knobs/registry.h"

namespace rutter::api {

bool OptimizationProfile::setDimensions(char const* name, OptProfileSelector select, Dims const& dims) noexcept {
  return reporter_.guard(false, [&] {
    if (!name) throw UserError("the input's name is null");
    if (dims.nbDims < 0 || dims.nbDims > Dims::MAX_DIMS)
      throw UserError("rank {} for input '{}': 0 to {} are possible", dims.nbDims, name, Dims::MAX_DIMS);
    auto& m = shapes_[name];
    for (auto& [s, v] : m)
      if (int32_t(v.size()) != dims.nbDims)
        throw UserError("input '{}' was given rank {} before, {} now", name, v.size(), dims.nbDims);
    for (int32_t a = 0; a < dims.nbDims; a++)
      if (dims.d[a] < 0)
        throw UserError("extent {} of axis {} of input '{}': a profile needs 0 or more", dims.d[a], a, name);
    m[select] = std::vector<int64_t>(dims.d, dims.d + dims.nbDims);
    return true;
  });
}
Dims OptimizationProfile::getDimensions(char const* name, OptProfileSelector select) const noexcept {
  return reporter_.guard(invalidDims(), [&] {
    auto it = name ? shapes_.find(name) : shapes_.end();
    if (it == shapes_.end() || !it->second.count(select)) return invalidDims();
    return makeDims(it->second.at(select));
  });
}
bool OptimizationProfile::isValid() const noexcept {
  for (auto& [name, m] : shapes_) {
    if (m.size() != 3) return false;
    const auto &lo = m.at(OptProfileSelector::kMIN), &opt = m.at(OptProfileSelector::kOPT),
               &hi = m.at(OptProfileSelector::kMAX);
    for (size_t a = 0; a < lo.size(); a++)
      if (lo[a] > opt[a] || opt[a] > hi[a]) return false;
  }
  return true;
}
bool OptimizationProfile::setShapeValuesV2(char const* name, OptProfileSelector, int64_t const*, int32_t) noexcept {
  return reporter_.guard(false, [&]() -> bool {
    throw CodedError(ErrorCode::kUNSUPPORTED_STATE,
                     fmt::format("shape values for '{}': this version builds no engines whose shapes depend on the "
                                 "values of an input",
                                 name ? name : ""));
  });
}
bool OptimizationProfile::setExtraMemoryTarget(float target) noexcept {
  return reporter_.guard(false, [&] {
    if (!(target >= 0 && target <= 1)) throw UserError("extra memory target {}: it is a share, 0 to 1", target);
    if (target < 1)
      throw CodedError(ErrorCode::kUNSUPPORTED_STATE,
                       fmt::format("extra memory target {}: an engine on a CPU uses what it needs whatever is free; "
                                   "bound that by the workspace limit",
                                   target));
    return true;
  });
}
passes::Profile OptimizationProfile::profile() const {
  passes::Profile p;
  for (auto& [name, m] : shapes_)
    p[name] = {m.at(OptProfileSelector::kMIN), m.at(OptProfileSelector::kOPT), m.at(OptProfileSelector::kMAX)};
  return p;
}

namespace {
// Why a flag cannot be set; null if it can.
const char* refusal(BuilderFlag f) {
  switch (f) {
    case BuilderFlag::kDEBUG:
    case BuilderFlag::kSTRICT_ROUTES:
    case BuilderFlag::kDISABLE_TIMING_CACHE:
    case BuilderFlag::kERROR_ON_TIMING_CACHE_MISS:
    case BuilderFlag::kDISABLE_COMPILATION_CACHE:
    case BuilderFlag::kTF32:
    case BuilderFlag::kSTRICT_NANS:
      return nullptr;
    case BuilderFlag::kGPU_FALLBACK:
      return "kGPU_FALLBACK: a CPU runs all layers itself and leaves none to a GPU";
    case BuilderFlag::kREFIT:
      return "kREFIT: this version builds no refittable engines";
    case BuilderFlag::kSPARSE_WEIGHTS:
      return "kSPARSE_WEIGHTS: there are no kernels for structured sparsity";
    case BuilderFlag::kVERSION_COMPATIBLE:
      return "kVERSION_COMPATIBLE: engines of this version run on this version only";
    case BuilderFlag::kSTRIP_PLAN:
      return "kSTRIP_PLAN: this version builds no engines without their weights";
    case BuilderFlag::kEDITABLE_TIMING_CACHE:
      return "kEDITABLE_TIMING_CACHE: entries of timing caches cannot be asked for or changed in this version";
  }
  return "there is no such builder flag";
}
}  // namespace

BuilderConfig::BuilderConfig(const Reporter& reporter) : reporter_(reporter), database_(knobs::allBuildRoutesJson()) {}
bool BuilderConfig::setBuildRoute(char const* route) noexcept {
  return reporter_.guard(false, [&] {
    knobs::Route r;
    if (route && *route) r = knobs::Route::parse(route);
    routeText_ = route ? route : "";
    route_ = std::move(r);
    return true;
  });
}
void BuilderConfig::setFlag(BuilderFlag f) noexcept {
  if (const char* why = refusal(f))
    reporter_.report(ErrorCode::kUNSUPPORTED_STATE, why);
  else
    flags_ |= bit(f);
}
void BuilderConfig::setFlags(uint32_t flags) noexcept {
  flags_ = 0;
  for (int32_t f = 0; f < 32; f++)
    if (flags >> f & 1) setFlag(BuilderFlag(f));
}
void BuilderConfig::setMemoryPoolLimit(MemoryPoolType pool, std::size_t bytes) noexcept {
  if (pool == MemoryPoolType::kWORKSPACE)
    workspace_ = bytes;
  else
    reporter_.report(ErrorCode::kUNSUPPORTED_STATE, pool == MemoryPoolType::kTACTIC_SHARED_MEMORY
                                                        ? "kTACTIC_SHARED_MEMORY: a CPU has no such memory"
                                                        : "there is no such memory pool");
}
int32_t BuilderConfig::addOptimizationProfile(IOptimizationProfile const* profile) noexcept {
  return reporter_.guard(int32_t(-1), [&] {
    if (!profile) throw UserError("the profile is null");
    if (!profile->isValid())
      throw UserError(
          "the profile is not valid: every input needs min, opt and max with min <= opt <= max on each axis");
    profiles_.push_back(static_cast<const OptimizationProfile*>(profile)->profile());
    return int32_t(profiles_.size() - 1);
  });
}
bool BuilderConfig::setTarget(char const* target) noexcept {
  return reporter_.guard(false, [&] {
    codegen::findTarget(target ? target : "");
    target_ = target;
    return true;
  });
}
bool BuilderConfig::setIsa(char const* isa) noexcept {
  return reporter_.guard(false, [&] {
    std::string word = isa ? isa : "";
    if (!word.empty()) parseIsa(word);
    isa_ = word;
    return true;
  });
}
void BuilderConfig::reset() noexcept {
  reporter_.guard(false, [&] {
    route_ = {};
    routeText_.clear();
    target_ = "cpu";
    isa_.clear();
    flags_ = kDefaultFlags;
    workspace_ = SIZE_MAX;
    profiles_.clear();
    verbosity_ = ProfilingVerbosity::kLAYER_NAMES_ONLY;
    monitor_ = nullptr;
    level_ = 3;
    avgTiming_ = 8;
    maxTactics_ = -1;
    timings_ = nullptr;
    return true;
  });
}
ITimingCache* BuilderConfig::createTimingCache(void const* blob, std::size_t size) const noexcept {
  return reporter_.guard(static_cast<ITimingCache*>(nullptr), [&]() -> ITimingCache* {
    if (!blob || size == 0) return new TimingCache(reporter_, compiler::TimingCache());
    return new TimingCache(reporter_, compiler::TimingCache::parse({static_cast<const char*>(blob), size}));
  });
}
bool BuilderConfig::setTimingCache(ITimingCache const& cache, bool ignoreMismatch) noexcept {
  return reporter_.guard(false, [&] {
    auto& c = static_cast<const TimingCache&>(cache);
    if (!ignoreMismatch) c.cache()->requireMatch("the timing cache");
    timings_ = &c;
    return true;
  });
}

IHostMemory* TimingCache::serialize() const noexcept {
  return reporter_.guard(static_cast<IHostMemory*>(nullptr),
                         [&]() -> IHostMemory* { return new HostMemory(cache_->serialize()); });
}
bool TimingCache::combine(ITimingCache const& other, bool ignoreMismatch) noexcept {
  return reporter_.guard(false, [&] {
    cache_->combine(*static_cast<const TimingCache&>(other).cache(), ignoreMismatch);
    return true;
  });
}
bool TimingCache::reset() noexcept {
  return reporter_.guard(false, [&] {
    cache_->reset();
    return true;
  });
}
char const* TimingCache::getHash() const noexcept {
  return reporter_.guard("", [&] {
    hash_ = cache_->hash().hex();
    return hash_.c_str();
  });
}

}  // namespace rutter::api
