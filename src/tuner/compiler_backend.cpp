#include "tuner/compiler_backend.h"

#include <cstring>
#include <fstream>
#include <set>

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/fingerprint.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "onnx/file.h"
#include "ops/op.h"
#include "runtime/context.h"
#include "runtime/engine_split.h"
#include "tuner/make_inputs.h"
#include "tuner/memory_order.h"
#include "tuner/tensor_files.h"
#include "tuner/wire.h"

namespace rutter::tuner {
namespace {

std::vector<std::string> strings(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* v) {
  std::vector<std::string> out;
  for (uint32_t i = 0; v && i < v->size(); i++) out.push_back(v->Get(i)->str());
  return out;
}

// Names, origins and knobs of an engine's layers: the engine itself may not tell them.
std::vector<LayerTime> layersOf(const runtime::fb::PlanT& plan) {
  std::vector<LayerTime> out;
  for (const auto& l : plan.layers) out.push_back({l->name, l->origins, l->knobs_read, 0});
  return out;
}

class RuntimeEngine : public LoadedEngine {
 public:
  RuntimeEngine(std::shared_ptr<const runtime::Engine> engine, std::shared_ptr<runtime::Pool> pool, uint64_t luck,
                std::vector<LayerTime> layers)
      : engine_(std::move(engine)),
        context_(engine_, std::move(pool), runtime::MemoryPolicy::kUser),
        luck_(luck),
        layers_(std::move(layers)) {}

  void bind(const Tensors& inputs) override {
    inputs_.clear();
    std::vector<const ir::Tensor*> tensors;
    for (int i = 0; i < engine_->inputs(); i++) {
      const std::string name = engine_->io(i).name()->str();
      const auto it = std::find_if(inputs.begin(), inputs.end(), [&](const auto& t) { return t.first == name; });
      if (it == inputs.end()) throw UserError("no tensor for input '{}'", name);
      tensors.push_back(&it->second);
    }
    context_.setProfile(profileOf(tensors));
    for (int i = 0; i < engine_->inputs(); i++) {
      const ir::Tensor& t = *tensors[size_t(i)];
      context_.setInputShape(i, t.shape());
      inputs_.push_back(toMemoryOrder(t, order(i)));
      context_.setAddress(i, const_cast<void*>(inputs_.back().data()));
    }
    const int64_t need = context_.memoryBytes();
    const int64_t offset = int64_t(luck_ % 64) * 64;  // where in its pages the arena lies is a matter of luck
    memory_.ensure(need + 4096);
    context_.setMemory(memory_.data() + offset, need);
    outputs_.clear();
    for (int i = engine_->inputs(); i < engine_->ioCount(); i++) {
      ir::Tensor t(ir::DType(engine_->io(i).dtype()), context_.shape(i));
      if (t.dtype() == ir::DType::kString)
        throw UserError("output '{}' holds strings, which cannot be tuned yet", engine_->io(i).name()->str());
      context_.setAddress(i, t.size() ? t.mutableData() : nullptr);
      outputs_.emplace_back(engine_->io(i).name()->str(), std::move(t));
    }
  }
  void run() override { context_.run(); }
  void poison(uint8_t byte) override {
    for (auto& [name, t] : outputs_)
      if (t.bytes() > 0) std::memset(t.mutableData(), byte, size_t(t.bytes()));
  }
  Tensors outputs() const override {
    Tensors out;
    int i = engine_->inputs();
    for (const auto& [name, t] : outputs_) {
      ir::Tensor copy(t.dtype(), t.shape());
      if (t.bytes() > 0) std::memcpy(copy.mutableData(), t.data(), size_t(t.bytes()));
      out.emplace_back(name, fromMemoryOrder(copy, order(i++)));
    }
    return out;
  }
  std::vector<LayerTime> profile(int runs) override {
    const auto* layers = engine_->plan().layers();
    const uint32_t n = layers ? layers->size() : 0;
    const bool told = layers_.size() == n;
    std::vector<std::vector<double>> times(n);
    context_.setProfiling(true);
    for (int r = 0; r < runs; r++) {
      context_.run();
      const auto ms = context_.layerTimes();
      for (uint32_t i = 0; i < n && i < ms.size(); i++) times[i].push_back(ms[i]);
    }
    context_.setProfiling(false);
    std::vector<LayerTime> out;
    for (uint32_t i = 0; i < n; i++) {
      const auto* l = layers->Get(i);
      LayerTime t =
          told ? layers_[i]
               : LayerTime{l->name() ? l->name()->str() : "", strings(l->origins()), strings(l->knobs_read()), 0};
      if (!times[i].empty()) t.ms = median(times[i]);
      out.push_back(std::move(t));
    }
    return out;
  }

