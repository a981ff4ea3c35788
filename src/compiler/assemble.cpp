#include "compiler/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/ints.h"
#include "codegen/memory.h"
#include "compiler/expressions.h"
#include "runtime/attrs.h"

extern "C" const char* rutterVersion();

namespace rutter::compiler {
namespace fb = runtime::fb;
using codegen::Layer;
using ir::Dim;
using ir::Value;

std::vector<knobs::KnobId> modelWideKnobs() {
  return {knob::memory_reuse.id, knob::memory_order.id,    knob::memory_fit.id,     knob::memory_align.id,
          knob::memory_skew.id,  knob::threads_spin_us.id, knob::threads_wait_us.id};
}

namespace {
class Assembler {
 public:
  Assembler(const frontend::Model& m, const BuildOptions& o, const Decided& d,
            const std::vector<std::shared_ptr<const codegen::KernelObject>>& objects,
            const std::map<Hash128, int>& index, KernelCache& cache, BuildResult& r)
      : model_(m),
        o_(o),
        d_(d),
        graph_(*d.decision.graph),
        objects_(objects),
        index_(index),
        cache_(cache),
        r_(r),
        plan_(r.parts.plan),
        expr_(graph_, plan_),
        wide_(knobs::LayerKnobs::modelWide(o.route)) {}
  void run() {
    inputsAndOutputs();
    layers();
    placeArena();
    finish();
  }

 private:
  void inputsAndOutputs();
  void layers();
  void placeArena();
  void finish();
  int bufferOf(const Value* root);
  int weights(const std::string& key, std::string_view bytes, std::shared_ptr<const void> owner,
              const std::string& name);
  int arena(const Dim& bytes, int first, int last, const std::string& name);
  fb::Ref ref(int buffer, const Dim& bytes) { return fb::Ref(buffer, bytes.is(0) ? -1 : expr_(bytes)); }
  void launchLayer(const Layer& l, int at, fb::RegionT& code);
  void referenceLayer(const Layer& l, int at, fb::RegionT& code);
  void overwrite(const Value* out, const Value* from);

