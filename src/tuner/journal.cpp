#include "tuner/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tuner/hook.h"

namespace rutter::tuner {
namespace {

constexpr std::string_view kCrcKey = ",\"crc\":\"";
constexpr size_t kCrcTail = kCrcKey.size() + 8 + 2;  // ,"crc":"xxxxxxxx"}

// Keys that several readers look at in every record. Nothing but a hand gives them another type, checksum and all.
bool wellTyped(const Json& record) {
  const auto type = record.find("type");
  if (type == record.end() || !type->is_string()) return false;
  constexpr std::string_view kOurs[] = {"header", "session", "baseline", "candidate", "samples",  "strategy",
                                        "rank",   "confirm", "winner",   "decided",   "shortened"};
  const std::string name = *type;
  if (std::find(std::begin(kOurs), std::end(kOurs), name) == std::end(kOurs)) return true;  // of a later version
  const auto whole = [&](const char* key, double most) {
    const auto it = record.find(key);
    return it == record.end() || (it->is_number_integer() && std::abs(it->get<double>()) < most);
  };
  constexpr double kMost = 1e15, kEpochs = 1e4;  // the next one can be counted; nobody extends a search so often
  for (const char* key : {"iter", "of", "count", "asked", "processes"})
    if (!whole(key, kMost)) return false;
  if (!whole("epoch", kEpochs)) return false;
  constexpr double kMostLog = 100;  // a nanosecond against a year is less
  if (auto it = record.find("log_ratios"); it != record.end() && it->is_array())
    for (const Json& x : *it)
      if (x.is_number() && !(std::abs(x.get<double>()) < kMostLog)) return false;
  for (const char* number : {"t", "budget", "busy_s", "share"})
    if (auto it = record.find(number); it != record.end() && !it->is_number()) return false;
  if (auto it = record.find("share"); it != record.end() && !(it->get<double>() >= 0 && it->get<double>() <= 1))
    return false;
  for (const char* text : {"event", "reason", "again", "build_route", "stage"})
    if (auto it = record.find(text); it != record.end() && !it->is_string()) return false;
  for (const char* yes : {"lost_lines", "brief"})
    if (auto it = record.find(yes); it != record.end() && !it->is_boolean()) return false;
  return record.value("count", 0) >= 0;
}

// What the checksum at a line's end is of; nothing if there is no checksum.
std::optional<std::string> summed(std::string_view line) {
  if (line.size() < kCrcTail + 1 || !line.ends_with("\"}")) return std::nullopt;
  if (line.substr(line.size() - kCrcTail, kCrcKey.size()) != kCrcKey) return std::nullopt;
  return std::string(line.substr(0, line.size() - kCrcTail)) + "}";
}

bool fits(const std::string& body, std::string_view line) {
  return fmt::format("{:08x}", crc32c(body)) == line.substr(line.size() - kCrcTail + kCrcKey.size(), 8);
}

std::optional<Json> parseLine(std::string_view line) {
  const std::optional<std::string> body = summed(line);
  if (!body || !fits(*body, line)) return std::nullopt;
  Json j = Json::parse(*body, nullptr, false);
  if (!j.is_object() || !wellTyped(j)) return std::nullopt;
  return j;
}

// The lock lives as long as the open file: a writer that dies releases it, at the latest when what it had just forked
// has closed what it inherited; hence several attempts.
int openLocked(const std::string& path, int flags) {
  for (int round = 0;; round++) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd < 0) return -1;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    // Whoever held it may have put another file in its place.
    struct stat opened, named;
    if (locked && fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
        opened.st_dev == named.st_dev)
      return fd;
    ::close(fd);
    if (round < 50) {
      usleep(20'000);
      continue;
    }
    throw UserError("{} is being written by another tuner; wait for it or give another --tuningCacheFile", path);
  }
}

}  // namespace