 private:
  // The first that holds these inputs. If none does, setting their shapes says why.
  int profileOf(const std::vector<const ir::Tensor*>& inputs) const {
    const auto holds = [&](int p) {
      for (int i = 0; i < engine_->inputs(); i++) {
        const auto min = engine_->profileShape(i, p, 0), max = engine_->profileShape(i, p, 2);
        const auto& shape = inputs[size_t(i)]->shape();
        if (shape.size() != min.size()) return false;
        for (size_t a = 0; a < shape.size(); a++)
          if (shape[a] < min[a] || shape[a] > max[a]) return false;
      }
      return true;
    };
    for (int p = 0; p < engine_->profiles(); p++)
      if (holds(p)) return p;
    return 0;
  }
  std::span<const uint8_t> order(int i) const {
    const auto* o = engine_->io(i).order();
    return o ? std::span<const uint8_t>(o->data(), o->size()) : std::span<const uint8_t>();
  }

  std::shared_ptr<const runtime::Engine> engine_;
  runtime::Context context_;
  runtime::Memory memory_;
  uint64_t luck_;
  std::vector<LayerTime> layers_;
  std::vector<ir::Tensor> inputs_;
  Tensors outputs_;
};

class CompilerBackend : public Backend {
 public:
  void prepare(const Json& options) override {
    o_ = optionsFromJson(options);
    const std::string bytes = options.value("model_bytes", "");
    if (bytes.empty()) {
      model_ = frontend::importFile(o_.model.path);
    } else {
      const auto file = frontend::MappedFile::open(bytes);
      model_ = frontend::importBytes(std::as_bytes(std::span(file->bytes())),
                                     {.directory = o_.model.directory, .name = ""}, file);
    }
    applyEdits();
    for (const auto& p : o_.build.profiles) {
      passes::Profile profile;
      for (const auto& [name, r] : p) profile[name] = {r.min, r.opt, r.max};
      build_.profiles.push_back(std::move(profile));
    }
    build_.isa = o_.build.isa;
    build_.threads = o_.build.threads;
    build_.emitThreads = 1;  // a worker has no second thread
    readFormats();
    build_.strictRoutes = o_.build.strictRoutes;
    build_.optimizationLevel = o_.build.builderOptimizationLevel;
    if (decidesByTime()) {
      build_.maxTactics = o_.build.maxTactics;
      build_.avgTiming = o_.build.avgTiming;
      build_.timings = std::make_shared<compiler::TimingCache>(compiler::TimingCache::read(o_.build.timingCacheFile));
      build_.errorOnTimingMiss = true;  // what is not known is measured by measureTimes() alone
    }
    makeInputSets();
  }

  bool decidesByTime() const override { return o_.build.builderOptimizationLevel >= 4; }
  std::string measureTimes(const std::string& route) override {
    compiler::BuildOptions b = build_;
    b.route = knobs::Route::parse(route);
    b.errorOnTimingMiss = o_.build.errorOnTimingMiss;
    const size_t known = b.timings->size();
    compiler::decideModel(model_, b, kernels_);
    return b.timings->size() == known ? "" : b.timings->serialize();
  }
  void admitTimes(const std::string& blob) override {
    build_.timings->combine(compiler::TimingCache::parse(blob), false);
    build_.timings->write(o_.build.timingCacheFile);
  }

  std::string timedRoute(const std::map<std::string, double>& seconds) override {
    compiler::BuildOptions b = build_;
    b.optimizationLevel = 5;
    b.timingSeconds = seconds;
    b.timings = nullptr;
    return compiler::decideModel(model_, b, kernels_).timedRoute.print();
  }

