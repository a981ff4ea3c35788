#pragma once
// An engine ready to run: checked, its code loaded, its weights where the file is mapped. Immutable; contexts share it.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "runtime/engine_file.h"
#include "runtime/kernel_abi.h"

namespace rutter::runtime {

struct LoadOptions {
  CpuFeatures available = cpuInfo().features;  ///< what code may use
  std::string temporaryDirectory;  ///< for the code, where the system allows no executable memory files; empty: TMPDIR
};

/// The engine's shared object in this process.
class Code {
 public:
  Code(std::string_view sharedObject, const std::string& temporaryDirectory);  ///< UserError if it cannot be loaded
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  Kernel find(const std::string& symbol) const;  ///< UserError if it is not there

 private:
  void* handle_ = nullptr;
  int fd_ = -1;
};

/// A node that its oracle runs. Operand dtypes are known, extents are the plan's business.
struct ReferenceNode {
  ir::Node node;
  std::vector<std::unique_ptr<ir::Value>> values;
};

class Engine {
 public:
  /// Checks everything, then loads the code. UserError says what is wrong: see readEngine and verifyPlan; also
  /// instruction sets that this machine lacks and kernels that the code does not define.
  static std::shared_ptr<const Engine> load(std::shared_ptr<const Blob> bytes, const LoadOptions& options = {});
  /// The same of an engine whose weights lie elsewhere in pieces (engine_split.h); `owners` keep all bytes alive.
  static std::shared_ptr<const Engine> load(std::string_view head, std::vector<WeightChunk> weights,
                                            int64_t weightsBytes, std::vector<std::shared_ptr<const Blob>> owners,
                                            const LoadOptions& options = {});

  std::string_view bytes() const { return bytes_; }  ///< the whole file; without its weights if they lie elsewhere
  const Manifest& manifest() const { return manifest_; }
  const fb::Plan& plan() const { return *plan_; }
  const char* weights() const { return weights_; }  ///< null if they lie in pieces
  const char* weightsAt(int64_t offset) const;
  int64_t weightsBytes() const { return weightsBytes_; }
  Kernel kernel(int i) const { return kernels_[size_t(i)]; }
  /// Of instruction i of the main region; null if it is no reference node.
  const ReferenceNode* reference(int instruction) const { return references_[size_t(instruction)].get(); }
  int64_t scratchBytes() const { return scratch_; }  ///< a thread, a multiple of 64

  int inputs() const { return inputs_; }
  int ioCount() const { return ioCount_; }
  const fb::IoTensor& io(int i) const { return *plan_->io()->Get(uint32_t(i)); }
  int findIo(std::string_view name) const;  ///< -1 if there is none
  /// Extents of an input or output, -1 where they depend on the shapes set.
  std::vector<int64_t> shape(int io) const;
  /// Ranges of an input in a profile. which: 0 min, 1 opt, 2 max.
  std::vector<int64_t> profileShape(int io, int profile, int which) const;
  int profiles() const { return plan_->profiles(); }
  std::string_view layerName(int layer) const;
  /// Values of the plan's expressions with all inputs at a profile's min, opt or max.
  std::vector<int64_t> valuesAt(int profile, int which) const;
  int64_t maxBytes(int io, int profile) const;  ///< of an input or output at a profile's max
  /// Arena bytes for the maximum of a profile; for all profiles if profile < 0.
  int64_t arenaBytes(int profile = -1) const;

 private:
  Engine() = default;
  void open(EngineImage image, const LoadOptions& options);
  std::vector<std::shared_ptr<const Blob>> blobs_;
  std::string_view bytes_;
  std::vector<WeightChunk> pieces_;  // ascending; empty: all at weights_
  Manifest manifest_;
  const fb::Plan* plan_ = nullptr;
  const char* weights_ = nullptr;
  int64_t weightsBytes_ = 0, scratch_ = 0;
  int inputs_ = 0, ioCount_ = 0;
  std::unique_ptr<Code> code_;
  std::vector<Kernel> kernels_;
  std::vector<std::unique_ptr<ReferenceNode>> references_;
  std::vector<std::optional<int64_t>> constants_;  // expressions that do not depend on shapes
};

}  // namespace rutter::runtime
