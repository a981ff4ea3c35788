#include "runtime/engine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/ints.h"
#include "base/log.h"
#include "runtime/attrs.h"
#include "runtime/fb.h"
#include "runtime/verify.h"

namespace rutter::runtime {
namespace {

std::unique_ptr<ReferenceNode> makeReference(const fb::Reference& r, std::string_view layer) {
  auto out = std::make_unique<ReferenceNode>();
  ir::Node& n = out->node;
  n.op = view(r.op());
  n.domain = view(r.domain());
  n.name = layer;
  n.attrs = decodeAttrs({r.attrs() ? r.attrs()->data() : nullptr, r.attrs() ? r.attrs()->size() : 0});
  auto add = [&](const auto* list, std::vector<ir::Value*>& to) {
    if (!list) return;
    for (const fb::Operand* o : *list) {
      ir::Value* v = nullptr;
      if (o->present()) {
        out->values.push_back(std::make_unique<ir::Value>());
        v = out->values.back().get();
        v->name = fmt::format("{}.{}", layer, out->values.size());
        v->type.dtype = ir::DType(o->dtype());
      }
      to.push_back(v);
    }
  };
  add(r.inputs(), n.inputs);
  add(r.outputs(), n.outputs);
  return out;
}

std::vector<std::optional<int64_t>> constantExprs(const fb::Plan& plan) {
  std::vector<std::optional<int64_t>> known(plan.exprs() ? plan.exprs()->size() : 0);
  std::vector<bool> fixed(known.size());
  for (size_t i = 0; i < known.size(); i++) {
    const fb::DimExpr& e = *plan.exprs()->Get(uint32_t(i));
    fixed[i] = e.op() == fb::DimOp::Constant ||
               (e.op() != fb::DimOp::InputDim && fixed[size_t(e.a())] && fixed[size_t(e.b())]);
  }
  // With all inputs at a profile's opt, which evaluates (the verifier tried).
  std::vector<int64_t> dims, values(known.size());
  if (plan.io())
    for (const fb::IoTensor* t : *plan.io())
      for (uint32_t a = 0; t->is_input() && t->dims() && a < t->dims()->size(); a++) dims.push_back(t->opt()->Get(a));
  evaluateExprs(plan, dims, values);
  for (size_t i = 0; i < known.size(); i++)
    if (fixed[i]) known[i] = values[i];
  return known;
}

}  // namespace

Code::Code(std::string_view object, const std::string& temporaryDirectory) {
  std::string path;
  fd_ = memfd_create("rutter-kernels", MFD_CLOEXEC);
  if (fd_ >= 0 && !writeAll(fd_, object)) {
    close(fd_);
    fd_ = -1;  // no memory for it there; a file may do
  }
  // The descriptor stays open while the code is loaded: dlopen takes an equal path for the object that it knows.
  if (fd_ >= 0) handle_ = dlopen((path = fmt::format("/proc/self/fd/{}", fd_)).c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string why = handle_ ? "" : fd_ < 0 ? std::strerror(errno) : dlerror();
  if (!handle_) {  // no memory files here, or none that may be executed
    const char* env = std::getenv("TMPDIR");
    std::string file = (!temporaryDirectory.empty() ? temporaryDirectory
                        : env && *env               ? env
                                                    : "/tmp") +
                       "/rutter-kernels.XXXXXX";
    int fd = mkostemp(file.data(), O_CLOEXEC);
    if (fd >= 0) {
      if (writeAll(fd, object)) handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle_)
        if (const char* e = dlerror()) why = e;
      close(fd);
      unlink(file.c_str());
    }
  }
  if (handle_) return;
  if (fd_ >= 0) close(fd_);
  throw UserError("engine has a code section that cannot be loaded: {}", why);
}
Code::~Code() {
  dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}
Kernel Code::find(const std::string& symbol) const {
  void* p = dlsym(handle_, symbol.c_str());
  if (!p) throw UserError("engine has a broken plan: kernel '{}' is not in its code section", symbol);
  return reinterpret_cast<Kernel>(p);
}

std::shared_ptr<const Engine> Engine::load(std::shared_ptr<const Blob> blob, const LoadOptions& options) {
  std::shared_ptr<Engine> e(new Engine);
  EngineImage image = readEngine(blob->bytes());
  e->bytes_ = blob->bytes();
  e->blobs_.push_back(std::move(blob));
  e->weights_ = image.weights.data();
  e->weightsBytes_ = int64_t(image.weights.size());
  e->open(std::move(image), options);
  return e;
}
std::shared_ptr<const Engine> Engine::load(std::string_view head, std::vector<WeightChunk> weights,
                                           int64_t weightsBytes, std::vector<std::shared_ptr<const Blob>> owners,
                                           const LoadOptions& options) {
  std::shared_ptr<Engine> e(new Engine);
  EngineImage image = readEngine(head, weights, weightsBytes);
  e->bytes_ = head;
  e->blobs_ = std::move(owners);
  e->pieces_ = std::move(weights);
  e->weightsBytes_ = weightsBytes;
  e->open(std::move(image), options);
  return e;
}

const char* Engine::weightsAt(int64_t offset) const {
  if (pieces_.empty()) return weights_ + offset;
  auto it = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                             [](int64_t o, const WeightChunk& c) { return o < c.offset; });
  return it == pieces_.begin() ? nullptr : it[-1].data.data() + (offset - it[-1].offset);
}

