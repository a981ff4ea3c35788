#pragma once
// The journal: append-only JSON lines, each with a CRC-32C of its line without that field. One writer at a time.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/record.h"

namespace rutter::tuner {

struct JournalText {
  std::vector<Json> records;  ///< without their crc
  size_t goodBytes = 0;       ///< up to here every line is whole; a torn last line begins here
  int damaged = 0;            ///< lines that do not match their CRC; they are left out
};
/// Reads journal text. A last line without its newline is torn.
JournalText parseJournal(std::string_view text);
/// One line with its crc, newline included.
std::string journalLine(const Json& record);
/// Whether a line, without its newline, ends with a checksum that is not its own.
bool isAltered(std::string_view line);

class Journal {
 public:
  /// Starts a new journal. What was at `path` is kept as `path.1`, `path.2`, … (returned by keptAs()).
  /// UserError if another process writes there, DeviceError if it cannot be written.
  static std::unique_ptr<Journal> create(const std::string& path);
  /// Opens an existing journal to go on writing it: a torn last line is cut off by the first append, until then the
  /// file stays as it is.
  /// UserError if there is none, another process writes it, or it does not begin with a header record.
  static std::unique_ptr<Journal> open(const std::string& path);
  /// One that lives in memory only, holding `records`: for replay and tests.
  static std::unique_ptr<Journal> inMemory(std::vector<Json> records);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// In one write; DeviceError if it fails (then nothing of it remains).
  void append(const Json& record) { appendAll({&record, 1}); }
  void appendAll(std::span<const Json> records);
  void sync();
  const std::vector<Json>& records() const { return records_; }
  const std::string& path() const { return path_; }
  const std::string& keptAs() const { return keptAs_; }
  int damaged() const { return damaged_; }
  bool torn() const { return torn_; }  ///< as it was opened

 private:
  Journal(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  void write(const std::string& lines);
  std::string path_, keptAs_;
  int fd_;
  int damaged_ = 0;
  bool torn_ = false;
  bool cut_ = true;  // there is nothing after size_
  size_t size_ = 0;
  std::vector<Json> records_;
};

/// Reads a journal without writing it. UserError if it cannot be read.
std::vector<Json> readJournal(const std::string& path);
/// Renames an existing file to the first free `path.N`, N = 1, 2, …; returns that name, "" if there was no file.
std::string keepOld(const std::string& path);
/// writeFileAtomically, with the points of hook.h.
void replaceFile(const std::string& path, std::string_view text);

}  // namespace rutter::tuner