  void buildDefault() override {
    SteadyClock clock;
    const double begin = clock.now();
    compiler::Decided d = compiler::decideModel(model_, build_);
    default_ = decisionOf(d);
    result_ = compiler::buildEngine(model_, build_, std::move(d), kernels_);
    checkWorkspace(result_);
    buildMs_ = (clock.now() - begin) * 1000;
    stack_ = result_.parts.versions;
    stack_["model"] = model_.hash.hex();
    const Json options = toJson(o_);
    stack_["shapes"] = hashBytes(Json{{"p", options.at("profiles")}, {"r", options.at("shapes")}}.dump()).hex();
    fingerprint_ = Fingerprint::ofMachine();
    for (const auto& [name, v] : stack_) fingerprint_.facts[name] = v;
    fingerprint_.facts["threads"] = std::to_string(usableThreads(o_.build.threads));
    for (const ir::Value* v : model_.graph->top().inputs)
      if (!v->type.known || !ir::constants(v->type.dims))
        fingerprint_.facts["shape:" + v->name] = printDims(shapeOf(*v));
    result_.parts.fingerprint = fingerprint_.text();
    defaultLayers_ = layersOf(result_.parts.plan);
    compiler::keepDetail(result_.parts, o_.build.profilingVerbosity);
    const std::vector<Hash128> keys = kernels_.keys();
    admitted_ = {keys.begin(), keys.end()};
  }

  Json describe() const override {
    return {{"model_hash", model_.hash.hex()},
            {"model_nodes", model_.nodes},
            {"stack", stack_},
            {"machine", hashBytes(Fingerprint::ofMachine().text()).hex()},
            {"default", {{"decision", default_.hash}, {"build_ms", buildMs_}, {"knobs_read", default_.knobsRead}}}};
  }
  const std::vector<Tensors>& inputs() const override { return inputs_; }
  bool otherInputs(int attempt) override {
    const int draw = attempt % kDraws;
    const bool without = attempt >= kDraws;
    if (attempt >= kInputWays || (draw > 0 && !madeUp_) || (without && !varies())) return false;
    draw_ = Draw(draw);
    withoutVaried_ = without;
    makeInputSets();
    return true;
  }
  const std::vector<Tensors>& references() const override { return references_; }

  Decision decide(const std::string& route) override {
    compiler::BuildOptions b = build_;
    b.route = knobs::Route::parse(route);
    decided_.reset();
    decided_.emplace(route, compiler::decideModel(model_, b));
    return decisionOf(decided_->second);
  }
  void forgetDecision() override { decided_.reset(); }
  void writeDefault(const std::string& path) override {
    runtime::writeEngineFile(result_.parts, path, false);  // the private folder goes with the search
    standard_ = runtime::WeightIndex(result_.parts, path);
    layers_[path] = defaultLayers_;
  }

  void admitKernels(const std::string& blob) override {
    ByteReader r(blob);
    const uint64_t n = r.get<uint64_t>();
    for (uint64_t i = 0; i < n; i++) {
      Hash128 key;
      key.lo = r.get<uint64_t>();
      key.hi = r.get<uint64_t>();
      const std::string_view bytes = r.getString();
      if (hashBytes(bytes).lo != r.get<uint64_t>()) throw UserError("a kernel with a wrong checksum");
      kernels_.add(key, std::make_shared<const codegen::KernelObject>(compiler::parseKernel(bytes)));
      admitted_.insert(key);
    }
  }
  std::string newKernels() override {
    if (!o_.build.keepKernels) return "";
    std::vector<Hash128> fresh;
    for (const Hash128& k : kernels_.keys())
      if (!admitted_.count(k)) fresh.push_back(k);
    if (fresh.empty()) return "";
    ByteWriter w;
    w.put<uint64_t>(fresh.size());
    for (const Hash128& k : fresh) {
      const std::string bytes = compiler::serializeKernel(*kernels_.find(k));
      w.put(k.lo);
      w.put(k.hi);
      w.put(bytes);
      w.put(hashBytes(bytes).lo);
    }
    return w.take();
  }

