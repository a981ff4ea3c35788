#pragma once
// Real models in tests: where they lie, and what onnxruntime answered on recorded inputs (scripts/reference.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace rutter::testmodels {

inline std::string cacheFolder() {
  if (const char* e = std::getenv("RUTTER_MODELS"); e && *e) return e;
  return std::string(RUTTER_SOURCE_DIR) + "/.cache/models";
}
inline std::string modelPath(const std::string& name) {
  return cacheFolder() + "/" + name + ".onnx";
}

/// Of the model that the recorded answers belong to.
inline std::string sha256Of(const std::string& name) {
  std::ifstream f(cacheFolder() + "/reference/" + name + "/manifest.json");
  if (!f) throw std::runtime_error("no references of " + name);
  return nlohmann::json::parse(f).at("sha256");
}

struct NamedTensor {
  std::string name;
  ir::Tensor tensor;
};
struct ReferenceSet {
  std::string kind;  ///< random, real-like, extra (another shape than the model's usual one)
  std::vector<NamedTensor> inputs, outputs;
};

inline ir::Tensor readTensor(const nlohmann::json& j, const std::string& folder) {
  const std::string dtype = j.at("dtype");
  for (int t = 0; t <= int(ir::DType::kU64); t++) {
    if (ir::dtypeName(ir::DType(t)) != dtype) continue;
    ir::Tensor x(ir::DType(t), j.at("shape").get<std::vector<int64_t>>());
    std::ifstream f(folder + "/" + j.at("file").get<std::string>(), std::ios::binary);
    if (!f.read(static_cast<char*>(x.mutableData()), x.bytes()))
      throw std::runtime_error("short reference file " + j.dump());
    return x;
  }
  throw std::runtime_error("unknown dtype " + dtype);
}
/// Recorded inputs and outputs of a model, the usual shapes first.
inline std::vector<ReferenceSet> references(const std::string& name) {
  const std::string folder = cacheFolder() + "/reference/" + name;
  std::ifstream f(folder + "/manifest.json");
  if (!f) throw std::runtime_error("no references of " + name);
  std::vector<ReferenceSet> sets;
  const nlohmann::json manifest = nlohmann::json::parse(f);
  for (const auto& s : manifest.at("sets")) {
    ReferenceSet r;
    r.kind = s.at("kind");
    for (const auto& t : s.at("inputs")) r.inputs.push_back({t.at("name"), readTensor(t, folder)});
    for (const auto& t : s.at("outputs")) r.outputs.push_back({t.at("name"), readTensor(t, folder)});
    sets.push_back(std::move(r));
  }
  return sets;
}

struct Error {
  double norm, allowed;  ///< ||y - o||, and 1e-4 ||o|| plus what onnxruntime itself is off by
};
/// onnxruntime's float32 sigmoid is good to half an ulp of values near 1, not of its result: on noise, where all that
/// ppocrv4_det answers is below 1e-3, it is off by 2e-3 of the norm (against a sigmoid in double of its own inputs).
inline Error errorOf(const ir::Tensor& y, const ir::Tensor& o) {
  double d = 0, n = 0;
  for (int64_t i = 0; i < o.size(); i++) {
    const double a = y.getDouble(i), b = o.getDouble(i);
    d += (a - b) * (a - b);
    n += b * b;
  }
  return {std::sqrt(d), 1e-4 * std::sqrt(n) + 0x1p-25 * std::sqrt(double(o.size()))};
}
inline int64_t argMax(const ir::Tensor& t) {
  int64_t best = 0;
  for (int64_t i = 1; i < t.size(); i++)
    if (t.getDouble(i) > t.getDouble(best)) best = i;
  return best;
}
/// What is asked of a model's answer; the same first class where the first two differ by more than that.
inline void expectAgrees(const ir::Tensor& y, const ir::Tensor& o, bool firstClass) {
  ASSERT_EQ(y.dtype(), o.dtype());
  ASSERT_EQ(y.shape(), o.shape());
  if (!ir::isFloat(o.dtype())) {
    for (int64_t k = 0; k < o.size(); k++) ASSERT_EQ(y.getInt(k), o.getInt(k));
    return;
  }
  const Error e = errorOf(y, o);
  EXPECT_LE(e.norm, e.allowed);
  if (!firstClass) return;
  const int64_t mine = argMax(y), theirs = argMax(o);
  EXPECT_TRUE(mine == theirs || o.getDouble(theirs) - o.getDouble(mine) <= e.allowed)
      << "first at " << mine << " in place of " << theirs;
}

}  // namespace rutter::testmodels

/// A model that is not there fails in CI and skips elsewhere, saying what to run.
#define RUTTER_NEED_FILE(path, howto)                                                                \
  do {                                                                                               \
    if (!std::filesystem::exists(path)) {                                                            \
      const char* ci = std::getenv("CI");                                                            \
      if (ci && *ci && std::string(ci) != "false") FAIL() << (path) << " is missing: run " << howto; \
      GTEST_SKIP() << (path) << " is missing: run " << howto;                                        \
    }                                                                                                \
  } while (0)
#define RUTTER_NEED_MODEL(name)                                                                             \
  RUTTER_NEED_FILE(::rutter::testmodels::modelPath(name), "scripts/models all and scripts/make_models.py"); \
  RUTTER_NEED_FILE(::rutter::testmodels::cacheFolder() + "/reference/" + (name) + "/manifest.json",         \
                   "scripts/reference.py " << (name))
