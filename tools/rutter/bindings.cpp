#include "bindings.h"

#include <cstring>

#include "base/text.h"
#include "tuner/accuracy.h"
#include "tuner/tensor_files.h"

namespace rutter::cli {
namespace {

Dims toDims(const std::vector<int64_t>& v) {
  Dims d;
  RUTTER_CHECK(v.size() <= Dims::MAX_DIMS, "rank {}", v.size());
  d.nbDims = static_cast<int32_t>(v.size());
  std::copy(v.begin(), v.end(), d.d);
  return d;
}

// A name of --loadInputs or --loadRefOutputs: exact, or with one star.
const NamedFile* fileFor(const std::vector<NamedFile>& files, const std::string& tensor) {
  for (const auto& f : files)
    if (f.name == tensor) return &f;
  for (const auto& f : files) {
    auto star = f.name.find('*');
    if (star != f.name.npos && tensor.size() + 1 >= f.name.size() && tensor.starts_with(f.name.substr(0, star)) &&
        tensor.ends_with(f.name.substr(star + 1)))
      return &f;
  }
  return nullptr;
}

void checkNames(const std::vector<IoTensor>& io, const std::vector<NamedFile>& files, bool input,
                std::string_view flag) {
  std::vector<std::string> names;
  for (const auto& t : io)
    if (t.input == input) names.push_back(t.name);
  for (const auto& f : files) {
    bool any = false;
    for (const auto& n : names) any = any || fileFor({f}, n);
    if (!any)
      throw UserError("--{}: '{}' is no {} of the model; nearest: {}", flag, f.name, input ? "input" : "output",
                      joinOr(nearestNames(f.name, names)));
  }
}

void needComparable(const IoTensor& output) {
  if (!tuner::comparable(output.dtype))
    throw UserError("--loadRefOutputs: output '{}' is {}, which cannot be compared", output.name,
                    ir::dtypeName(output.dtype));
}

}  // namespace

std::vector<int64_t> toVector(const Dims& d) {
  RUTTER_CHECK(d.nbDims >= 0 && d.nbDims <= Dims::MAX_DIMS, "invalid dims");
  return {d.d, d.d + d.nbDims};
}

std::vector<IoTensor> ioTensors(const IEngine& engine) {
  std::vector<IoTensor> out;
  for (int32_t i = 0; i < engine.getNbIOTensors(); i++) {
    const char* name = engine.getIOTensorName(i);
    const bool input = engine.getTensorIOMode(name) == TensorIOMode::kINPUT;
    const auto dims = engine.getTensorShape(name);
    if (dims.nbDims < 0)
      throw UserError("{} '{}' has a rank above {}, which is not supported", input ? "input" : "output", name,
                      Dims::MAX_DIMS);
    out.push_back({name, static_cast<ir::DType>(engine.getTensorDataType(name)), input, toVector(dims)});
  }
  return out;
}

std::vector<RangeMap> engineProfiles(const IEngine& engine) {
  std::vector<RangeMap> out;
  for (int32_t p = 0; p < std::max(engine.getNbOptimizationProfiles(), 1); p++) {
    RangeMap ranges;
    for (const auto& t : ioTensors(engine)) {
      if (!t.input) continue;
      auto at = [&](OptProfileSelector s) { return engine.getProfileShape(t.name.c_str(), p, s); };
      if (at(OptProfileSelector::kMIN).nbDims < 0) continue;
      ranges[t.name] = {toVector(at(OptProfileSelector::kMIN)), toVector(at(OptProfileSelector::kOPT)),
                        toVector(at(OptProfileSelector::kMAX))};
    }
    out.push_back(std::move(ranges));
  }
  return out;
}

TensorMap readInputs(const std::vector<IoTensor>& io, const ShapeMap& shapes, const Options& o, size_t index,
                     const std::map<std::string, tuner::InputRule>& rules) {
  static const std::vector<NamedFile> kNone;
  const auto& pairs = o.inference.pairs;
  const auto& files = index < pairs.size() ? pairs[index].inputs : kNone;
  checkNames(io, files, true, "loadInputs");
  TensorMap out;
  for (const auto& t : io) {
    if (!t.input) continue;
    const auto& dims = shapes.at(t.name);
    if (const auto* f = fileFor(files, t.name)) {
      out.emplace(t.name, tuner::readTensorFile(expandHome(f->file), {t.name, t.dtype, dims}));
    } else {
      auto rule = rules.find(t.name);
      out.emplace(t.name,
                  tuner::makeInput(t.name, t.dtype, dims, rule == rules.end() ? tuner::InputRule{} : rule->second,
                                   static_cast<uint64_t>(o.tuning.seed), static_cast<int>(index)));
    }
  }
  return out;
}

TensorMap readReferences(const std::vector<IoTensor>& io, const ShapeMap& shapes, const Options& o, size_t index) {
  TensorMap out;
  if (index >= o.inference.pairs.size()) return out;
  const auto& files = o.inference.pairs[index].refOutputs;
  checkNames(io, files, false, "loadRefOutputs");
  for (const auto& t : io) {
    const auto* f = t.input ? nullptr : fileFor(files, t.name);
    if (!f) continue;
    needComparable(t);
    out.emplace(t.name, tuner::readTensorFile(expandHome(f->file), {t.name, t.dtype, shapes.at(t.name)}));
  }
  return out;
}

void checkFiles(const std::vector<IoTensor>& io, const ShapeMap& shapes, const Options& o) {
  for (const auto& pair : o.inference.pairs) {
    checkNames(io, pair.inputs, true, "loadInputs");
    checkNames(io, pair.refOutputs, false, "loadRefOutputs");
    for (const auto& t : io) {
      const auto* f = fileFor(t.input ? pair.inputs : pair.refOutputs, t.name);
      if (!f) continue;
      if (!t.input) needComparable(t);
      if (const auto dims = shapes.find(t.name); dims != shapes.end())
        tuner::readTensorFile(expandHome(f->file), {t.name, t.dtype, dims->second});
    }
  }
}

Bindings::Bindings(const IEngine& engine, IExecutionContext& context, const ShapeMap& shapes, Errors& errors) {
  const auto io = ioTensors(engine);
  for (const auto& t : io)
    if (t.input)
      errors.need(context.setInputShape(t.name.c_str(), toDims(shapes.at(t.name))),
                  "the shape of an input was refused");
  const char* missing = nullptr;
  if (context.inferShapes(1, &missing) != 0)
    errors.raise(missing ? fmt::format("input '{}' has no shape", missing) : "the shapes do not fit the model");
  for (const auto& t : io) {
    Binding b{t, ir::Tensor(t.dtype, toVector(context.getTensorShape(t.name.c_str())))};
    errors.need(context.setTensorAddress(t.name.c_str(), b.memory.mutableData()), "an address was refused");
    bindings_.push_back(std::move(b));
  }
}

void Bindings::setInputs(const TensorMap& inputs) {
  for (auto& b : bindings_) {
    if (!b.io.input) continue;
    const auto& t = inputs.at(b.io.name);
    RUTTER_CHECK(t.bytes() == b.memory.bytes(), "input '{}' has {} bytes, not {}", b.io.name, t.bytes(),
                 b.memory.bytes());
    if (t.bytes()) std::memcpy(b.memory.mutableData(), t.data(), static_cast<size_t>(t.bytes()));
  }
}

void Bindings::poisonOutputs() {
  for (auto& b : bindings_)
    if (!b.io.input && b.memory.bytes())
      std::memset(b.memory.mutableData(), 0xfb, static_cast<size_t>(b.memory.bytes()));
}

NamedTensors Bindings::read(bool input) const {
  NamedTensors out;
  for (const auto& b : bindings_)
    if (b.io.input == input) out.emplace_back(b.io.name, b.memory);
  return out;
}

ShapeMap Bindings::outputShapes() const {
  ShapeMap out;
  for (const auto& b : bindings_)
    if (!b.io.input) out[b.io.name] = b.memory.shape();
  return out;
}

}  // namespace rutter::cli
