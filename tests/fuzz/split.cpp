// Split engines past their checksum: any table, head and weights beside a good base end in an engine or in a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "runtime/engine_split.h"

using namespace rutter;
using namespace rutter::runtime;

namespace {
std::shared_ptr<const Blob> base() {
  static const std::string weights = [] {
    std::string s(12000, '\0');
    for (size_t i = 0; i < s.size(); i++) s[i] = char(i * 7);
    return s;
  }();
  EngineParts p;
  p.plan.profiles = 1;
  p.plan.regions.push_back(std::make_unique<fb::RegionT>());
  p.weights.push_back({0, weights, hashBytes(weights)});
  return Blob::copy(writeEngine(p));
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Two bytes: how long the table is; the table; what follows it, from the next page on.
  if (size < 2) return 0;
  static const std::shared_ptr<const Blob> good = base();
  const size_t table = std::min<size_t>(size - 2, size_t(data[0]) | size_t(data[1]) << 8);
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2), text = rest.substr(0, table);
  const Hash128 check = hashBytes(text);
  ByteWriter w;
  w.put(check.lo);
  w.put(check.hi);
  w.put<uint64_t>(table);
  std::string file = "RUTSPLIT" + w.take();
  file += text;
  file.resize((file.size() + 4095) / 4096 * 4096, '\0');
  file += rest.substr(table);
  file.resize((file.size() + 4095) / 4096 * 4096, '\0');
  try {
    const EngineFiles e =
        openEngineFiles("split", [&](const std::string& path) { return path == "split" ? Blob::copy(file) : good; });
    const std::string whole = wholeEngine(e);
    if (!e.split() || whole.size() != e.head.size() + size_t(e.weightsBytes)) std::abort();
    readEngineFiles(e);
  } catch (const UserError&) {
  }
  return 0;
}
