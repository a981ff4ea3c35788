#include "onnx/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace rutter::frontend {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // non-blocking: a FIFO must not hang the open
  if (fd < 0) throw UserError("cannot open {}: {}", shown(path), std::strerror(errno));
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  struct stat st;
  if (::fstat(fd, &st) != 0) throw UserError("cannot read {}: {}", shown(path), std::strerror(errno));
  if (S_ISDIR(st.st_mode)) throw UserError("cannot read {}: it is a folder, a file is wanted", shown(path));
  if (!S_ISREG(st.st_mode)) throw UserError("cannot read {}: it is not a regular file", shown(path));
  size_t size = static_cast<size_t>(st.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED) throw DeviceError("cannot map {} ({} bytes): {}", shown(path), size, std::strerror(errno));
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(p), size));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<char*>(data_), size_);
}

std::string shown(std::string_view text) {
  std::string s;
  for (char c : text.substr(0, 100)) {
    auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f) {
      s += fmt::format("\\x{:02x}", u);
    } else {
      s += c;
    }
  }
  return text.size() > 100 ? s + "..." : s;
}

}  // namespace rutter::frontend
