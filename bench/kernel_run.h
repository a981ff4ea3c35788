#pragma once
// Compiles one kernel problem for the CPU target and runs it on one thread, for benchmarks.
#include <memory>
#include <string>
#include <vector>

#include "codegen/tactic.h"
#include "knobs/resolve.h"

namespace rutter::bench {

/// 64-byte aligned memory, touched.
struct Buffer {
  explicit Buffer(int64_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  void* data;
};

class KernelRun {
 public:
  /// `tactic` "": the cheapest that accepts. UserError with the refusal if none does.
  KernelRun(const codegen::Problem& p, const codegen::MachineProfile& m, const std::string& route = "",
            const std::string& tactic = "");
  ~KernelRun();
  const codegen::Config& config() const { return config_; }
  const codegen::Lowering& lowering() const { return lowering_; }
  const codegen::KernelObject& object() const { return object_; }
  const std::vector<std::string>& refusals() const { return refusals_; }
  std::string disassembly() const;
  /// Operands by the problem's numbers; constants are packed on the first call. `chunk`: tasks a call (0: all at once).
  void prepare(const std::vector<void*>& operands, const std::vector<int64_t>& params);
  int run(int64_t chunk = 0);

 private:
  struct Launch {
    int32_t (*code)(const void*, int64_t, int64_t, void*);
    std::vector<void*> ptr;
    int64_t tasks = 0;
  };
  codegen::Problem p_;
  codegen::Config config_;
  codegen::Lowering lowering_;
  codegen::KernelObject object_;
  std::vector<std::string> refusals_;
  void* library_ = nullptr;
  std::vector<Launch> launches_;
  std::vector<std::unique_ptr<Buffer>> packs_, workspaces_, scratch_;
  std::vector<int64_t> params_;
};

}  // namespace rutter::bench
