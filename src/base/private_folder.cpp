#include "base/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace rutter {
namespace {
namespace fs = std::filesystem;

bool lockWhole(int fd) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(fd, F_SETLK, &whole) == 0;
}

// The lock goes last: who is killed before leaves a folder that the next one sweeps.
void removeLocked(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> all;
  for (const auto& e : fs::directory_iterator(folder, error))
    if (e.path().filename() != "lock") all.push_back(e.path());
  for (const fs::path& p : all) fs::remove_all(p, error);
  fs::remove_all(folder, error);
}

void sweep(const std::string& parent, const std::string& prefix) {
  std::error_code error;
  for (const auto& e : fs::directory_iterator(parent, error)) {
    if (!e.path().filename().string().starts_with(prefix)) continue;
    struct stat st;
    if (::lstat(e.path().c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) continue;
    const int fd = ::open((e.path() / "lock").c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) continue;  // just being made, or a user's own by such a name
    // An orphaned child may still be writing into it: again until it is empty.
    if (lockWhole(fd))
      for (int round = 0; round < 100 && fs::exists(e.path(), error); round++) {
        if (round) usleep(10'000);
        removeLocked(e.path());
      }
    ::close(fd);
  }
}

}  // namespace

PrivateFolder::PrivateFolder(const std::string& parent, const std::string& prefix) {
  sweep(parent, prefix);
  // Another process may sweep the folder between its making and its locking: then it is made again.
  for (int attempt = 0; attempt < 10; attempt++) {
    path_ = parent + "/" + prefix + "XXXXXX";
    if (!mkdtemp(path_.data())) throw DeviceError("cannot make a folder in {}: {}", parent, strerror(errno));
    const std::string name = path_ + "/lock";
    lock_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat st;
    if (lock_ >= 0 && lockWhole(lock_) && ::stat(name.c_str(), &st) == 0) return;
    if (lock_ >= 0) ::close(lock_);
    lock_ = -1;
  }
  throw DeviceError("cannot lock a folder in {}", parent);
}

PrivateFolder::~PrivateFolder() {
  removeLocked(path_);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace rutter