void Engine::open(EngineImage image, const LoadOptions& options) {
  manifest_ = std::move(image.manifest);
  if (manifest_.target != "cpu")
    throw UserError("engine is for target '{}'; this version of Rutter runs 'cpu'", manifest_.target);
  if (CpuFeatures lacking = manifest_.features.without(options.available); !lacking.empty())
    throw UserError("engine needs {}, which this machine does not have: build it again here, or with --isa={}",
                    lacking.text(), isaName(bestIsa(options.available)));
  plan_ = &openPlan(image.plan, weightsBytes_);
  const fb::Plan& plan = *plan_;
  for (uint32_t i = 0; !pieces_.empty() && plan.buffers() && i < plan.buffers()->size(); i++) {
    const fb::Buffer& b = *plan.buffers()->Get(i);
    if (b.place() != fb::Place::Weights || b.bytes() == 0) continue;
    auto it = std::upper_bound(pieces_.begin(), pieces_.end(), b.offset(),
                               [](int64_t o, const WeightChunk& c) { return o < c.offset; });
    if (it == pieces_.begin() || b.offset() + b.bytes() > it[-1].offset + int64_t(it[-1].data.size()))
      throw UserError("engine has a broken plan: buffer {} lies in no piece of its weights", i);
  }
  ioCount_ = plan.io() ? int(plan.io()->size()) : 0;
  while (inputs_ < ioCount_ && io(inputs_).is_input()) inputs_++;
  constants_ = constantExprs(plan);
  const auto* code = plan.regions()->Get(0)->code();
  for (uint32_t i = 0; code && i < code->size(); i++) {
    const fb::Instruction& x = *code->Get(i);
    if (const auto* l = x.action_as_Launch()) scratch_ = std::max(scratch_, roundUp(l->scratch(), 64));
    const auto* r = x.action_as_Reference();
    references_.push_back(r ? makeReference(*r, layerName(x.layer())) : nullptr);
  }
  if (!manifest_.fingerprint.empty()) {
    Fingerprint here = Fingerprint::ofMachine();
    here.facts["rutter"] = RUTTER_VERSION;
    const std::vector<std::string> differences = Fingerprint::parse(manifest_.fingerprint).differences(here);
    if (!differences.empty())
      logWarning(
          "the engine was tuned on another machine, on other cores or by another version ({}): it is right here too, "
          "but to make it fast tune it here: rutter --onnx=<its model> --tune",
          fmt::join(differences, "; "));
  }
  // Code runs (its constructors would) only when everything else has been accepted.
  if (plan.kernels() && plan.kernels()->size()) {
    code_ = std::make_unique<Code>(image.code, options.temporaryDirectory);
    for (const flatbuffers::String* s : *plan.kernels()) kernels_.push_back(code_->find(s->str()));
  }
}

int Engine::findIo(std::string_view name) const {
  for (int i = 0; i < ioCount_; i++)
    if (view(io(i).name()) == name) return i;
  return -1;
}
std::vector<int64_t> Engine::shape(int i) const {
  std::vector<int64_t> s;
  if (const auto* dims = io(i).dims())
    for (int32_t e : *dims) s.push_back(constants_[size_t(e)].value_or(-1));
  return s;
}
std::vector<int64_t> Engine::profileShape(int i, int profile, int which) const {
  const fb::IoTensor& t = io(i);
  const auto* v = which == 0 ? t.min() : which == 1 ? t.opt() : t.max();
  uint32_t rank = t.dims() ? t.dims()->size() : 0;
  std::vector<int64_t> s;
  for (uint32_t a = 0; v && a < rank; a++) s.push_back(v->Get(uint32_t(profile) * rank + a));
  return s;
}
std::string_view Engine::layerName(int layer) const {
  return view(plan_->layers()->Get(uint32_t(layer))->name());
}
std::vector<int64_t> Engine::valuesAt(int profile, int which) const {
  std::vector<int64_t> dims, values(constants_.size());
  for (int i = 0; i < inputs_; i++)
    for (int64_t d : profileShape(i, profile, which)) dims.push_back(d);
  evaluateExprs(*plan_, dims, values);
  return values;
}
int64_t Engine::maxBytes(int i, int profile) const {
  auto values = valuesAt(profile, 2);
  std::vector<int64_t> s;
  if (const auto* dims = io(i).dims())
    for (int32_t e : *dims) s.push_back(values[size_t(e)]);
  return ir::bytesOf(ir::DType(io(i).dtype()), ir::elementCount(s));
}
int64_t Engine::arenaBytes(int profile) const {
  if (profile < 0) return plan_->arena_bytes();
  return std::min(arenaUse(*plan_, valuesAt(profile, 2)), plan_->arena_bytes());
}

}  // namespace rutter::runtime
