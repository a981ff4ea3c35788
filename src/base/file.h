#pragma once
// Whole files: read in one go, or written so that no reader, crash or full disk ever shows half of one.
#include <string>
#include <string_view>

namespace rutter {

/// UserError that names the file and the reason if it cannot be read.
std::string readWholeFile(const std::string& path);

/// All of `bytes`, however many calls it takes; false, with errno set, if that fails.
bool writeAll(int fd, std::string_view bytes);

/// Appends in one write, or as few as it takes; makes the file if there is none. DeviceError as failWriting.
void appendToFile(const std::string& path, std::string_view bytes);

/// True for names that stand for this process's open files: /dev/stdout, /dev/fd/3, links to them.
bool isOpenDescriptor(const std::string& path);

/// Why a file cannot be written or replaced at a path, as far as its folder and its links tell; "" if nothing is wrong.
std::string whyUnwritable(const std::string& path);

/// What stands at a path where a file is to be written and read again: "a folder", "a device or a pipe"; "" if nothing
/// or a file does.
const char* notAFile(const std::string& path);

/// DeviceError (DiskFullError, if that is why) about a write that failed with errno.
[[noreturn]] void failWriting(const std::string& path);

/// A file that appears under its name only when it is whole. Until finish() it is a temporary beside it, which goes
/// with this object and leaves what was there before as it was. Temporaries that killed processes left of the same file
/// go, too. A link stays, and what it leads to is written. What is no regular file (a pipe), and what is open already
/// (/dev/stdout, also if it is redirected to a file) is written directly. DeviceError that names the file and the
/// reason (no such folder, read-only, disk full) from every call.
class AtomicFile {
 public:
  /// Called with "rename.before" and "rename.after": where tests end a process.
  using Hook = void (*)(const char* point);

  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(std::string_view bytes);
  /// `durable`: the bytes and the name survive a crash of the machine.
  void finish(bool durable = true, Hook hook = nullptr);

 private:
  [[noreturn]] void fail() const;
  std::string path_, temporary_;  // no temporary: written directly
  int fd_ = -1;
};

void writeFileAtomically(const std::string& path, std::string_view bytes, AtomicFile::Hook hook = nullptr);

}  // namespace rutter