  Tensors oracle(int set) override {
    std::vector<ir::Tensor> in;
    for (const ir::Value* v : model_.graph->top().inputs) {
      const Tensors& t = inputs_[size_t(set)];
      in.push_back(std::find_if(t.begin(), t.end(), [&](const auto& x) { return x.first == v->name; })->second);
    }
    const std::vector<ir::Tensor> out = ops::evalGraph(*model_.graph, in);
    Tensors named;
    for (size_t i = 0; i < out.size(); i++) named.emplace_back(model_.graph->top().outputs[i]->name, out[i]);
    return named;
  }

  Built build(const std::string& route, const std::string& path) override {
    compiler::BuildOptions b = build_;
    b.route = knobs::Route::parse(route);
    b.emitThreads = build_.threads;
    // The worker has just decided this route, afresh, for these very options: its answer came along with the fork.
    const bool known = decided_ && decided_->first == route;
    compiler::BuildResult r = known ? compiler::buildEngine(model_, b, std::move(decided_->second), kernels_)
                                    : compiler::buildEngine(model_, b, kernels_);
    decided_.reset();
    checkWorkspace(r);
    r.parts.fingerprint = fingerprint_.text();
    layers_[path] = layersOf(r.parts.plan);
    compiler::keepDetail(r.parts, o_.build.profilingVerbosity);
    const double begin = clock_.now();
    Built out;
    out.hash = runtime::writeSplitEngine(r.parts, standard_, path).hex();
    out.stepMs = {{"decide", r.decideSeconds * 1000},
                  {"emit", r.emitSeconds * 1000},
                  {"link", r.linkSeconds * 1000},
                  {"assemble", r.assembleSeconds * 1000},
                  {"write", (clock_.now() - begin) * 1000}};
    return out;
  }

  std::unique_ptr<LoadedEngine> load(const std::string& path, int threads, uint64_t luck) override {
    if (!pool_) pool_ = std::make_shared<runtime::Pool>(runtime::PoolOptions{threads, true});
    auto layers = layers_.find(path);
    return std::make_unique<RuntimeEngine>(runtime::loadEngineFiles(open(path)), pool_, luck,
                                           layers == layers_.end() ? std::vector<LayerTime>{} : layers->second);
  }
  std::string wholeEngine(const std::string& path) override { return runtime::wholeEngine(open(path)); }
  std::string hashOf(const std::string& path) override {
    const runtime::EngineFiles files = open(path);
    readEngineFiles(files);
    return runtime::engineIdentity(files.split() ? files.head : files.file->bytes()).hex();
  }
  EngineOrigin originOf(const std::string& path) override {
    const auto m = readEngineFiles(open(path)).manifest;
    return {m.route, m.decisionHash, m.modelHash};
  }
  Clock& clock() override { return clock_; }
  std::shared_ptr<const knobs::Registry> registry(const Json&) override {
    return {std::shared_ptr<void>(), &knobs::Registry::builtin()};
  }

 private:
  static Decision decisionOf(const compiler::Decided& d) {
    Decision out;
    std::set<std::string> read;
    for (knobs::KnobId k : d.reads) read.insert(knobs::Registry::builtin()[k].name);
    out.hash = d.decision.hash.hex();
    out.knobsRead = {read.begin(), read.end()};
    out.lostWishes = d.warnings;
    return out;
  }

  void checkWorkspace(const compiler::BuildResult& r) const {
    const int64_t needs = compiler::workspaceBytes(r, o_.build.threads);
    if (o_.build.workspaceBytes >= 0 && needs > o_.build.workspaceBytes)
      throw UserError("needs {} bytes for activations and scratch, and --memPoolSize=workspace allows {}", needs,
                      o_.build.workspaceBytes);
  }

