#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace rutter {
namespace {

std::string folderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}
// What the names of a file's temporaries begin with; they must not be longer than a name may be.
std::string stemOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1).substr(0, 200) + ".tmp-";
}
bool isTemporary(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  return !name.empty() && name.find_first_not_of("0123456789-") == name.npos;
}

// A writer holds its temporary's lock, so one that can be locked is nobody's.
void sweep(const std::string& path) {
  const std::string stem = stemOf(path);
  std::error_code error;
  for (auto e = std::filesystem::directory_iterator(folderOf(path), error), end = decltype(e)(); !error && e != end;
       e.increment(error)) {
    if (!isTemporary(e->path().filename().string(), stem)) continue;
    struct stat st;
    if (lstat(e->path().c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) continue;
    const int fd = open(e->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(e->path().c_str());
    close(fd);
  }
}

// Where the links of a path lead: to a descriptor that is open ("/dev/stdout", "/proc/self/fd/3"), or to a file.
struct Target {
  std::string path;
  int descriptor = -1;
};
Target follow(std::string path) {
  char text[4096];
  for (int hops = 0; hops < 40; hops++) {
    for (const std::string& folder : {std::string("/proc/self/fd/"), std::string("/dev/fd/")})
      if (path.starts_with(folder) && path.size() > folder.size() &&
          path.find_first_not_of("0123456789", folder.size()) == path.npos &&
          (path[folder.size()] != '0' || path.size() == folder.size() + 1)) {  // "007" is no name there
        // Beyond what an int holds: a number of which no file is open.
        int number = INT_MAX;
        std::from_chars(path.data() + folder.size(), path.data() + path.size(), number);
        return {path, number};
      }
    const ssize_t n = readlink(path.c_str(), text, sizeof text);
    if (n <= 0 || size_t(n) == sizeof text) break;
    const std::string to(text, size_t(n));
    path = to[0] == '/' || path.find('/') == path.npos ? to : folderOf(path) + to;
  }
  return {path};
}

// Not every file system can.
bool sync(int fd) {
  return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

}  // namespace

std::string readWholeFile(const std::string& path) {
  const auto fail = [&] { return UserError("cannot read '{}': {}", path, std::strerror(errno)); };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw fail();
  struct stat st;
  // One byte more than there is, so that the end shows without growing.
  std::string bytes(fstat(fd, &st) == 0 && st.st_size > 0 ? size_t(st.st_size) + 1 : 1 << 16, '\0');
  size_t size = 0;
  while (true) {
    if (size == bytes.size()) bytes.resize(2 * size);
    const ssize_t n = read(fd, bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const auto error = fail();
      close(fd);
      throw error;
    }
    if (n == 0) break;
    size += size_t(n);
  }
  close(fd);
  bytes.resize(size);
  return bytes;
}

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(size_t(n));
  }
  return true;
}

void failWriting(const std::string& path) {
  if (errno == ENOSPC || errno == EDQUOT)
    throw DiskFullError("cannot write '{}': {}: free some", path, std::strerror(errno));
  if (errno == EFBIG)
    throw DiskFullError("cannot write '{}': {}: allow larger files (ulimit -f)", path, std::strerror(errno));
  throw DeviceError("cannot write '{}': {}", path, std::strerror(errno));
}

void appendToFile(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) failWriting(path);
  const bool written = writeAll(fd, bytes);
  const int error = errno;
  close(fd);
  errno = error;
  if (!written) failWriting(path);
}

bool isOpenDescriptor(const std::string& path) {
  return follow(path).descriptor >= 0;
}

std::string whyUnwritable(const std::string& path) {
  struct stat st, file;
  const Target target = follow(path);
  if (target.descriptor >= 0)
    return fcntl(target.descriptor, F_GETFL) < 0 ? fmt::format("no file {} is open", target.descriptor) : "";
  if (stat(path.c_str(), &st) != 0 && errno == ELOOP) return "its links lead in a circle";
  std::string folder = folderOf(target.path);
  if (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (stat(folder.c_str(), &st) == 0 && !S_ISDIR(st.st_mode)) return fmt::format("{} is a file, not a folder", folder);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return fmt::format("nothing can be written to the folder {}: {}", folder, std::strerror(errno));
  const uid_t user = geteuid();
  if ((st.st_mode & S_ISVTX) && user != 0 && st.st_uid != user && lstat(target.path.c_str(), &file) == 0 &&
      file.st_uid != user)
    return fmt::format("it is another user's, and in the folder {} only its owner may replace it", folder);
  return "";
}

const char* notAFile(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return "";
  return S_ISDIR(st.st_mode) ? "a folder" : !S_ISREG(st.st_mode) || isOpenDescriptor(path) ? "a device or a pipe" : "";
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat st;
  const Target target = follow(path_);
  if (target.descriptor >= 0) {  // even if it is redirected to a file: others write there, too
    fd_ = fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0);
    if (fd_ < 0) fail();
    return;
  }
  path_ = target.path;
  const bool exists = stat(path_.c_str(), &st) == 0;
  if (!exists && errno == ELOOP) fail();
  if (exists && !S_ISREG(st.st_mode)) {
    fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail();
    return;
  }
  sweep(path_);
  static std::atomic<uint32_t> counter{0};
  while (true) {
    temporary_ = fmt::format("{}{}{}-{}", path_.find('/') == path_.npos ? "" : folderOf(path_), stemOf(path_), getpid(),
                             counter++);
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ < 0)
      throw DeviceError("cannot write '{}': no file can be made in the folder '{}': {}", path_, folderOf(path_),
                        std::strerror(errno));
    // Another process may sweep it between the two calls: then it is made again.
    const bool taken = flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && fstat(fd_, &st) == 0 && st.st_nlink > 0) return;
    close(fd_);
  }
}
AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  close(fd_);
}
void AtomicFile::fail() const {
  failWriting(path_);
}
void AtomicFile::write(std::string_view bytes) {
  if (!writeAll(fd_, bytes)) fail();
}
void AtomicFile::finish(bool durable, Hook hook) {
  if (temporary_.empty()) {
    if (close(std::exchange(fd_, -1)) != 0) fail();
    return;
  }
  if (durable && !sync(fd_)) fail();
  if (hook) hook("rename.before");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  close(std::exchange(fd_, -1));
  if (hook) hook("rename.after");
  if (!durable) return;
  if (const int d = open(folderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); d >= 0) {
    fsync(d);  // the rename itself; some file systems cannot, and the data is safe already
    close(d);
  }
}

void writeFileAtomically(const std::string& path, std::string_view bytes, AtomicFile::Hook hook) {
  AtomicFile f(path);
  f.write(bytes);
  f.finish(true, hook);
}

}  // namespace rutter
