#pragma once
// Read-only mapping of a whole file.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rutter::frontend {

class MappedFile {
 public:
  /// UserError if the file cannot be opened or is no regular file. An empty file maps to no bytes.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  const char* data_;
  size_t size_;
};

/// For messages: control characters escaped, at most about 100 bytes.
std::string shown(std::string_view text);

}  // namespace rutter::frontend
