#include "compiler/kernel_cache.h"

#include "base/bytes.h"

namespace rutter::compiler {

std::shared_ptr<const codegen::KernelObject> KernelCache::find(const Hash128& key) const {
  std::lock_guard lock(mutex_);
  auto it = kernels_.find(key);
  return it == kernels_.end() ? nullptr : it->second;
}
void KernelCache::add(const Hash128& key, std::shared_ptr<const codegen::KernelObject> k) {
  std::lock_guard lock(mutex_);
  kernels_.try_emplace(key, std::move(k));
}
std::shared_ptr<const std::string> KernelCache::packed(const Hash128& content, const std::string& layout,
                                                       const std::function<std::string()>& make) {
  {
    std::lock_guard lock(mutex_);
    auto it = packed_.find({content, layout});
    if (it != packed_.end()) return it->second;
  }
  auto made = std::make_shared<const std::string>(make());
  std::lock_guard lock(mutex_);
  return packed_.try_emplace({content, layout}, made).first->second;
}
std::vector<Hash128> KernelCache::keys() const {
  std::lock_guard lock(mutex_);
  std::vector<Hash128> v;
  for (auto& [k, o] : kernels_) v.push_back(k);
  return v;
}
size_t KernelCache::bytes() const {
  std::lock_guard lock(mutex_);
  size_t n = 0;
  for (auto& [k, o] : kernels_) n += o->object.size();
  for (auto& [k, s] : packed_) n += s->size();
  return n;
}

std::string serializeKernel(const codegen::KernelObject& k) {
  ByteWriter w;
  w.put(k.object);
  w.put(k.symbols);
  return w.take();
}
codegen::KernelObject parseKernel(std::string_view bytes) {
  ByteReader r(bytes);
  codegen::KernelObject k;
  k.object = std::string(r.getString());
  for (uint64_t n = r.get<uint64_t>(); n > 0; n--) k.symbols.emplace_back(r.getString());
  return k;
}

}  // namespace rutter::compiler
