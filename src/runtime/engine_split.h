#pragma once
// Engines of one search share most weights. What a candidate is kept as: all of its engine file in front of the weights
// section, the weights that the base engine lacks, and where in the base's file the others lie. Nothing is copied, and
// the whole engine comes out of it byte for byte. For files that only the process group of one search reads.
//   magic (8 bytes) · XXH3-128 of the table · table: sizes, path of the base, pieces · head · own weights
#include <map>
#include <memory>
#include <string>

#include "runtime/engine.h"
#include "runtime/engine_file.h"

namespace rutter::runtime {

/// Where an engine that exists as a file has which weights.
class WeightIndex {
 public:
  WeightIndex() = default;
  /// `path`: the file that `parts` were written to. Chunks without a key are not found again.
  WeightIndex(const EngineParts& parts, std::string path);
  /// Offset in the weights section of the base's chunk of this key and size; -1 if it has none.
  int64_t find(const WeightChunk& c) const;
  const std::string& path() const { return path_; }
  /// Whether all chunks are the same at the same places: then their checksum is the same, too.
  bool sameSection(const EngineParts& parts) const;
  const Hash128& sectionHash() const { return hash_; }

 private:
  std::string path_;
  std::map<Hash128, std::pair<int64_t, int64_t>> chunks_;  // key -> offset, size
  std::vector<std::pair<int64_t, Hash128>> order_;
  Hash128 hash_;
};

/// Writes a split engine (no sync) and returns the identity of the whole one, as engineIdentity gives it. Chunks of
/// less than a page are not worth a reference: they are written. DeviceError if the file cannot be written.
Hash128 writeSplitEngine(const EngineParts& parts, const WeightIndex& base, const std::string& path);

/// An engine file of either kind, mapped.
struct EngineFiles {
  std::shared_ptr<const Blob> file, base;  ///< base: of a split engine
  std::string_view head;                   ///< of a split engine: its engine file in front of the weights
  std::vector<WeightChunk> weights;        ///< of a split engine
  int64_t weightsBytes = 0;
  bool split() const { return base != nullptr; }
};
/// Maps a file of either kind; `map` may keep mappings for several engines. UserError if it is torn.
EngineFiles openEngineFiles(const std::string& path,
                            const std::function<std::shared_ptr<const Blob>(const std::string&)>& map = &Blob::map);
/// Reads either kind, every checksum checked.
EngineImage readEngineFiles(const EngineFiles& files);
/// Loads either kind, with every check.
std::shared_ptr<const Engine> loadEngineFiles(const EngineFiles& files, const LoadOptions& options = {});
/// The bytes of the whole engine.
std::string wholeEngine(const EngineFiles& files);

}  // namespace rutter::runtime
