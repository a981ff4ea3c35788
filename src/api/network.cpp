#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/objects.h"
#include "onnx/file.h"

namespace rutter::api {
namespace {
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
// What symbols of extents look like within expressions.
bool isSymbolName(const std::string& s) {
  return !s.empty() && s.size() <= 200 && isLetter(s[0]) &&
         std::all_of(s.begin(), s.end(), [](char c) { return isLetter(c) || (c >= '0' && c <= '9') || c == '.'; });
}
}  // namespace

bool Tensor::setName(char const* name) noexcept {
  return network_.reporter().guard(false, [&] {
    if (!isNetworkInput()) throw UserError("tensor '{}' is no input: only inputs can be renamed", value_->name);
    if (!name || !*name) throw UserError("the new name of input '{}' is empty", value_->name);
    network_.graph()->rename(value_, name);
    return true;
  });
}
bool Tensor::setDimensions(Dims const& dims) noexcept {
  return network_.reporter().guard(false, [&] {
    if (!isNetworkInput()) throw UserError("tensor '{}' is no input: only inputs' extents can be set", value_->name);
    ir::Type& t = value_->type;
    if (!t.known)
      throw UserError("input '{}' has no shape in the model: give it one by an optimization profile", value_->name);
    if (dims.nbDims != int32_t(t.rank()))
      throw UserError("input '{}' has rank {}, {} extents given", value_->name, t.rank(), dims.nbDims);
    ir::Dims d = t.dims;
    for (size_t a = 0; a < d.size(); a++) {
      if (dims.d[a] == -1) continue;
      if (dims.d[a] < 0) throw UserError("extent {} of axis {} of input '{}' is negative", dims.d[a], a, value_->name);
      if (d[a].isConstant() && !d[a].is(dims.d[a]))
        throw UserError("axis {} of input '{}' is {} in the model, {} given", a, value_->name, d[a].value(), dims.d[a]);
      d[a] = ir::Dim(dims.d[a]);
    }
    t.dims = d;
    return true;
  });
}
Dims Tensor::getDimensions() const noexcept {
  return network_.reporter().guard(invalidDims(), [&] {
    if (!value_->type.known) return invalidDims();
    std::vector<int64_t> v;
    for (const ir::Dim& d : value_->type.dims) v.push_back(d.isConstant() ? d.value() : -1);
    return makeDims(v);
  });
}
bool Tensor::isNetworkInput() const noexcept {
  auto& in = network_.graph()->top().inputs;
  return std::find(in.begin(), in.end(), value_) != in.end();
}
bool Tensor::isNetworkOutput() const noexcept {
  return network_.graph()->isOutput(value_);
}
bool Tensor::setAllowedFormats(uint32_t formats) noexcept {
  return network_.reporter().guard(false, [&] {
    if (!isNetworkInput() && !isNetworkOutput())
      throw UserError("tensor '{}' is neither input nor output", value_->name);
    uint32_t known = 1u << int(TensorFormat::kLINEAR) | 1u << int(TensorFormat::kHWC);
    if (!(formats & known))
      throw UserError("none of the formats given for '{}' exists here: kLINEAR and kHWC do", value_->name);
    if (!(formats & 1u << int(TensorFormat::kLINEAR)) && (!value_->type.known || value_->type.rank() < 3))
      throw UserError("tensor '{}' has {}: kHWC needs a batch axis, channels and at least one spatial axis",
                      value_->name,
                      value_->type.known ? fmt::format("{} axes", value_->type.rank()) : "no shape in the model");
    formats_ = formats;
    return true;
  });
}
char const* Tensor::getDimensionName(int32_t index) const noexcept {
  return network_.reporter().guard(static_cast<char const*>(nullptr), [&]() -> char const* {
    const ir::Type& t = value_->type;
    if (index < 0 || size_t(index) >= t.rank() || t.dims[size_t(index)].isConstant()) return nullptr;
    dimensionName_ = t.dims[size_t(index)].text();
    return dimensionName_.c_str();
  });
}

bool Tensor::setDimensionName(int32_t index, char const* name) noexcept {
  return network_.reporter().guard(false, [&] {
    if (!isNetworkInput()) throw UserError("tensor '{}' is no input: only inputs' extents are named", value_->name);
    ir::Type& t = value_->type;
    if (!t.known || index < 0 || size_t(index) >= t.rank())
      throw UserError("input '{}' has no axis {}: its shape is {}", value_->name, index,
                      t.known ? ir::toString(t.dims) : "not in the model");
    ir::Dim& d = t.dims[size_t(index)];
    if (d.isConstant())
      throw UserError("axis {} of input '{}' is {}: only dynamic extents have names", index, value_->name, d.value());
    const std::string text = name ? name : "";
    if (text.empty()) {
      d = ir::Dim::symbol(network_.unusedSymbol(fmt::format("{}_{}", value_->name, index)));
    } else {
      if (!isSymbolName(text))
        throw UserError(
            "'{}' cannot name axis {} of input '{}': up to 200 letters, digits, '_' and '.' can, and the first is a "
            "letter or '_'",
            frontend::shown(text), index, value_->name);
      d = ir::Dim::symbol(text);
    }
    network_.graph()->symbols.try_emplace(*d.asSymbol());
    return true;
  });
}

ITensor* Layer::getInput(int32_t i) const noexcept {
  return i >= 0 && size_t(i) < node_->inputs.size() && node_->inputs[size_t(i)]
             ? network_.tensor(node_->inputs[size_t(i)])
             : nullptr;
}
ITensor* Layer::getOutput(int32_t i) const noexcept {
  return i >= 0 && size_t(i) < node_->outputs.size() && node_->outputs[size_t(i)]
             ? network_.tensor(node_->outputs[size_t(i)])
             : nullptr;
}

ITensor* Network::tensor(ir::Value* v) const noexcept {
  return reporter_.guard(static_cast<ITensor*>(nullptr), [&]() -> ITensor* {
    auto& t = tensors_[v];
    if (!t) t = std::make_unique<Tensor>(const_cast<Network&>(*this), v);
    return t.get();
  });
}
ITensor* Network::getInput(int32_t i) const noexcept {
  return i >= 0 && i < getNbInputs() ? tensor(graph()->top().inputs[size_t(i)]) : nullptr;
}
ITensor* Network::getOutput(int32_t i) const noexcept {
  return i >= 0 && i < getNbOutputs() ? tensor(graph()->top().outputs[size_t(i)]) : nullptr;
}
ILayer* Network::getLayer(int32_t i) const noexcept {
  return i >= 0 && i < getNbLayers() ? layers_[size_t(i)].get() : nullptr;
}
void Network::markOutput(ITensor& tensor) noexcept {
  reporter_.guard(false, [&] {
    ir::Value* v = static_cast<Tensor&>(tensor).value();
    if (!graph()->isOutput(v)) graph()->top().outputs.push_back(v);
    return true;
  });
}
void Network::unmarkOutput(ITensor& tensor) noexcept {
  reporter_.guard(false, [&] {
    auto& out = graph()->top().outputs;
    out.erase(std::remove(out.begin(), out.end(), static_cast<Tensor&>(tensor).value()), out.end());
    return true;
  });
}
void Network::setName(char const* name) noexcept {
  reporter_.guard(false, [&] {
    name_ = name ? name : "";
    if (graph()) graph()->name = name_;
    return true;
  });
}
void Network::take(frontend::Model model, Source source) {
  layers_.clear();
  tensors_.clear();
  model_ = std::move(model);
  source_ = std::move(source);
  inputsRead_.clear();
  for (const ir::Value* v : graph()->top().inputs) inputsRead_.emplace_back(v->name, v->type.dims);
  outputsRead_ = graph()->top().outputs;
  if (!name_.empty()) graph()->name = name_;
  for (auto& n : graph()->top().nodes) layers_.push_back(std::make_unique<Layer>(*this, n.get()));
}
std::string Network::unusedSymbol(const std::string& wish) const {
  std::string base;
  for (char c : wish) base += isSymbolName("_" + std::string(1, c)) ? c : '_';
  if (!isLetter(base[0])) base = "_" + base;
  base = base.substr(0, 200);
  const auto taken = [&](const std::string& s) {
    for (const ir::Value* v : graph()->top().inputs)
      for (const ir::Dim& d : v->type.dims)
        if (d.asSymbol() == s) return true;
    return false;
  };
  std::string s = base;
  for (int i = 1; taken(s); i++) s = fmt::format("{}.{}", base, i);
  return s;
}
std::string Network::edits() const {
  nlohmann::ordered_json e = nlohmann::ordered_json::object();
  const auto& inputs = graph()->top().inputs;
  bool changed = false;
  auto list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < inputs.size(); i++) {
    const auto& [nameRead, dimsRead] = inputsRead_[i];
    std::vector<int64_t> dims;
    std::vector<std::string> symbols;
    bool named = false;
    for (const ir::Dim& d : inputs[i]->type.dims) {
      const size_t a = dims.size();
      dims.push_back(d.isConstant() ? d.value() : -1);
      symbols.push_back(!d.isConstant() && d != dimsRead[a] ? d.text() : "");
      named |= !symbols.back().empty();
    }
    list.push_back({{"name", inputs[i]->name}, {"dims", dims}});
    if (named) list.back()["symbols"] = symbols;
    changed |= inputs[i]->name != nameRead || inputs[i]->type.dims != dimsRead;
  }
  if (changed) e["inputs"] = list;
  if (graph()->top().outputs != outputsRead_) {
    auto names = nlohmann::ordered_json::array();
    for (const ir::Value* v : graph()->top().outputs) names.push_back(v->name);
    e["outputs"] = names;
  }
  return e.empty() ? "" : e.dump();
}
std::map<std::string, ir::Layout> Network::ioLayouts() const {
  std::map<std::string, ir::Layout> m;
  for (auto& [v, t] : tensors_)
    if (t && !(t->getAllowedFormats() & 1u << int(TensorFormat::kLINEAR)) &&
        (t->isNetworkInput() || t->isNetworkOutput()))
      m[v->name] = ir::Layout::channelsLast(v->type.rank());
  return m;
}

}  // namespace rutter::api
