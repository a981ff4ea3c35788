#include <nlohmann/json.hpp>

#include "api/runtime/objects.h"
#include "ir/dtype.h"
#include "ir/type.h"

namespace rutter::api {
namespace {

using Json = nlohmann::ordered_json;
namespace fb = runtime::fb;

std::string text(const flatbuffers::String* s) {
  return s ? s->str() : "";
}
Json list(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* v) {
  Json a = Json::array();
  if (v)
    for (const auto* s : *v) a.push_back(s->str());
  return a;
}
std::string dump(const Json& j) {
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Names of what a layer runs: kernel symbols and copies; `reference` if an oracle is among them.
struct Actions {
  Json kernels = Json::array();
  bool reference = false;
};
Actions actionsOf(const fb::Plan& plan, int layer) {
  Actions a;
  if (const auto* code = plan.regions()->Get(0)->code())
    for (const fb::Instruction* x : *code) {
      if (x->layer() != layer) continue;
      if (const auto* l = x->action_as_Launch()) a.kernels.push_back(plan.kernels()->Get(uint32_t(l->kernel()))->str());
      a.reference |= x->action_type() == fb::Action::Reference;
    }
  return a;
}
Json layerJson(const fb::Plan& plan, int index, const std::vector<int64_t>& values) {
  const fb::Layer& l = *plan.layers()->Get(uint32_t(index));
  if (text(l.type()).empty()) return text(l.name());
  auto value = [&](int32_t e) { return e < 0 ? Json() : Json(values[size_t(e)]); };
  Actions a = actionsOf(plan, index);
  Json j;
  j["Name"] = text(l.name());
  j["LayerType"] = text(l.type());
  j["Inputs"] = list(l.inputs());
  j["Outputs"] = list(l.outputs());
  j["Origins"] = list(l.origins());
  j["Tactic"] = text(l.tactic());
  j["Configuration"] = text(l.configuration());
  j["Kernels"] = a.kernels;
  j["KnobsRead"] = list(l.knobs_read());
  j["Refusals"] = list(l.refusals());
  j["Layouts"] = list(l.layouts());
  j["Flops"] = value(l.flops());
  j["Bytes"] = value(l.bytes());
  j["Reference"] = a.reference;
  return j;
}
std::string layerLine(const fb::Plan& plan, int index) {
  const fb::Layer& l = *plan.layers()->Get(uint32_t(index));
  std::string s = text(l.name());
  if (!text(l.type()).empty()) s += " [" + text(l.type()) + "]";
  if (!text(l.tactic()).empty()) s += " " + text(l.tactic());
  if (!text(l.configuration()).empty()) s += ": " + text(l.configuration());
  return s;
}
Json ioJson(const runtime::Engine& e, int i) {
  const fb::IoTensor& t = e.io(i);
  ir::Layout layout;
  if (t.order()) layout.order.assign(t.order()->begin(), t.order()->end());
  Json j;
  j["Name"] = text(t.name());
  j["IOMode"] = t.is_input() ? "Input" : "Output";
  j["DataType"] = std::string(ir::dtypeName(ir::DType(t.dtype())));
  j["Dimensions"] = e.shape(i);
  j["DimensionNames"] = list(t.dim_names());
  j["Location"] = "Host";
  j["IsShapeInferenceIO"] = false;
  j["ProfileInfo"] = Json::array();
  for (int p = 0; p < e.profiles(); p++) {
    Json q;
    if (t.is_input()) {
      q["MinShape"] = e.profileShape(i, p, 0);
      q["OptShape"] = e.profileShape(i, p, 1);
      q["MaxShape"] = e.profileShape(i, p, 2);
    }
    q["Format"] = layout.text();
    j["ProfileInfo"].push_back(q);
  }
  return j;
}
Json engineJson(const runtime::Engine& e) {
  const runtime::Manifest& m = e.manifest();
  Json j;
  j["Model"] = m.modelName;
  j["ModelHash"] = m.modelHash;
  j["BuildRoute"] = m.route;
  j["DecisionHash"] = m.decisionHash;
  j["Target"] = m.target;
  j["Features"] = m.features.text();
  j["Versions"] = m.versions;
  j["Notes"] = m.notes;
  j["FormatVersion"] = runtime::kFormatVersion;
  j["EngineBytes"] = e.bytes().size();
  j["WeightsBytes"] = e.weightsBytes();
  j["ArenaBytes"] = e.arenaBytes();
  j["Threads"] = e.plan().threads_hint();
  return j;
}

}  // namespace

bool EngineInspector::setExecutionContext(IExecutionContext const* context) noexcept {
  return reporter_.guard(false, [&] {
    const auto* c = dynamic_cast<const ExecutionContext*>(context);
    if (context && (!c || &c->context().engine() != engine_.get())) throw UserError("the context is of another engine");
    context_ = c;
    return true;
  });
}
std::vector<int64_t> EngineInspector::values() const {
  if (context_ && context_->context().unspecifiedInputs() == 0) {
    context_->context().resolve();
    auto v = context_->context().values();
    return {v.begin(), v.end()};
  }
  return engine_->valuesAt(0, 1);
}
AsciiChar const* EngineInspector::getLayerInformation(int32_t layer, LayerInformationFormat format) const noexcept {
  return reporter_.guard(static_cast<AsciiChar const*>(nullptr), [&]() -> AsciiChar const* {
    const auto* layers = engine_->plan().layers();
    int n = layers ? int(layers->size()) : 0;
    if (layer < 0 || layer >= n) throw UserError("layer {} does not exist: the engine has {}", layer, n);
    text_ = format == LayerInformationFormat::kONELINE ? layerLine(engine_->plan(), layer)
                                                       : dump(layerJson(engine_->plan(), layer, values()));
    return text_.c_str();
  });
}
AsciiChar const* EngineInspector::getEngineInformation(LayerInformationFormat format) const noexcept {
  return reporter_.guard(static_cast<AsciiChar const*>(nullptr), [&]() -> AsciiChar const* {
    const auto* layers = engine_->plan().layers();
    int n = layers ? int(layers->size()) : 0;
    if (format == LayerInformationFormat::kONELINE) {
      text_.clear();
      for (int i = 0; i < n; i++) text_ += layerLine(engine_->plan(), i) + "\n";
      return text_.c_str();
    }
    Json j;
    auto v = values();
    j["Layers"] = Json::array();
    for (int i = 0; i < n; i++) j["Layers"].push_back(layerJson(engine_->plan(), i, v));
    j["Bindings"] = Json::array();
    j["I/O Tensors"] = Json::array();
    for (int i = 0; i < engine_->ioCount(); i++) {
      j["Bindings"].push_back(text(engine_->io(i).name()));
      j["I/O Tensors"].push_back(ioJson(*engine_, i));
    }
    j["Engine"] = engineJson(*engine_);
    text_ = dump(j);
    return text_.c_str();
  });
}

}  // namespace rutter::api