  // Engines of one process that lie in one file share its mapping.
  runtime::EngineFiles open(const std::string& path) {
    return runtime::openEngineFiles(path, [this](const std::string& p) {
      std::shared_ptr<const runtime::Blob> blob = mapped_[p].lock();
      if (!blob) mapped_[p] = blob = runtime::Blob::map(p);
      return blob;
    });
  }
  void readFormats() {
    for (const auto& [name, format] : o_.build.formats) {
      const ir::Value* found = nullptr;
      for (const auto* list : {&model_.graph->top().inputs, &model_.graph->top().outputs})
        for (const ir::Value* v : *list)
          if (v->name == name) found = v;
      if (!found) throw UserError("format of '{}': the model has no such input or output", name);
      if (format != "hwc") throw UserError("format '{}' of '{}' does not exist; there are chw and hwc", format, name);
      build_.ioLayouts[name] = ir::Layout::channelsLast(found->type.rank());
    }
  }
  // What a file of a tensor holds, in row-major order.
  ir::Tensor fromFile(const std::string& path, const WantedTensor& want) const {
    ir::Tensor t = readTensorFile(path, want);
    auto layout = build_.ioLayouts.find(want.name);
    return layout == build_.ioLayouts.end() ? t : fromMemoryOrder(t, layout->second.order);
  }

  // See TuneOptions::model: what was renamed, narrowed, named, marked and unmarked through the API.
  void applyEdits() {
    if (o_.model.edits.empty()) return;
    const Json edits = Json::parse(o_.model.edits, nullptr, false);
    if (!edits.is_object()) throw UserError("the network's edits cannot be read");
    for (const auto& [key, value] : edits.items()) {
      if (key == "inputs") {
        const auto& inputs = model_.graph->top().inputs;
        if (value.size() != inputs.size()) throw UserError("the network's edits are of another model");
        for (size_t i = 0; i < inputs.size(); i++)  // inputs may have changed places
          if (inputs[i]->name != value[i].at("name").get<std::string>())
            model_.graph->rename(inputs[i], model_.graph->uniqueName(inputs[i]->name));
        for (size_t i = 0; i < inputs.size(); i++) {
          model_.graph->rename(inputs[i], value[i].at("name"));
          const auto dims = value[i].at("dims").get<std::vector<int64_t>>();
          for (size_t a = 0; a < dims.size() && a < inputs[i]->type.dims.size(); a++)
            if (dims[a] >= 0) inputs[i]->type.dims[a] = ir::Dim(dims[a]);
          const auto symbols = value[i].value("symbols", std::vector<std::string>());
          for (size_t a = 0; a < symbols.size() && a < inputs[i]->type.dims.size(); a++) {
            if (symbols[a].empty()) continue;
            inputs[i]->type.dims[a] = ir::Dim::symbol(symbols[a]);
            model_.graph->symbols.try_emplace(symbols[a]);
          }
        }
        model_.hash = hashBytes(model_.hash.hex() + value.dump());
        continue;
      }
      if (key != "outputs") throw UserError("edit '{}' of the network cannot be tuned yet", key);
      std::vector<ir::Value*> outputs;
      for (const Json& name : value) {
        ir::Value* found = nullptr;
        for (const auto& v : model_.graph->values())
          if (v->name == name.get<std::string>()) found = v.get();
        if (!found) throw UserError("output '{}' is no tensor of the network", name.get<std::string>());
        outputs.push_back(found);
      }
      model_.graph->top().outputs = outputs;
      model_.hash = hashBytes(model_.hash.hex() + edits.dump());
    }
  }

  std::vector<int64_t> shapeOf(const ir::Value& input) const {
    if (auto it = o_.build.runShapes.find(input.name); it != o_.build.runShapes.end()) return it->second;
    if (!o_.build.profiles.empty())
      if (auto it = o_.build.profiles[0].find(input.name); it != o_.build.profiles[0].end()) return it->second.opt;
    std::vector<int64_t> dims;
    for (const ir::Dim& d : input.type.dims) {
      if (!d.constant()) throw UserError("input '{}' has a dynamic extent and no shape; give --shapes", input.name);
      dims.push_back(*d.constant());
    }
    return dims;
  }

  // One set of the user's, with nothing to compare its outputs with but the oracle: another is made of it.
  bool varies() const { return o_.pairs.size() == 1 && o_.pairs[0].refOutputs.empty(); }

