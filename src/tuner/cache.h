#pragma once
// The tuning cache of spec section 4: a view of the journal for people and for scripts that know trtexec's.
#include <string>
#include <vector>

#include "tuner/record.h"

namespace rutter::tuner {

/// The first line: the header record's keys in the order of spec 4.1, ours after those. Newline included.
std::string cacheHeaderLine(const Json& header);
/// One iteration line, keys in the order of spec 4.2, ours after those, crc last. Newline included.
/// `confirmed`: the interval over fresh processes, if there is one; else the ranking's.
std::string cacheLine(const CandidateRecord& r, const ConfirmRecord* confirmed);
/// The whole cache as the journal's records say: one line a candidate (its last record), by iter.
std::string cacheText(const std::vector<Json>& journal);
/// Writes `path` if its content differs from cacheText(journal). True if it was written.
bool syncCache(const std::string& path, const std::vector<Json>& journal);

/// A cache from a file, ours or trtexec's. Unknown keys are ignored; a torn or damaged line is left out.
struct Cache {
  Json header;
  std::vector<CandidateRecord> candidates;
  std::vector<std::optional<Ratio>> ratios;  ///< beside `candidates`; empty for trtexec's
  int dropped = 0;                           ///< lines that could not be read
};
/// UserError if there is no header that reads.
Cache parseCache(std::string_view text, const std::string& path);
/// What can be taken over when only a cache exists: records of a journal that would have made it. Ratios of trtexec's
/// caches come from gpu_time against that of its first route.
std::vector<Json> recordsOf(const Cache& cache);

/// What a search that is to go on begins from.
enum class RecordSource { kNone, kCache, kJournal };
/// The journal beside the cache. Without one, or if it was torn in its first line, the cache; without that, nothing.
/// UserError if the journal's first line is damaged.
RecordSource recordSource(const std::string& cacheFile);
/// UserError if cache or journal is something else than a regular file: both are renamed to be kept, and replaced.
void checkRecordFiles(const std::string& cacheFile);

}  // namespace rutter::tuner
