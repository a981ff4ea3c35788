#pragma once
// The engine on disk or in memory:
//   0   magic (8 bytes) · format version (u32) · manifest bytes (u32) · file bytes (u64) · zero (u64)
//   32  XXH3-128 of the header (this field zero) and the manifest · zero (16 bytes)
//   64  manifest: JSON; names every section with offset, size and XXH3-128, and what the engine needs
//   …   sections plan, code, weights, each at a multiple of 64 (weights: of 4096), zeros between
// Little-endian. Nothing in it is trusted before its checksum; behind the checksums the plan is verified once more.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu.h"
#include "base/hash.h"
#include "runtime/plan_generated.h"

namespace rutter::runtime {

inline constexpr char kEngineMagic[8] = {'R', 'U', 'T', 'T', 'E', 'R', '\n', '\x1a'};
/// Raised by every change of the file, the plan's schema or the kernel ABI: an engine of another number is refused.
inline constexpr uint32_t kFormatVersion = 1;

/// One piece of the weights section. The bytes must live until the engine is written.
struct WeightChunk {
  int64_t offset;  ///< from the start of the section; a multiple of 64; ascending, not overlapping
  std::string_view data;
  Hash128 key{};  ///< equal keys and sizes are equal bytes; zero: not known
};

/// All that an engine is made of.
struct EngineParts {
  fb::PlanT plan;
  std::string code;                  ///< ELF shared object that defines plan.kernels; empty if there are none
  std::vector<WeightChunk> weights;  ///< gaps between chunks are zeros
  CpuFeatures features;              ///< that the code uses
  std::string target = "cpu";
  std::map<std::string, std::string> versions;  ///< "rutter", "llvm", "emitter" …
  std::string fingerprint;  ///< JSON of machine, stack and shapes that a tuned engine was tuned for; empty: not tuned
  std::map<std::string, std::string> notes;  ///< further hashes and facts for people: "timing_cache", "profile" …
};

/// The engine's bytes; equal parts give equal bytes. InternalError if parts contradict each other.
std::string writeEngine(const EngineParts& parts);
/// What lies in front of the weights section, whose size and checksum are these.
std::string engineHead(const EngineParts& parts, const Hash128& weightsHash);
uint64_t weightsBytes(const EngineParts& parts);
Hash128 hashWeights(std::span<const WeightChunk> weights, uint64_t bytes);
inline Hash128 hashWeights(const EngineParts& parts) {
  return hashWeights(parts.weights, weightsBytes(parts));
}
/// Through AtomicFile (base/file.h): the old file stays whole until the new one is. Weights are not copied in memory.
/// DeviceError naming path and reason. Without `durable` nothing is synced: for files that a crash of the machine may
/// take.
void writeEngineFile(const EngineParts& parts, const std::string& path, bool durable = true);

/// Bytes that stay where they are while this lives.
class Blob {
 public:
  virtual ~Blob() = default;
  std::string_view bytes() const { return bytes_; }
  /// Maps a file read-only. UserError if it cannot be opened or is empty.
  static std::shared_ptr<const Blob> map(const std::string& path);
  /// Copies to memory aligned as a mapping is.
  static std::shared_ptr<const Blob> copy(std::string_view bytes);

 protected:
  std::string_view bytes_;
};

struct Manifest {
  struct Section {
    std::string name;
    uint64_t offset = 0, size = 0;
    Hash128 hash;
  };
  std::vector<Section> sections;
  CpuFeatures features;
  std::string target, route, decisionHash, modelHash, modelName, fingerprint;
  std::map<std::string, std::string> versions, notes;
};

/// What the file holds, every checksum checked.
struct EngineImage {
  Manifest manifest;
  std::string_view plan, code, weights;
};
/// Checks magic, version, size, checksums and manifest. UserError says what is wrong: not an engine, truncated (by how
/// much), of another format version, altered (which section).
EngineImage readEngine(std::string_view bytes);
/// The same of an engine whose weights lie elsewhere, in pieces; gaps between them are zeros. `head`: the file in front
/// of its weights section. `weights` of the result is empty.
EngineImage readEngine(std::string_view head, std::span<const WeightChunk> weights, int64_t weightsBytes);
/// Differs whenever an engine differs in anything: its header's checksum, which covers those of all sections.
Hash128 engineIdentity(std::string_view bytes);
/// Where the weights of an engine lie; only the header is checked.
std::string_view weightsSection(std::string_view bytes);
/// Format version of something that looks like an engine, without further checks. UserError if it does not.
uint32_t readFormatVersion(std::string_view bytes);

}  // namespace rutter::runtime