  void makeInputSets() {
    inputs_.clear();
    references_.clear();
    madeUp_ = false;
    auto graph = model_.graph->clone();
    passes::Profile fixed;
    for (const ir::Value* v : graph->top().inputs) fixed[v->name] = passes::ShapeRange::fixed(shapeOf(*v));
    passes::specialise(*graph, fixed);
    const auto rules = inputRules(*graph);
    const size_t sets = std::max<size_t>(o_.pairs.size(), o_.pairs.empty() ? 2 : 1);
    for (size_t s = 0; s < sets; s++) {
      Tensors t;
      const IoPair* pair = s < o_.pairs.size() ? &o_.pairs[s] : nullptr;
      for (const ir::Value* v : graph->top().inputs) {
        const std::vector<int64_t> dims = fixed.at(v->name).opt;
        const ir::DType dtype = v->type.dtype;
        if (pair && pair->inputs.count(v->name)) {
          t.emplace_back(v->name, fromFile(pair->inputs.at(v->name), {v->name, dtype, dims}));
        } else {
          auto rule = rules.find(v->name);
          t.emplace_back(v->name, makeInput(v->name, dtype, dims, rule == rules.end() ? InputRule{} : rule->second,
                                            o_.seed, int(s), draw_));
          madeUp_ = true;
        }
      }
      if (pair)
        for (const auto& [name, file] : pair->inputs)
          if (!fixed.count(name)) throw UserError("--loadInputs: '{}' is no input of the model", name);
      inputs_.push_back(std::move(t));
      if (!pair || pair->refOutputs.empty()) continue;
      Tensors refs;
      std::map<std::string, const ir::Value*> known;
      for (const ir::Value* v : graph->top().outputs) known[v->name] = v;
      for (const auto& [name, file] : pair->refOutputs) {
        auto it = known.find(name);
        if (it == known.end()) throw UserError("--loadRefOutputs: '{}' is no output of the model", name);
        WantedTensor want{name, it->second->type.dtype, std::vector<int64_t>{}};
        for (const ir::Dim& d : it->second->type.dims) {
          if (d.constant() && want.dims)
            want.dims->push_back(*d.constant());
          else
            want.dims.reset();
        }
        refs.emplace_back(name, fromFile(file, want));
      }
      references_.push_back(std::move(refs));
    }
    if (varies() && !withoutVaried_) {
      Tensors t;
      for (const auto& [name, first] : inputs_[0]) {
        auto found = rules.find(name);
        const InputRule rule = found == rules.end() ? InputRule{} : found->second;
        t.emplace_back(name, o_.pairs[0].inputs.count(name)
                                 ? variedInput(name, first, rule, o_.seed)
                                 : makeInput(name, first.dtype(), first.shape(), rule, o_.seed, 1, draw_));
      }
      inputs_.push_back(std::move(t));
    }
    if (!references_.empty() && references_.size() != inputs_.size())
      throw UserError("reference outputs are given for {} of {} input sets; give them for all or for none",
                      references_.size(), inputs_.size());
  }

  TuneOptions o_;
  frontend::Model model_;
  compiler::BuildOptions build_;
  compiler::KernelCache kernels_;
  compiler::BuildResult result_;
  std::set<Hash128> admitted_;
  std::optional<std::pair<std::string, compiler::Decided>> decided_;  // by route
  runtime::WeightIndex standard_;
  std::map<std::string, std::weak_ptr<const runtime::Blob>> mapped_;
  Decision default_;
  std::vector<LayerTime> defaultLayers_;
  std::map<std::string, std::vector<LayerTime>> layers_;  // of engines written by this process and its parent, by file
  double buildMs_ = 0;
  std::map<std::string, std::string> stack_;
  Fingerprint fingerprint_;
  std::vector<Tensors> inputs_, references_;
  Draw draw_ = Draw::kUsual;
  bool madeUp_ = false;  // some input is in no file
  bool withoutVaried_ = false;
  std::shared_ptr<runtime::Pool> pool_;
  SteadyClock clock_;
};

}  // namespace

std::unique_ptr<Backend> makeCompilerBackend() {
  return std::make_unique<CompilerBackend>();
}

}  // namespace rutter::tuner
