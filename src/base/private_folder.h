#pragma once
// A folder that only this process uses.
#include <string>

namespace rutter {

/// Goes with the object; with a killed process it goes when the next one of that prefix is made: a folder whose lock
/// nobody holds is nobody's. The lock is fcntl's record lock, as it dies with this very process: flock's would live on
/// in a child that was forked and has not yet closed what it inherited. A process keeps one of a prefix at a time.
class PrivateFolder {
 public:
  /// `<parent>/<prefix>XXXXXX`. DeviceError if it cannot be made.
  PrivateFolder(const std::string& parent, const std::string& prefix);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace rutter
