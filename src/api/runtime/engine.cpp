#include "api/runtime/objects.h"
#include "ir/type.h"

namespace rutter::api {
namespace {

class RuntimeConfig final : public IRuntimeConfig {
 public:
  void setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy s) noexcept override { strategy_ = s; }
  ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept override {
    return strategy_;
  }

 private:
  ExecutionContextAllocationStrategy strategy_ = ExecutionContextAllocationStrategy::kSTATIC;
};

ir::Layout layoutOf(const runtime::fb::IoTensor& t) {
  ir::Layout l;
  if (t.order()) l.order.assign(t.order()->begin(), t.order()->end());
  return l;
}

}  // namespace

Engine::Engine(std::shared_ptr<const runtime::Engine> engine, std::shared_ptr<runtime::Pool> pool,
               const Reporter& reporter)
    : engine_(std::move(engine)), pool_(std::move(pool)), reporter_(reporter) {
  for (int i = 0; i < engine_->ioCount(); i++) formats_.push_back(layoutOf(engine_->io(i)).text());
}

char const* Engine::getIOTensorName(int32_t i) const noexcept {
  return i >= 0 && i < engine_->ioCount() ? engine_->io(i).name()->c_str() : nullptr;
}
Dims Engine::getTensorShape(char const* name) const noexcept {
  return reporter_.guard(invalidDims(), [&] {
    int i = find(name);
    return i < 0 ? invalidDims() : makeDims(engine_->shape(i));
  });
}
DataType Engine::getTensorDataType(char const* name) const noexcept {
  int i = find(name);
  return i < 0 ? DataType::kFLOAT : DataType(engine_->io(i).dtype());
}
TensorIOMode Engine::getTensorIOMode(char const* name) const noexcept {
  int i = find(name);
  return i < 0 ? TensorIOMode::kNONE : engine_->io(i).is_input() ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT;
}
TensorLocation Engine::getTensorLocation(char const*) const noexcept {
  return TensorLocation::kHOST;
}
TensorFormat Engine::getTensorFormat(char const* name) const noexcept {
  return reporter_.guard(TensorFormat::kLINEAR, [&] {
    int i = find(name);
    if (i < 0) return TensorFormat::kLINEAR;
    ir::Layout l = layoutOf(engine_->io(i));
    if (l.isRowMajor()) return TensorFormat::kLINEAR;
    return l == ir::Layout::channelsLast(l.order.size()) ? TensorFormat::kHWC : TensorFormat::kOTHER;
  });
}
char const* Engine::getTensorFormatDesc(char const* name) const noexcept {
  int i = find(name);
  return i < 0 ? nullptr : formats_[size_t(i)].c_str();
}
int32_t Engine::getNbLayers() const noexcept {
  return engine_->plan().layers() ? int32_t(engine_->plan().layers()->size()) : 0;
}

IExecutionContext* Engine::createExecutionContext(ExecutionContextAllocationStrategy strategy) noexcept {
  return reporter_.guard(static_cast<IExecutionContext*>(nullptr), [&]() -> IExecutionContext* {
    runtime::MemoryPolicy policy;
    switch (strategy) {
      case ExecutionContextAllocationStrategy::kSTATIC:
        policy = runtime::MemoryPolicy::kStatic;
        break;
      case ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE:
        policy = runtime::MemoryPolicy::kProfile;
        break;
      case ExecutionContextAllocationStrategy::kUSER_MANAGED:
        policy = runtime::MemoryPolicy::kUser;
        break;
      default:
        throw UserError("unknown allocation strategy {}", int(strategy));
    }
    return new ExecutionContext(*this, pool_, policy, reporter_);
  });
}
IExecutionContext* Engine::createExecutionContext(IRuntimeConfig* config) noexcept {
  return createExecutionContext(config ? config->getExecutionContextAllocationStrategy()
                                       : ExecutionContextAllocationStrategy::kSTATIC);
}
IRuntimeConfig* Engine::createRuntimeConfig() noexcept {
  return reporter_.guard(static_cast<IRuntimeConfig*>(nullptr), []() -> IRuntimeConfig* { return new RuntimeConfig; });
}
IEngineInspector* Engine::createEngineInspector() const noexcept {
  return reporter_.guard(static_cast<IEngineInspector*>(nullptr),
                         [&]() -> IEngineInspector* { return new EngineInspector(engine_, reporter_); });
}
IHostMemory* Engine::serialize() const noexcept {
  return reporter_.guard(static_cast<IHostMemory*>(nullptr),
                         [&]() -> IHostMemory* { return new HostMemory(std::string(engine_->bytes())); });
}
Dims Engine::getProfileShape(char const* name, int32_t profile, OptProfileSelector select) const noexcept {
  return reporter_.guard(invalidDims(), [&] {
    int i = find(name);
    if (i < 0 || i >= engine_->inputs() || profile < 0 || profile >= engine_->profiles()) return invalidDims();
    return makeDims(engine_->profileShape(i, profile, int(select)));
  });
}
int64_t Engine::getDeviceMemorySizeV2() const noexcept {
  return runtime::Context::memoryBytes(*engine_, pool_->threads(), -1);
}
int64_t Engine::getDeviceMemorySizeForProfileV2(int32_t profile) const noexcept {
  return reporter_.guard(int64_t(-1), [&] {
    if (profile < 0 || profile >= engine_->profiles()) return int64_t(-1);
    return runtime::Context::memoryBytes(*engine_, pool_->threads(), profile);
  });
}
int64_t Engine::getEngineStat(EngineStat stat) const noexcept {
  return stat == EngineStat::kTOTAL_WEIGHTS_SIZE ? engine_->weightsBytes() : -1;
}

}  // namespace rutter::api
