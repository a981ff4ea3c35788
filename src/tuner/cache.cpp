#include "tuner/cache.h"

#include <unistd.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tuner/journal.h"

namespace rutter::tuner {
namespace {

constexpr const char* kHeaderKeys[] = {"tuner_version",
                                       "accuracy_algorithm",
                                       "accuracy_parameter",
                                       "searching_algorithm",
                                       "command_line",
                                       "default_build_route",
                                       "tuning_expr",
                                       "files",
                                       "argv",
                                       "schema",
                                       "model_hash",
                                       "fingerprint",
                                       "shapes",
                                       "seed",
                                       "started"};

bool hasResult(Status s) {
  return s == Status::kOk || s == Status::kInaccurate || s == Status::kUnstable;
}

Json numberOrNull(std::optional<double> v) {
  return v && std::isfinite(*v) ? Json(*v) : Json(nullptr);
}

}  // namespace

std::string cacheHeaderLine(const Json& header) {
  Json line = Json::object();
  for (const char* key : kHeaderKeys)
    if (header.contains(key)) line[key] = header[key];
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string cacheLine(const CandidateRecord& r, const ConfirmRecord* confirmed) {
  const bool timed = r.status == Status::kOk || r.status == Status::kUnstable;
  Json ratio, lo, hi;
  int64_t rounds = int64_t(r.logRatios.size());
  auto show = [&](double center, double low, double high) {
    ratio = numberOrNull(std::exp(center));
    lo = numberOrNull(std::exp(low));
    hi = numberOrNull(std::exp(high));
  };
  if (timed && confirmed && confirmed->processes > 0) {
    show(confirmed->center, confirmed->lo, confirmed->hi);
    rounds = confirmed->processes;
  } else if (timed && rounds > 0) {
    const Interval i = medianInterval(r.logRatios, 1.0 / 32);
    show(median(r.logRatios), i.lo, i.hi);
  }
  Json j = {{"iter", r.iter},
            {"build_route", r.route},
            {"crash", !hasResult(r.status)},
            {"error_message", r.error},
            {"accuracy_loss", hasResult(r.status) ? lossesToJson(r.losses) : Json(nullptr)},
            {"gpu_time", timed ? numberOrNull(r.ms) : Json(nullptr)},
            {"phase", r.phase},
            {"status", statusName(r.status)},
            {"ratio", ratio},
            {"ratio_lo", lo},
            {"ratio_hi", hi},
            {"rounds", rounds},
            {"engine_hash", r.engineHash},
            {"same_as", r.sameAs ? Json(*r.sameAs) : Json(nullptr)},
            {"knobs_read", r.knobsRead},
            {"build_ms", r.buildMs},
            {"peak_bytes", r.peakBytes},
            {"host", r.host},
            {"time", r.time}};
  return journalLine(j);
}

std::string cacheText(const std::vector<Json>& journal) {
  Json header = Json::object();
  std::map<int64_t, CandidateRecord> candidates;
  std::map<std::string, ConfirmRecord> confirmed;
  for (const Json& j : journal) {
    const std::string type = j.value("type", "");
    if (type == "header") header = j;
    if (type == "candidate") {
      CandidateRecord r = candidateFromJson(j);
      candidates[r.iter] = std::move(r);
    }
    if (type == "confirm") {
      ConfirmRecord r = confirmFromJson(j);
      confirmed[r.route] = r;
    }
  }
  std::string text = cacheHeaderLine(header);
  for (const auto& [iter, r] : candidates) {
    auto it = confirmed.find(r.route);
    text += cacheLine(r, it == confirmed.end() ? nullptr : &it->second);
  }
  return text;
}

bool syncCache(const std::string& path, const std::vector<Json>& journal) {
  const std::string want = cacheText(journal);
  std::ifstream in(path, std::ios::binary);
  if (in && std::string((std::istreambuf_iterator<char>(in)), {}) == want) return false;
  replaceFile(path, want);
  return true;
}

Cache parseCache(std::string_view text, const std::string& path) {
  Cache cache;
  size_t at = 0;
  bool first = true;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const bool whole = end < text.size();
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json j = Json::parse(line, nullptr, false);
    if (first) {
      if (!j.is_object() || !j.contains("argv"))
        throw UserError("{} is not a tuning cache: its first line must be a JSON object with \"argv\"", path);
      cache.header = j;
      first = false;
      continue;
    }
    if (!j.is_object() || !j.contains("build_route") || (!whole && !j.contains("iter")) || isAltered(line)) {
      cache.dropped++;
      continue;
    }
    try {
      CandidateRecord r = candidateFromJson(j);
      if (!j.contains("status")) {  // trtexec's own
        const bool crash = j.value("crash", false);
        r.status = crash ? Status::kCrashed : r.error.empty() ? Status::kOk : Status::kInaccurate;
      }
      auto number = [&](const char* key) {
        auto it = j.find(key);
        return it != j.end() && it->is_number() ? std::optional<double>(it->get<double>()) : std::nullopt;
      };
      std::optional<Ratio> ratio;
      if (auto r = number("ratio"), lo = number("ratio_lo"), hi = number("ratio_hi"); r && lo && hi)
        ratio = Ratio{*r, *lo, *hi};
      cache.candidates.push_back(std::move(r));
      cache.ratios.push_back(ratio);
    } catch (const UserError&) {
      cache.dropped++;
    } catch (const nlohmann::json::exception&) {  // a key of another type
      cache.dropped++;
    }
  }
  if (first) throw UserError("{} is empty: not a tuning cache", path);
  return cache;
}

std::vector<Json> recordsOf(const Cache& cache) {
  std::vector<Json> records;
  Json header = cache.header;
  header["type"] = "header";
  records.push_back(header);
  std::optional<double> firstMs;
  for (size_t i = 0; i < cache.candidates.size(); i++) {
    CandidateRecord r = cache.candidates[i];
    if (r.status == Status::kOk && r.ms && *r.ms > 0) {
      if (!firstMs) firstMs = r.ms;
      // What is taken over only ranks; the winner is measured afresh.
      if (const auto& q = cache.ratios[i]; q && q->lo > 0)
        r.logRatios = {std::log(q->lo), std::log(q->ratio), std::log(q->ratio), std::log(q->ratio), std::log(q->hi)};
      else
        r.logRatios.assign(5, std::log(*firstMs / *r.ms));
    }
    if (r.status == Status::kInterrupted) continue;
    records.push_back(toJson(r));
  }
  return records;
}

void checkRecordFiles(const std::string& cacheFile) {
  for (const std::string& path : {cacheFile, cacheFile + ".journal"})
    if (const char* what = notAFile(path); *what)
      throw UserError("{} is {}, where the record of a search must be a file: give another --tuningCacheFile", path,
                      what);
}

RecordSource recordSource(const std::string& cacheFile) {
  checkRecordFiles(cacheFile);
  const std::string path = cacheFile + ".journal";
  const bool cache = ::access(cacheFile.c_str(), F_OK) == 0;
  if (::access(path.c_str(), F_OK) == 0) {
    // The first line says it; all the others are read by who goes on with them.
    const std::string text = readWholeFile(path);
    const size_t end = text.find('\n') + 1;  // 0: not even the first line is whole
    const std::vector<Json> first = parseJournal(text.substr(0, end)).records;
    if (!first.empty() && first[0].value("type", "") == "header") return RecordSource::kJournal;
    if (!first.empty() || (end > 0 && end < text.size()))
      throw UserError("cannot continue: the first line of {}, which says what was searched, is damaged; {}", path,
                      cache ? fmt::format("move that file away and --continue goes on with what {} holds", cacheFile)
                            : "begin the search anew, without --continue: the damaged file is kept under another name");
  }
  return cache ? RecordSource::kCache : RecordSource::kNone;
}

LastSearch lastSearch(const std::string& cacheFile) {
  const std::string path = cacheFile + ".journal";
  std::vector<Json> records;
  switch (recordSource(cacheFile)) {
    case RecordSource::kJournal:
      records = readJournal(path);
      break;
    case RecordSource::kCache:
      records = {parseCache(readWholeFile(cacheFile), cacheFile).header};
      break;
    case RecordSource::kNone:
      throw UserError(
          "cannot continue: {0} is no record of a search: {1}; name the --tuningCacheFile of one, or begin one "
          "without --continue",
          cacheFile,
          ::access(path.c_str(), F_OK) == 0 ? path + " ends before its first line does"
                                            : fmt::format("neither it nor {} can be found", path));
  }
  LastSearch last;
  try {
    last.argv = records[0].at("argv").get<std::vector<std::string>>();
    if (const auto files = records[0].find("files"); files != records[0].end() && files->is_object())
      last.saveEngine = files->value("save_engine", "");
    for (const Json& r : records) {
      if (&r != &records[0] && r.value("type", "") != "session") continue;
      last.search = r.value("searching_algorithm", last.search);
      last.expression = r.value("tuning_expr", last.expression);
      if (r.contains("budget")) last.budgetSeconds = r["budget"].get<double>();
    }
  } catch (const nlohmann::json::exception&) {
    throw UserError("cannot continue: the record of {} holds a key of the wrong type: it was altered", cacheFile);
  }
  return last;
}

void refuseOwnStrategy(const LastSearch& last, const std::string& cacheFile) {
  if (last.search == searchName(SearchKind::kUser))
    throw UserError("{} was searched by a program's own strategy: go on with that program", cacheFile);
}

void takeOverLastSearch(TuneOptions& o) {
  if (!o.resume || !o.expression.empty() || o.search == SearchKind::kTune) return;
  const LastSearch last = lastSearch(o.cacheFile);
  refuseOwnStrategy(last, o.cacheFile);
  o.search = last.search == searchName(SearchKind::kTune) ? SearchKind::kTune : parseSearch(last.search);
  o.expression = last.expression;
  if (!(o.budgetSeconds > 0)) o.budgetSeconds = last.budgetSeconds.value_or(-1);
}

}  // namespace rutter::tuner
