#include "outputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "cli/exports.h"

namespace rutter::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j, int indent) {
  return j.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// JSON text of one element.
std::string element(const ir::Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case ir::DType::kF64:
      return jsonNumber(t.getDouble(i));
    case ir::DType::kU64:
      return std::to_string(static_cast<uint64_t>(t.getInt(i)));
    case ir::DType::kString:
      return jsonString(t.getString(i));
    default:
      return ir::isFloat(t.dtype()) ? jsonNumber(static_cast<float>(t.getDouble(i))) : std::to_string(t.getInt(i));
  }
}

Json engineInfo(const Session& s, const IExecutionContext* context) {
  std::unique_ptr<IEngineInspector> inspector(s.engine->createEngineInspector());
  RUTTER_CHECK(inspector, "no inspector");
  if (context) inspector->setExecutionContext(context);
  const char* text = inspector->getEngineInformation(LayerInformationFormat::kJSON);
  RUTTER_CHECK(text, "no layer information");
  return Json::parse(text);
}

std::string fileName(const std::string& tensor) {
  auto out = tensor;
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

}  // namespace

std::string layerInfoJson(const Session& s, const IExecutionContext* context) {
  return dump(engineInfo(s, context), 1) + "\n";
}

std::vector<std::string> layerInfoLines(const Session& s, const IExecutionContext* context) {
  std::vector<std::string> out{"Layer Information:"};
  const auto info = engineInfo(s, context);  // named: a member of a temporary would be gone inside the loop
  for (const auto& l : info.at("Layers")) out.push_back(l.is_string() ? l.get<std::string>() : dump(l, -1));
  return out;
}

std::vector<std::string> profileShapeLines(const IEngine& engine) {
  std::vector<std::string> out{"Optimization Profile Information:"};
  const auto profiles = engineProfiles(engine);
  const auto io = ioTensors(engine);
  for (size_t p = 0; p < profiles.size(); p++)
    for (const auto& t : io) {
      const auto at = profiles[p].find(t.name);
      if (at == profiles[p].end()) continue;
      const auto& r = at->second;
      out.push_back(fmt::format("Profile {}: {}: min {}, opt {}, max {}", p, t.name, printDims(r.min), printDims(r.opt),
                                printDims(r.max)));
    }
  return out;
}

std::string outputsJson(const NamedTensors& outputs) {
  std::vector<OutputValues> values;
  for (const auto& [name, t] : outputs)
    values.push_back({name, t.shape(), static_cast<size_t>(t.size()),
                      [&t = t](size_t i) { return element(t, static_cast<int64_t>(i)); }});
  return outputJson(values);
}

std::vector<std::string> outputLines(const NamedTensors& outputs) {
  std::vector<std::string> out{"Output Tensors:"};
  for (const auto& [name, t] : outputs) {
    std::string line = fmt::format("{}: ({})", name, printDims(t.shape()));
    for (int64_t i = 0; i < t.size(); i++) line += " " + element(t, i);
    out.push_back(std::move(line));
  }
  return out;
}

void dumpRaw(const NamedTensors& inputs, const NamedTensors& outputs) {
  for (const auto* set : {&inputs, &outputs})
    for (const auto& [name, t] : *set)
      writeFileAtomically(fmt::format("{}.{}.{}.{}.raw", fileName(name), set == &inputs ? "input" : "output",
                                      t.shape().empty() ? "scalar" : fmt::format("{}", fmt::join(t.shape(), ".")),
                                      ir::dtypeName(t.dtype())),
                          {static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes())});
}

std::string resultJson(const Session& s, const Options& o, const Trace* trace, const AccuracyResult& accuracy) {
  Json j;
  j["model"] = o.model.onnx.empty() ? Json(nullptr) : Json(o.model.onnx);
  const auto& file = o.model.loadEngine.empty() ? o.model.saveEngine : o.model.loadEngine;
  j["engine"] = file.empty() ? Json(nullptr) : Json(file);
  j["build_route"] = s.engine->getBuildRoute() ? s.engine->getBuildRoute() : "";
  j["layers"] = s.engine->getNbLayers();
  const auto io = ioTensors(*s.engine);
  for (const auto& t : io)
    if (auto shape = s.shapes.find(t.name); shape != s.shapes.end()) j["shapes"][t.name] = shape->second;
  if (trace) {
    j["throughput_qps"] = trace->wallSeconds > 0 ? static_cast<double>(trace->measured.size()) / trace->wallSeconds : 0;
    j["runs"] = trace->measured.size();
    std::vector<double> compute;
    for (const auto& r : trace->measured) compute.push_back(r.compute());
    const auto sum = summarize(compute, o.reporting.percentiles);
    auto& c = j["compute_ms"];
    c["min"] = sum.min;
    c["max"] = sum.max;
    c["mean"] = sum.mean;
    c["median"] = sum.median;
    for (size_t i = 0; i < sum.percentiles.size(); i++)
      c["percentiles"][fmt::format("{:g}", o.reporting.percentiles[i])] = sum.percentiles[i];
  }
  if (!accuracy.losses.empty()) {
    j["accuracy"]["ok"] = accuracy.ok;
    for (const auto& t : io)
      if (auto loss = accuracy.losses.find(t.name); !t.input && loss != accuracy.losses.end())
        j["accuracy"]["losses"][t.name] = loss->second;
  }
  return dump(j, -1);
}

}  // namespace rutter::cli