std::string journalLine(const Json& record) {
  // Text from outside (names, messages) may not be valid UTF-8: it is replaced, not refused.
  std::string body = record.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string crc = fmt::format("{:08x}", crc32c(body));
  body.pop_back();
  return fmt::format("{}{}{}\"}}\n", body, kCrcKey, crc);
}

bool isAltered(std::string_view line) {
  const std::optional<std::string> body = summed(line);
  return body && !fits(*body, line);
}

JournalText parseJournal(std::string_view text) {
  JournalText out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    std::optional<Json> j = parseLine(text.substr(at, end - at));
    at = end + 1;
    if (j)
      out.records.push_back(std::move(*j));
    else
      out.damaged++;
    out.goodBytes = at;
  }
  return out;
}

std::string keepOld(const std::string& path) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return "";
  for (int n = 1;; n++) {
    const std::string to = fmt::format("{}.{}", path, n);
    if (::lstat(to.c_str(), &st) == 0) continue;
    hook("rename.before");
    if (::rename(path.c_str(), to.c_str()) != 0)
      throw DeviceError("cannot keep {} as {}: {}", path, to, strerror(errno));
    hook("rename.after");
    return to;
  }
}

void replaceFile(const std::string& path, std::string_view text) {
  writeFileAtomically(path, text, hook);
}

std::unique_ptr<Journal> Journal::create(const std::string& path) {
  const int old = openLocked(path, O_RDWR);  // throws if it has a writer; held until it is out of the way
  std::string kept;
  try {
    kept = keepOld(path);
  } catch (...) {
    if (old >= 0) ::close(old);
    throw;
  }
  if (old >= 0) ::close(old);
  const int fd = openLocked(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND);
  if (fd < 0) throw DeviceError("cannot write {}: {}", path, strerror(errno));
  std::unique_ptr<Journal> j(new Journal(path, fd));
  j->keptAs_ = std::move(kept);
  return j;
}

std::unique_ptr<Journal> Journal::open(const std::string& path) {
  const int fd = openLocked(path, O_RDWR | O_APPEND);
  if (fd < 0) throw UserError("cannot continue: {}: {}", path, strerror(errno));
  std::unique_ptr<Journal> j(new Journal(path, fd));
  const std::string bytes = readWholeFile(path);
  JournalText text = parseJournal(bytes);
  if (text.records.empty() || text.records[0].value("type", "") != "header")
    throw UserError("cannot continue: {} does not begin with a whole header record", path);
  j->size_ = text.goodBytes;
  j->torn_ = text.goodBytes < bytes.size();
  j->cut_ = !j->torn_;
  j->damaged_ = text.damaged;
  j->records_ = std::move(text.records);
  return j;
}

std::unique_ptr<Journal> Journal::inMemory(std::vector<Json> records) {
  std::unique_ptr<Journal> j(new Journal("", -1));
  j->records_ = std::move(records);
  return j;
}

Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);
}

void Journal::appendAll(std::span<const Json> records) {
  std::string lines;
  for (const Json& r : records) lines += fd_ < 0 ? "" : journalLine(r);
  if (fd_ >= 0) write(lines);
  records_.insert(records_.end(), records.begin(), records.end());
}

void Journal::write(const std::string& lines) {
  hook("journal.before");
  if (!cut_ && ftruncate(fd_, off_t(size_)) != 0) failWriting(path_);
  cut_ = true;
  if (!writeAll(fd_, lines)) {
    const int error = errno;
    // A full disk may have taken half a line; the next writer would drop it, but a reader should not see it.
    if (ftruncate(fd_, off_t(size_)) != 0) { /* the torn line is dropped at the next start */
    }
    errno = error;
    failWriting(path_);
  }
  size_ += lines.size();
  hook("journal.after");
}

void Journal::sync() {
  if (fd_ >= 0 && fsync(fd_) != 0 && errno != EINVAL && errno != EROFS)
    throw DeviceError("cannot sync {}: {}", path_, strerror(errno));
}

std::vector<Json> readJournal(const std::string& path) {
  return parseJournal(readWholeFile(path)).records;
}

}  // namespace rutter::tuner
