// Words of the public options.
#include "base/error.h"
#include "tuner/tune.h"

namespace rutter::tuner {
namespace {
constexpr const char* kSearches[] = {"fast", "full", "mixed", "tune", "user"};
constexpr const char* kStatuses[] = {"ok", "rejected", "crashed", "hung", "inaccurate", "unstable", "interrupted"};
}  // namespace

const char* searchName(SearchKind kind) {
  return kSearches[int(kind)];
}

SearchKind parseSearch(const std::string& word) {
  for (int i = 0; i < 3; i++)
    if (word == kSearches[i]) return SearchKind(i);
  if (word == "auto" || word == "random" || word == "evolve")
    throw UserError("--tuningSearch={}: not in this version; fast, full and mixed exist, and --tune", word);
  throw UserError("--tuningSearch={}: unknown; it is one of fast, full, mixed", word);
}

const char* statusName(Status s) {
  return kStatuses[int(s)];
}

Status parseStatus(const std::string& word) {
  for (size_t i = 0; i < std::size(kStatuses); i++)
    if (word == kStatuses[i]) return Status(i);
  throw UserError("unknown candidate status '{}'", word);
}

std::string defaultCacheFile(const std::string& saveEngine) {
  return saveEngine.empty() ? "best_config.json" : saveEngine + ".tune.jsonl";
}

}  // namespace rutter::tuner
