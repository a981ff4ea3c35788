#include "api/runtime/objects.h"

namespace rutter::api {

ExecutionContext::ExecutionContext(const Engine& engine, std::shared_ptr<runtime::Pool> pool,
                                   runtime::MemoryPolicy policy, const Reporter& reporter)
    : engine_(engine),
      context_(engine.engine(), std::move(pool), policy),
      reporter_(reporter),
      allocators_(size_t(engine.engine()->ioCount())),
      order_(context_.executionOrder()) {}

int ExecutionContext::need(char const* name, TensorIOMode mode) const {
  const runtime::Engine& e = context_.engine();
  int i = name ? e.findIo(name) : -1;
  const char* kind = mode == TensorIOMode::kINPUT    ? "input"
                     : mode == TensorIOMode::kOUTPUT ? "output"
                                                     : "input or output";
  if (i < 0 || (mode != TensorIOMode::kNONE && e.io(i).is_input() != (mode == TensorIOMode::kINPUT))) {
    std::string known;
    for (int k = 0; k < e.ioCount(); k++)
      if (mode == TensorIOMode::kNONE || e.io(k).is_input() == (mode == TensorIOMode::kINPUT))
        known += (known.empty() ? "" : ", ") + e.io(k).name()->str();
    throw UserError("the engine has no {} '{}'; it has: {}", kind, name ? name : "(null)",
                    known.empty() ? "none" : known);
  }
  return i;
}

bool ExecutionContext::setInputShape(char const* name, Dims const& dims) noexcept {
  return reporter_.guard(false, [&] {
    int i = need(name, TensorIOMode::kINPUT);
    if (dims.nbDims < 0 || dims.nbDims > Dims::MAX_DIMS)
      throw UserError("input '{}': a shape of rank {}", name, dims.nbDims);
    context_.setInputShape(i, {dims.d, size_t(dims.nbDims)});
    return true;
  });
}
Dims ExecutionContext::getTensorShape(char const* name) const noexcept {
  return reporter_.guard(invalidDims(), [&] {
    int i = name ? context_.engine().findIo(name) : -1;
    if (i < 0) return invalidDims();
    if (i < context_.engine().inputs() && context_.hasShape(i)) return makeDims(context_.inputShape(i));
    if (context_.unspecifiedInputs() > 0) return makeDims(context_.engine().shape(i));
    try {
      return makeDims(context_.shape(i));
    } catch (const UserError&) {  // shapes that do not fit each other: inferShapes tells
      return makeDims(context_.engine().shape(i));
    }
  });
}
Dims ExecutionContext::getTensorStrides(char const* name) const noexcept {
  return reporter_.guard(invalidDims(), [&] {
    Dims shape = getTensorShape(name), strides = shape;
    if (shape.nbDims < 0) return shape;
    const auto* order = context_.engine().io(context_.engine().findIo(name)).order();
    int64_t n = 1;
    for (int32_t k = shape.nbDims; k-- > 0;) {
      int32_t axis = order && order->size() ? order->Get(uint32_t(k)) : k;
      strides.d[axis] = n;
      n = n < 0 || shape.d[axis] < 0 ? -1 : n * shape.d[axis];
    }
    return strides;
  });
}
int32_t ExecutionContext::inferShapes(int32_t nbMaxNames, char const** names) noexcept {
  return reporter_.guard(int32_t(-1), [&] {
    int32_t missing = 0;
    for (int i = 0; i < context_.engine().inputs(); i++)
      if (!context_.hasShape(i)) {
        if (names && missing < nbMaxNames) names[missing] = context_.engine().io(i).name()->c_str();
        missing++;
      }
    if (missing == 0) context_.resolve();
    return missing;
  });
}

bool ExecutionContext::setAddress(char const* name, TensorIOMode mode, void* data) noexcept {
  return reporter_.guard(false, [&] {
    context_.setAddress(need(name, mode), data);
    return true;
  });
}
bool ExecutionContext::setTensorAddress(char const* name, void* data) noexcept {
  return setAddress(name, TensorIOMode::kNONE, data);
}
bool ExecutionContext::setInputTensorAddress(char const* name, void const* data) noexcept {
  return setAddress(name, TensorIOMode::kINPUT,
                    const_cast<void*>(data));  // kernels only read inputs (the verifier checks)
}
bool ExecutionContext::setOutputTensorAddress(char const* name, void* data) noexcept {
  return setAddress(name, TensorIOMode::kOUTPUT, data);
}
void const* ExecutionContext::getTensorAddress(char const* name) const noexcept {
  int i = name ? context_.engine().findIo(name) : -1;
  return i < 0 ? nullptr : context_.address(i);
}
void* ExecutionContext::getOutputTensorAddress(char const* name) const noexcept {
  int i = name ? context_.engine().findIo(name) : -1;
  return i < context_.engine().inputs() ? nullptr : context_.address(i);
}
bool ExecutionContext::setOutputAllocator(char const* name, IOutputAllocator* allocator) noexcept {
  return reporter_.guard(false, [&] {
    allocators_[size_t(need(name, TensorIOMode::kOUTPUT))] = allocator;
    return true;
  });
}
IOutputAllocator* ExecutionContext::getOutputAllocator(char const* name) const noexcept {
  int i = name ? context_.engine().findIo(name) : -1;
  return i < 0 ? nullptr : allocators_[size_t(i)];
}
int64_t ExecutionContext::getMaxOutputSize(char const* name) const noexcept {
  return reporter_.guard(int64_t(-1), [&] {
    int i = name ? context_.engine().findIo(name) : -1;
    return i < context_.engine().inputs() ? -1 : context_.engine().maxBytes(i, context_.profile());
  });
}

bool ExecutionContext::run(IQueue* queue) noexcept {
  return reporter_.guard(false, [&] {
    for (size_t i = 0; i < allocators_.size(); i++) {
      if (!allocators_[i]) continue;
      const char* name = context_.engine().io(int(i)).name()->c_str();
      int64_t bytes = context_.bytes(int(i));
      void* p = allocators_[i]->reallocateOutputAsync(name, context_.address(int(i)), uint64_t(bytes), 64, queue);
      if (!p && bytes)
        throw CodedError(ErrorCode::kFAILED_ALLOCATION,
                         fmt::format("the allocator gave no {} bytes for output '{}'", bytes, name));
      context_.setAddress(int(i), p);
      allocators_[i]->notifyShape(name, makeDims(context_.shape(int(i))));
    }
    context_.run();
    if (profiler_) {
      profiled_ = true;
      if (emitsProfile_) reportToProfiler();
    }
    return true;
  });
}
bool ExecutionContext::enqueueV3(IQueue* queue) noexcept {
  if (!queue) return run(nullptr);
  return reporter_.guard(false, [&] {
    enqueue(queue, [this, queue] { return run(queue); });
    return true;
  });
}
bool ExecutionContext::executeV2(void* const* bindings) noexcept {
  if (!bindings) {
    reporter_.report(ErrorCode::kINVALID_ARGUMENT,
                     "executeV2 needs an array with an address for each input and output");
    return false;
  }
  for (int i = 0; i < context_.engine().ioCount(); i++) context_.setAddress(i, bindings[i]);
  return run(nullptr);
}
bool ExecutionContext::setOptimizationProfileAsync(int32_t profile, IQueue* queue) noexcept {
  if (queue) queue->synchronize();  // what was put in still runs with the old profile
  return reporter_.guard(false, [&] {
    context_.setProfile(profile);
    return true;
  });
}

void ExecutionContext::setProfiler(IProfiler* profiler) noexcept {
  profiler_ = profiler;
  profiled_ = false;
  context_.setProfiling(profiler != nullptr);
}
bool ExecutionContext::reportToProfiler() const noexcept {
  if (!profiler_ || !profiled_) return false;
  for (int layer : order_)
    profiler_->reportLayerTime(context_.engine().layerName(layer).data(), float(context_.layerTimes()[size_t(layer)]));
  return true;
}
void ExecutionContext::setDeviceMemoryV2(void* memory, int64_t size) noexcept {
  reporter_.guard(false, [&] {
    if (memory && size < 0) throw UserError("memory of {} bytes", size);
    context_.setMemory(memory, size);
    return true;
  });
}
std::size_t ExecutionContext::updateDeviceMemorySizeForShapes() noexcept {
  return reporter_.guard(std::size_t(0), [&] { return std::size_t(context_.memoryBytes()); });
}
void ExecutionContext::setName(char const* name) noexcept {
  reporter_.guard(false, [&] { return name_ = name ? name : "", true; });
}
bool ExecutionContext::setInputConsumedEvent(void* event) noexcept {
  if (!event) return true;
  reporter_.report(ErrorCode::kUNSUPPORTED_STATE, "events exist on GPUs only: wait for the queue, or run without one");
  return false;
}

}  // namespace rutter::api
