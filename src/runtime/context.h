#pragma once
// Runs an engine for one set of input shapes at a time. Any number of contexts of one engine may run at once; one
// context belongs to one thread at a time.
//   Context c(engine, pool);
//   c.setInputShape(0, {1, 3, 320, 320});
//   c.setAddress(0, in);  c.setAddress(1, out);
//   c.run();
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ints.h"
#include "runtime/engine.h"
#include "runtime/memory.h"
#include "runtime/pool.h"
#include "runtime/verify.h"

namespace rutter::runtime {

/// A kernel or reference node failed: the inputs' contents are not what the model allows. The text names the layer.
class ExecutionError : public UserError {
 public:
  using UserError::UserError;
};

/// Who provides activations and scratch, and for which shapes they suffice.
enum class MemoryPolicy : uint8_t {
  kStatic,   ///< the context, once, for every profile
  kProfile,  ///< the context, for the profile in use
  kShapes,   ///< the context, for the shapes in use; grows
  kUser,     ///< the caller, by setMemory
};

class Context {
 public:
  Context(std::shared_ptr<const Engine> engine, std::shared_ptr<Pool> pool,
          MemoryPolicy policy = MemoryPolicy::kStatic);

  const Engine& engine() const { return *engine_; }
  Pool& pool() const { return *pool_; }
  int profile() const { return profile_; }
  /// Forgets the shapes of inputs with dynamic extents. UserError if there is no such profile.
  void setProfile(int profile);
  /// UserError if rank or an extent does not fit the profile.
  void setInputShape(int io, std::span<const int64_t> dims);
  void setInputShape(int io, std::initializer_list<int64_t> d) {
    setInputShape(io, std::span<const int64_t>(d.begin(), d.size()));
  }
  bool hasShape(int io) const { return specified_[size_t(io)]; }
  int unspecifiedInputs() const;
  std::span<const int64_t> inputShape(int io) const;           ///< as set
  std::span<const int64_t> values() const { return values_; }  ///< of the plan's expressions, after resolve()
  /// Evaluates sizes for the shapes set and prepares every launch. UserError names a missing shape, or a condition of
  /// the model that the shapes break. Called by whatever needs it.
  void resolve();
  /// Extents under the shapes set (resolves).
  std::vector<int64_t> shape(int io);
  int64_t bytes(int io);  ///< of an input or output (resolves)

  /// Any alignment (64 is fastest). Null is allowed while nothing runs, and for tensors of no elements.
  void setAddress(int io, void* address);
  void* address(int io) const { return addresses_[size_t(io)]; }
  /// Activations and scratch, for MemoryPolicy::kUser: 64-byte aligned, at least memoryBytes(). UserError if not
  /// aligned.
  void setMemory(void* memory, int64_t bytes);
  int64_t memoryBytes();  ///< for the shapes set (resolves)
  /// For the maximum of a profile (-1: of every profile), with a pool of so many threads.
  static int64_t memoryBytes(const Engine& engine, int threads, int profile);

  /// Runs everything; returns when done. ExecutionError names the layer that failed; UserError if a shape, an address
  /// or the memory is missing. Does not allocate once shapes and addresses are set, unless the engine has reference
  /// nodes.
  void run();
  /// Times every layer in run(), at a cost of some 50 ns a launch.
  void setProfiling(bool on);
  /// Milliseconds of each layer in the last profiled run; 0 for layers that did not run.
  std::span<const double> layerTimes() const { return layerMs_; }
  /// Layers in the order in which they first run.
  std::vector<int> executionOrder() const;

 private:
  struct Source {  // where a pointer comes from
    int32_t buffer;
    int64_t offset;
  };
  struct Step {
    int32_t layer = 0;
    fb::Action kind = fb::Action::NONE;
    uint32_t firstPtr = 0;
    int64_t bytes = 0;  // of a copy
    Job job;
    const fb::Reference* reference = nullptr;
    const ReferenceNode* node = nullptr;
  };
  void bind();
  std::string shapesThatFit() const;  // near those that were set; "": none were found
  void execute(const Step& s);
  void runReference(const Step& s);
  int64_t scratchStart() const { return roundUp(arenaUse_, 64); }

  std::shared_ptr<const Engine> engine_;
  std::shared_ptr<Pool> pool_;
  MemoryPolicy policy_;
  int profile_ = 0;
  std::vector<int32_t> firstDim_;
  std::vector<int64_t> inputDims_, values_;
  std::vector<bool> specified_;
  bool resolved_ = false, bound_ = false, profiling_ = false;

  std::vector<Source> sources_;
  std::vector<void*> ptrs_;
  std::vector<int64_t> dims_;
  std::vector<Step> steps_;
  std::vector<void*> addresses_;
  int64_t arenaUse_ = 0;
  Memory own_;
  char* memory_ = nullptr;
  int64_t memorySize_ = 0;
  std::vector<double> layerMs_;
};

}  // namespace rutter::runtime
