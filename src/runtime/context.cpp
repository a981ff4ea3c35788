#include "runtime/context.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/ints.h"
#include "base/text.h"
#include "ops/op.h"
#include "runtime/fb.h"

namespace rutter::runtime {
namespace {

double msSince(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

}  // namespace

Context::Context(std::shared_ptr<const Engine> engine, std::shared_ptr<Pool> pool, MemoryPolicy policy)
    : engine_(std::move(engine)), pool_(std::move(pool)), policy_(policy), firstDim_(inputDimOffsets(engine_->plan())) {
  inputDims_.resize(size_t(firstDim_.back()));
  values_.resize(count(engine_->plan().exprs()));
  specified_.resize(size_t(engine_->inputs()));
  addresses_.resize(size_t(engine_->ioCount()));
  layerMs_.resize(count(engine_->plan().layers()));
  setProfile(0);
  if (policy_ == MemoryPolicy::kStatic) own_.ensure(memoryBytes(*engine_, pool_->threads(), -1));
}

void Context::setProfile(int profile) {
  if (profile < 0 || profile >= engine_->profiles())
    throw UserError("profile {} does not exist: the engine has {}", profile, engine_->profiles());
  profile_ = profile;
  resolved_ = false;
  for (int i = 0; i < engine_->inputs(); i++) {
    auto min = engine_->profileShape(i, profile, 0), max = engine_->profileShape(i, profile, 2);
    specified_[size_t(i)] = min == max;  // nothing left to say
    std::copy(max.begin(), max.end(), inputDims_.begin() + firstDim_[size_t(i)]);
  }
  if (policy_ == MemoryPolicy::kProfile) own_.ensure(memoryBytes(*engine_, pool_->threads(), profile));
}

void Context::setInputShape(int io, std::span<const int64_t> dims) {
  const fb::IoTensor& t = engine_->io(io);
  if (!t.is_input()) throw UserError("'{}' is an output: its shape follows from the inputs", t.name()->c_str());
  uint32_t rank = count(t.dims());
  if (dims.size() != rank)
    throw UserError("input '{}' has rank {}, a shape of rank {} was given", t.name()->c_str(), rank, dims.size());
  for (uint32_t a = 0; a < rank; a++) {
    int64_t lo = t.min()->Get(uint32_t(profile_) * rank + a), hi = t.max()->Get(uint32_t(profile_) * rank + a);
    if (dims[a] >= lo && dims[a] <= hi) continue;
    std::string axis = count(t.dim_names()) && t.dim_names()->Get(a)->size()
                           ? fmt::format(" ({})", t.dim_names()->Get(a)->c_str())
                           : "";
    if (lo == hi) throw UserError("input '{}': axis {}{} must be {}, not {}", t.name()->c_str(), a, axis, lo, dims[a]);
    throw UserError("input '{}': axis {}{} is {}, outside the range {} to {} of profile {}", t.name()->c_str(), a, axis,
                    dims[a], lo, hi, profile_);
  }
  auto at = inputDims_.begin() + firstDim_[size_t(io)];
  if (specified_[size_t(io)] && std::equal(dims.begin(), dims.end(), at)) return;
  std::copy(dims.begin(), dims.end(), at);
  specified_[size_t(io)] = true;
  resolved_ = false;
}
std::span<const int64_t> Context::inputShape(int io) const {
  return std::span(inputDims_)
      .subspan(size_t(firstDim_[size_t(io)]), size_t(firstDim_[size_t(io) + 1] - firstDim_[size_t(io)]));
}
int Context::unspecifiedInputs() const {
  return int(std::count(specified_.begin(), specified_.end(), false));
}

// The first axis is the batch, as a rule: it is left alone if it can be.
std::string Context::shapesThatFit() const {
  const fb::Plan& plan = engine_->plan();
  std::vector<int64_t> dims, values(values_.size());
  for (const uint32_t first : {1u, 0u})
    for (const int64_t multiple : kLikelyMultiples) {
      dims = inputDims_;
      bool fits = true;
      std::string text;
      for (int i = 0; i < engine_->inputs(); i++) {
        const fb::IoTensor& t = engine_->io(i);
        const auto min = engine_->profileShape(i, profile_, 0), max = engine_->profileShape(i, profile_, 2);
        const auto own = std::span(dims).subspan(size_t(firstDim_[size_t(i)]), count(t.dims()));
        for (size_t a = first; a < own.size(); a++)
          if (min[a] != max[a]) own[a] = roundUp(own[a], multiple);
        for (size_t a = 0; a < own.size(); a++) fits &= own[a] <= max[a];
        text += (i ? "," : "") + printShape(t.name()->c_str(), own);
      }
      if (!fits) continue;
      evaluateExprs(plan, dims, values);
      for (int i = 0; i < engine_->inputs(); i++)
        for (uint32_t a = 0; a < count(engine_->io(i).dims()); a++)
          fits &= values[size_t(engine_->io(i).dims()->Get(a))] == dims[size_t(firstDim_[size_t(i)]) + a];
      if (fits && failedCheck(plan, values) < 0) return text;
    }
  return "";
}

void Context::resolve() {
  if (resolved_) return;
  const fb::Plan& plan = engine_->plan();
  for (int i = 0; i < engine_->inputs(); i++)
    if (!specified_[size_t(i)]) throw UserError("the shape of input '{}' is not set", engine_->io(i).name()->c_str());
  evaluateExprs(plan, inputDims_, values_);
  for (int i = 0; i < engine_->inputs(); i++) {
    const fb::IoTensor& t = engine_->io(i);
    for (uint32_t a = 0; a < count(t.dims()); a++)
      if (int64_t want = values_[size_t(t.dims()->Get(a))], have = inputDims_[size_t(firstDim_[size_t(i)]) + a];
          want != have)
        throw UserError("input '{}': axis {} is {}, but must be {} to agree with the other inputs", t.name()->c_str(),
                        a, have, want);
  }
  if (int c = failedCheck(plan, values_); c >= 0) {
    const fb::Check& k = *plan.checks()->Get(uint32_t(c));
    int64_t a = values_[size_t(k.a())], b = values_[size_t(k.b())];
    const char* op = k.kind() == fb::CheckKind::Equal       ? "equal to"
                     : k.kind() == fb::CheckKind::Divisible ? "divisible by"
                                                            : "at least";
    const std::string fit = shapesThatFit();
    throw UserError("the input shapes do not fit the model: {}: {} must be {} {}{}",
                    k.message() ? k.message()->c_str() : "a condition", a, op, b,
                    fit.empty() ? "" : "; " + fit + " would fit");
  }
  if (std::string why = checkSizes(plan, values_, plan.arena_bytes()); !why.empty())
    throw UserError("engine has a broken plan: {} for these input shapes", why);
  arenaUse_ = arenaUse(plan, values_);

  sources_.clear();
  dims_.clear();
  steps_.clear();
  auto source = [&](const fb::Ref* r) {
    sources_.push_back({r ? r->buffer() : -1, r && r->offset() >= 0 ? values_[size_t(r->offset())] : 0});
  };
  std::vector<size_t> firstDims;  // dims_ may move while it grows
  const auto* code = plan.regions()->Get(0)->code();
  for (uint32_t i = 0; i < count(code); i++) {
    const fb::Instruction& x = *code->Get(i);
    Step s;
    s.layer = x.layer();
    s.kind = x.action_type();
    s.firstPtr = uint32_t(sources_.size());
    size_t firstDim = dims_.size();
    if (const auto* l = x.action_as_Launch()) {
      for (uint32_t k = 0; k < count(l->refs()); k++) source(l->refs()->Get(k));
      for (uint32_t k = 0; k < count(l->dims()); k++) dims_.push_back(values_[size_t(l->dims()->Get(k))]);
      s.job.kernel = engine_->kernel(l->kernel());
      s.job.tasks = values_[size_t(l->tasks())];
      s.job.grain = l->grain();
      s.job.schedule = Schedule(l->schedule());
      s.job.maxThreads = l->max_threads();
      if (int hint = plan.threads_hint(); hint > 0)
        s.job.maxThreads = s.job.maxThreads ? std::min(s.job.maxThreads, hint) : hint;
      s.job.spinUs = plan.spin_us();
      s.job.waitUs = plan.wait_us();
      s.job.scratchStride = l->scratch() ? engine_->scratchBytes() : 0;
    } else if (const auto* r = x.action_as_Reference()) {
      s.reference = r;
      s.node = engine_->reference(int(i));
      for (const auto* list : {r->inputs(), r->outputs()})
        for (uint32_t k = 0; k < count(list); k++) source(list->Get(k)->present() ? list->Get(k)->ref() : nullptr);
    } else if (const auto* c = x.action_as_Copy()) {
      source(c->from());
      source(c->to());
      s.bytes = values_[size_t(c->bytes())];
    }
    firstDims.push_back(firstDim);
    steps_.push_back(s);
  }
  ptrs_.resize(sources_.size());
  for (size_t i = 0; i < steps_.size(); i++)
    steps_[i].job.args = {ptrs_.data() + steps_[i].firstPtr, dims_.data() + firstDims[i]};
  resolved_ = true;
  bound_ = false;
}

std::vector<int64_t> Context::shape(int io) {
  resolve();
  std::vector<int64_t> s;
  for (uint32_t a = 0; a < count(engine_->io(io).dims()); a++)
    s.push_back(values_[size_t(engine_->io(io).dims()->Get(a))]);
  return s;
}
int64_t Context::bytes(int io) {
  return ir::bytesOf(ir::DType(engine_->io(io).dtype()), ir::elementCount(shape(io)));
}

void Context::setAddress(int io, void* address) {
  void*& a = addresses_.at(size_t(io));
  if (a == address) return;
  a = address;
  bound_ = false;
}
void Context::setMemory(void* memory, int64_t bytes) {
  if (policy_ != MemoryPolicy::kUser)
    throw UserError("this context has its own memory: create it with user-managed memory to supply some");
  if (reinterpret_cast<uintptr_t>(memory) % 64)
    throw UserError("the memory for activations must be aligned to 64 bytes");
  memory_ = static_cast<char*>(memory);
  memorySize_ = memory ? bytes : 0;
  bound_ = false;
}
int64_t Context::memoryBytes(const Engine& e, int threads, int profile) {
  return roundUp(e.arenaBytes(profile), 64) + threads * e.scratchBytes();
}
int64_t Context::memoryBytes() {
  resolve();
  return scratchStart() + pool_->threads() * engine_->scratchBytes();
}

void Context::bind() {
  int64_t need = memoryBytes();
  if (policy_ != MemoryPolicy::kUser) {
    own_.ensure(need);
    memory_ = own_.data();
  } else if (need > memorySize_) {
    throw UserError("these shapes need {} bytes of memory for activations, {} were supplied", need, memorySize_);
  }
  const fb::Plan& plan = engine_->plan();
  for (int i = 0; i < engine_->ioCount(); i++)
    if (!addresses_[size_t(i)] && bytes(i) > 0)
      throw UserError("no address is set for {} '{}'", engine_->io(i).is_input() ? "input" : "output",
                      engine_->io(i).name()->c_str());
  for (size_t i = 0; i < sources_.size(); i++) {
    const Source& s = sources_[i];
    char* base = nullptr;
    if (s.buffer >= 0) {
      const fb::Buffer& b = *plan.buffers()->Get(uint32_t(s.buffer));
      switch (b.place()) {
        case fb::Place::Arena:
          base = memory_ + b.offset();
          break;
        case fb::Place::Weights:
          base = const_cast<char*>(engine_->weightsAt(b.offset()));
          break;
        default:
          base = static_cast<char*>(addresses_[size_t(b.io())]);
      }
    }
    ptrs_[i] = base ? base + s.offset : nullptr;
  }
  for (Step& s : steps_)
    if (s.job.scratchStride) s.job.scratch = memory_ + scratchStart();
  bound_ = true;
}

void Context::run() {
  resolve();
  if (!bound_) bind();
  Pool::Turn turn(*pool_);
  FloatingPointScope floatingPoint;
  if (!profiling_) {
    for (const Step& s : steps_) execute(s);
    return;
  }
  std::fill(layerMs_.begin(), layerMs_.end(), 0.0);
  for (const Step& s : steps_) {
    auto start = std::chrono::steady_clock::now();
    execute(s);
    layerMs_[size_t(s.layer)] += msSince(start);
  }
}
void Context::setProfiling(bool on) {
  profiling_ = on;
}
std::vector<int> Context::executionOrder() const {
  std::vector<int> order;
  std::vector<bool> seen(layerMs_.size());
  const auto* code = engine_->plan().regions()->Get(0)->code();
  for (uint32_t i = 0; i < count(code); i++)
    if (size_t l = size_t(code->Get(i)->layer()); !seen[l]) seen[l] = true, order.push_back(int(l));
  return order;
}

void Context::execute(const Step& s) {
  switch (s.kind) {
    case fb::Action::Launch:
      if (int32_t code = pool_->run(s.job))
        throw ExecutionError("layer '{}' failed: {} (code {})", engine_->layerName(s.layer), statusText(code), code);
      return;
    case fb::Action::Copy:
      if (s.bytes) std::memmove(ptrs_[s.firstPtr + 1], ptrs_[s.firstPtr], size_t(s.bytes));
      return;
    default:
      runReference(s);
  }
}

void Context::runReference(const Step& s) {
  const fb::Reference& r = *s.reference;
  auto shapeOf = [&](const fb::Operand& o) {
    std::vector<int64_t> d;
    for (uint32_t a = 0; a < count(o.dims()); a++) d.push_back(values_[size_t(o.dims()->Get(a))]);
    return d;
  };
  std::vector<ir::Tensor> tensors(count(r.inputs()));
  std::vector<const ir::Tensor*> inputs(tensors.size());
  uint32_t ptr = s.firstPtr;
  for (uint32_t i = 0; i < tensors.size(); i++, ptr++) {
    const fb::Operand& o = *r.inputs()->Get(i);
    if (!o.present()) continue;
    tensors[i] = ir::Tensor(ir::DType(o.dtype()), shapeOf(o), ptrs_[ptr], nullptr);
    inputs[i] = &tensors[i];
  }
  std::vector<ir::Tensor> outputs;
  try {
    outputs = ops::evalNode(s.node->node, inputs);
  } catch (const UserError& e) {
    throw ExecutionError("layer '{}' failed: {}", engine_->layerName(s.layer), e.what());
  }
  for (uint32_t i = 0; i < count(r.outputs()); i++, ptr++) {
    const fb::Operand& o = *r.outputs()->Get(i);
    if (!o.present()) continue;
    if (outputs[i].dtype() != ir::DType(o.dtype()) || outputs[i].shape() != shapeOf(o))
      throw ExecutionError("layer '{}' made {}[{}] where {}[{}] was planned", engine_->layerName(s.layer),
                           ir::dtypeName(outputs[i].dtype()), fmt::join(outputs[i].shape(), ","),
                           ir::dtypeName(ir::DType(o.dtype())), fmt::join(shapeOf(o), ","));
    if (int64_t n = outputs[i].bytes()) std::memcpy(ptrs_[ptr], outputs[i].data(), size_t(n));
  }
}

}  // namespace rutter::runtime
