#pragma once
// Emitted kernels and packed weights by content: what one build made, the next ones take over.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codegen/tactic.h"

namespace rutter::compiler {

class KernelCache {
 public:
  /// Null if it is not there.
  std::shared_ptr<const codegen::KernelObject> find(const Hash128& key) const;
  void add(const Hash128& key, std::shared_ptr<const codegen::KernelObject> k);
  /// Packed weights by (contents, layout); `make` fills them on a miss.
  std::shared_ptr<const std::string> packed(const Hash128& content, const std::string& layout,
                                            const std::function<std::string()>& make);
  std::vector<Hash128> keys() const;
  size_t bytes() const;  ///< of code and packed weights

 private:
  mutable std::mutex mutex_;
  std::map<Hash128, std::shared_ptr<const codegen::KernelObject>> kernels_;
  std::map<std::pair<Hash128, std::string>, std::shared_ptr<const std::string>> packed_;
};

/// A kernel as bytes that travel between processes; UserError if they are torn.
std::string serializeKernel(const codegen::KernelObject& k);
codegen::KernelObject parseKernel(std::string_view bytes);

}  // namespace rutter::compiler