  const frontend::Model& model_;
  const BuildOptions& o_;
  const Decided& d_;
  const ir::Graph& graph_;
  const std::vector<std::shared_ptr<const codegen::KernelObject>>& objects_;
  const std::map<Hash128, int>& index_;
  KernelCache& cache_;
  BuildResult& r_;
  fb::PlanT& plan_;
  Expressions expr_;
  knobs::LayerKnobs wide_;
  std::unordered_map<const Value*, int> buffers_;
  std::map<std::string, int> weightBuffers_;
  int64_t weightBytes_ = 0;
  std::vector<codegen::MemoryItem> items_;
  std::vector<int> itemBuffer_;                 ///< item -> plan buffer
  std::unordered_map<const Value*, int> item_;  ///< root -> item
  std::map<int, int> kernelBase_;               ///< object -> first index in plan.kernels
};

// What the symbols of the layer's expressions stand for.
std::map<std::string, Dim> paramsOf(const Layer& l) {
  std::map<std::string, Dim> params;
  for (size_t i = 0; i < l.lowered.params.size(); i++) params["$" + std::to_string(i)] = l.lowered.params[i];
  return params;
}

int elementBytes(const Value* v) {
  return ir::bitsOf(v->type.dtype) / 8;
}
// Sizes that no machine has are told by the tensor's name, before a plan is made of them.
const Dim& checked(const Dim& bytes, const ir::Graph& g, const std::string& name) {
  if (bytes.range(g.symbols).second > int64_t(1) << 60)
    throw UserError("'{}' is too large: {} bytes within the profile", name,
                    bytes.isConstant() ? bytes.text() : "more than 2^60");
  return bytes;
}

void Assembler::inputsAndOutputs() {
  std::vector<passes::Profile> profiles = o_.profiles.empty() ? std::vector<passes::Profile>{{}} : o_.profiles;
  plan_.profiles = int(profiles.size());
  auto add = [&](const Value* v, bool input) {
    auto t = std::make_unique<fb::IoTensorT>();
    t->name = v->name;
    t->is_input = input;
    t->dtype = uint8_t(v->type.dtype);
    t->order.assign(v->type.layout.order.begin(), v->type.layout.order.end());
    for (const Dim& d : v->type.dims) {
      t->dims.push_back(expr_(d));
      t->dim_names.push_back(d.isConstant() ? "" : d.text());
    }
    for (const auto& p : profiles) {
      auto it = p.find(v->name);
      for (size_t a = 0; input && a < v->type.rank(); a++) {
        const Dim& d = v->type.dims[a];
        auto range = d.range(graph_.symbols);
        bool given = it != p.end() && a < it->second.min.size();
        t->min.push_back(given ? it->second.min[a] : range.first);
        t->opt.push_back(given ? it->second.opt[a] : d.optimum(graph_.symbols));
        t->max.push_back(given ? it->second.max[a] : range.second);
      }
    }
    auto b = std::make_unique<fb::BufferT>();
    b->place = input ? fb::Place::Input : fb::Place::Output;
    b->io = int(plan_.io.size());
    b->size = expr_(checked(v->type.byteSize(), graph_, v->name));
    b->name = v->name;
    buffers_[v] = int(plan_.buffers.size());
    plan_.buffers.push_back(std::move(b));
    plan_.io.push_back(std::move(t));
  };
  for (const Value* v : graph_.top().inputs) add(v, true);
  for (const Value* v : graph_.top().outputs) add(v, false);
  expr_.checkInputs();
}

int Assembler::weights(const std::string& key, std::string_view bytes, std::shared_ptr<const void> owner,
                       const std::string& name) {
  auto [it, fresh] = weightBuffers_.try_emplace(key, int(plan_.buffers.size()));
  if (!fresh) return it->second;
  auto b = std::make_unique<fb::BufferT>();
  b->place = fb::Place::Weights;
  b->offset = weightBytes_;
  b->bytes = int64_t(bytes.size());
  b->name = name;
  plan_.buffers.push_back(std::move(b));
  r_.parts.weights.push_back({weightBytes_, bytes, hashBytes(key)});
  r_.owners.push_back(std::move(owner));
  weightBytes_ = roundUp(weightBytes_ + int64_t(bytes.size()), 64);
  return it->second;
}
int Assembler::arena(const Dim& bytes, int first, int last, const std::string& name) {
  auto b = std::make_unique<fb::BufferT>();
  b->place = fb::Place::Arena;
  b->size = expr_(checked(bytes, graph_, name));
  b->name = name;
  items_.push_back({std::max<int64_t>(1, bytes.range(graph_.symbols).second), first, last});
  itemBuffer_.push_back(int(plan_.buffers.size()));
  plan_.buffers.push_back(std::move(b));
  return itemBuffer_.back();
}
int Assembler::bufferOf(const Value* root) {
  auto it = buffers_.find(root);
  if (it != buffers_.end()) return it->second;
  int b;
  if (root->constant) {
    auto keep = std::make_shared<ir::Tensor>(*root->constant);
    std::string_view bytes(static_cast<const char*>(keep->data()), size_t(keep->bytes()));
    b = weights(root->constant->contentHash().hex() + "/raw", bytes, keep, root->name);
  } else {
    const codegen::Lifetime& life = d_.decision.lifetimes.at(root);
    item_[root] = int(items_.size());
    b = arena(root->type.byteSize(), life.first, life.last, root->name);
  }
  return buffers_[root] = b;
}

// The output takes over the memory of an input, which dies here (codegen/in_place.h).
void Assembler::overwrite(const Value* out, const Value* from) {
  bufferOf(from);
  const int it = item_.at(from);
  items_[size_t(it)].last = d_.decision.lifetimes.at(out).last;
  item_[out] = it;
  item_.erase(from);
  buffers_[out] = itemBuffer_[size_t(it)];
}

void Assembler::launchLayer(const Layer& l, int at, fb::RegionT& code) {
  const auto& lo = l.lowered;
  for (const auto& [out, from] : l.overwrites) overwrite(out, from);
  const std::map<std::string, Dim> params = paramsOf(l);
  std::vector<int> packs, work;
  for (const codegen::PackSpec& p : l.lowering.packs) {
    const Value* v = lo.operands[p.operand].value;
    const ir::Tensor& in = *v->constant;
    auto bytes = cache_.packed(in.contentHash(), p.layout, [&] {
      std::string s(size_t(p.bytes), '\0');
      p.pack(in, s.data());
      return s;
    });
    packs.push_back(weights(in.contentHash().hex() + "/" + p.layout, *bytes, bytes, v->name));
  }
  for (const Dim& w : l.lowering.workspaces)
    work.push_back(arena(w.substitute(params), at, at, l.group.name + ".workspace"));
  int object = index_.at(l.kernelKey);
  for (size_t i = 0; i < l.lowering.launches.size(); i++) {
    const codegen::LaunchSpec& s = l.lowering.launches[i];
    fb::LaunchT launch;
    launch.kernel = kernelBase_.at(object) + int(i);
    for (int r : s.refs) {
      if (r >= 1000)
        launch.refs.push_back(fb::Ref(packs.at(r - 1000), -1));
      else if (r < 0)
        launch.refs.push_back(fb::Ref(work.at(-1 - r), -1));
      else
        launch.refs.push_back(
            ref(bufferOf(lo.operands.at(r).root), lo.operands[r].offset * Dim(elementBytes(lo.operands[r].value))));
    }
    for (const Dim& d : lo.params) launch.dims.push_back(expr_(d));
    launch.tasks = expr_(s.tasks.substitute(params));
    launch.scratch = s.scratch;
    launch.max_threads = s.maxThreads;
    launch.schedule = uint8_t(s.schedule);
    launch.grain = int(s.grain);
    auto ins = std::make_unique<fb::InstructionT>();
    ins->layer = at;
    ins->action.Set(std::move(launch));
    code.code.push_back(std::move(ins));
  }
}

void Assembler::referenceLayer(const Layer& l, int at, fb::RegionT& code) {
  const ir::Node& n = *l.group.nodes.front();
  fb::ReferenceT r;
  r.op = n.op;
  r.domain = n.domain;
  r.attrs = runtime::encodeAttrs(n.attrs);
  auto operand = [&](const Value* v) {
    auto o = std::make_unique<fb::OperandT>();
    o->ref = std::make_unique<fb::Ref>(0, -1);
    if (!v) {
      o->present = false;
      return o;
    }
    const codegen::Placement& p = d_.decision.storage->of(v);
    RUTTER_CHECK(codegen::isDenseRowMajor(v->type.dims, p.strides), "operand {} of reference node {} is not dense",
                 v->name, n.name);
    o->ref = std::make_unique<fb::Ref>(ref(bufferOf(p.root), p.offset * Dim(elementBytes(v))));
    o->dtype = uint8_t(v->type.dtype);
    for (const Dim& d : v->type.dims) o->dims.push_back(expr_(d));
    return o;
  };
  for (const Value* v : n.inputs) r.inputs.push_back(operand(v));
  for (const Value* v : n.outputs) r.outputs.push_back(operand(v));
  auto ins = std::make_unique<fb::InstructionT>();
  ins->layer = at;
  ins->action.Set(std::move(r));
  code.code.push_back(std::move(ins));
}

void Assembler::layers() {
  for (size_t i = 0; i < objects_.size(); i++) {
    kernelBase_[int(i)] = int(plan_.kernels.size());
    for (const std::string& s : objects_[i]->symbols) plan_.kernels.push_back(s);
  }
  auto region = std::make_unique<fb::RegionT>();
  std::map<std::string, int> names;
  int at = 0;
  for (const Layer& l : d_.decision.layers) {
    auto t = std::make_unique<fb::LayerT>();
    int n = names[l.group.name]++;
    t->name = n ? fmt::format("{}#{}", l.group.name, n) : l.group.name;
    t->type = l.group.type;
    t->origins = l.group.origins;
    t->tactic = l.tactic ? std::string(l.tactic->name()) : "reference";
    t->configuration = l.tactic ? l.config.print() : "";
    t->knobs_read = l.knobsRead;
    t->refusals = l.refusals;
    std::set<const Value*> produced;
    for (const ir::Node* node : l.group.all())
      for (const Value* v : node->outputs) produced.insert(v);
    for (const ir::Node* node : l.group.all())
      for (const Value* v : node->inputs)
        if (v && !produced.count(v) && !v->constant &&
            std::find(t->inputs.begin(), t->inputs.end(), v->name) == t->inputs.end())
          t->inputs.push_back(v->name);
    for (const Value* v : l.group.outputs) {
      t->outputs.push_back(v->name);
      t->layouts.push_back(v->type.text());
    }
    if (l.tactic) {
      const auto params = paramsOf(l);
      if (const auto flops = l.lowered.problem.flopsDim()) t->flops = expr_(flops->substitute(params));
      if (const auto bytes = l.lowered.problem.bytesDim()) t->bytes = expr_(bytes->substitute(params));
    }
    plan_.layers.push_back(std::move(t));
    if (l.tactic)
      launchLayer(l, at, *region);
    else
      referenceLayer(l, at, *region);
    at++;
  }
  plan_.regions.push_back(std::move(region));
}

void Assembler::placeArena() {
  codegen::MemoryOptions m = codegen::memoryOptions(wide_);
  plan_.arena_bytes = codegen::planMemory(items_, m);
  for (size_t i = 0; i < items_.size(); i++) plan_.buffers[itemBuffer_[i]]->offset = items_[i].offset;
}

void Assembler::finish() {
  plan_.threads_hint = d_.machine.cores;
  plan_.spin_us = int(*wide_.get(knob::threads_spin_us));
  plan_.wait_us = int(*wide_.get(knob::threads_wait_us));
  plan_.route = o_.route.print();
  plan_.decision_hash = d_.decision.hash.hex();
  plan_.model_hash = model_.hash.hex();
  plan_.model_name = graph_.name;
  r_.parts.features = CpuFeatures(d_.machine.features);
  r_.parts.target = std::string(d_.target->name());
  r_.parts.versions = {{"rutter", rutterVersion()}, {"emitter", d_.target->emitterId()}};
  if (!d_.timingHash.empty()) {
    r_.parts.notes["optimization_level"] = std::to_string(o_.optimizationLevel);
    r_.parts.notes["timing_cache"] = d_.timingHash;
  }
  r_.parts.notes["isa"] = d_.machine.isa;
  r_.parts.notes["machine_profile"] = hashBytes(d_.machine.serialize()).hex();
}
}  // namespace

void assemble(const frontend::Model& model, const BuildOptions& o, const Decided& d,
              const std::vector<std::shared_ptr<const codegen::KernelObject>>& objects,
              const std::map<Hash128, int>& index, KernelCache& cache, BuildResult& result) {
  Assembler(model, o, d, objects, index, cache, result).run();
}

}  // namespace rutter::compiler
