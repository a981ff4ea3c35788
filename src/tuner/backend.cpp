#include "tuner/backend.h"

#include "base/file.h"
#include "base/hash.h"

namespace rutter::tuner {

std::string Backend::wholeEngine(const std::string& path) {
  return readWholeFile(path);
}
std::string Backend::hashOf(const std::string& path) {
  return hashBytes(readWholeFile(path)).hex();
}

}  // namespace rutter::tuner
