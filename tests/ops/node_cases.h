#pragma once
// The cases that scripts/node_tests.py writes: where they are, and how to read their tensors.
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "net.h"

namespace rutter::ops::test {

using Json = nlohmann::json;

inline std::string folder() {
  const char* given = std::getenv("RUTTER_NODE_TESTS");
  return given ? given : RUTTER_SOURCE_DIR "/.cache/node_tests";
}
inline std::string slurp(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}
inline DType dtypeOf(const std::string& name) {
  for (int t = 0; t <= int(DType::kString); t++)
    if (ir::dtypeName(DType(t)) == name) return DType(t);
  throw std::runtime_error("no dtype " + name);
}
inline Tensor tensorOf(const Json& j, const std::string& data) {
  Tensor t(dtypeOf(j["dtype"]), j["shape"].get<Ints>());
  if (t.bytes() != j["bytes"].get<int64_t>()) throw std::runtime_error("a tensor's size and shape differ");
  if (t.bytes()) std::memcpy(t.mutableData(), data.data() + j["offset"].get<size_t>(), size_t(t.bytes()));
  return t;
}

// "" if the tensors agree within the case's tolerance; integers and bool exactly.
inline std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype())
    return fmt::format("dtype {} instead of {}", ir::dtypeName(got.dtype()), ir::dtypeName(want.dtype()));
  if (got.shape() != want.shape())
    return fmt::format("shape [{}] instead of [{}]", fmt::join(got.shape(), ","), fmt::join(want.shape(), ","));
  for (int64_t i = 0; i < got.size(); i++) {
    double g = got.getDouble(i), w = want.getDouble(i);
    bool same = ir::isFloat(got.dtype())
                    ? g == w || (std::isnan(g) && std::isnan(w)) || std::abs(g - w) <= atol + rtol * std::abs(w)
                    : got.getInt(i) == want.getInt(i);
    if (!same) return fmt::format("element {} is {} instead of {}", i, g, w);
  }
  return "";
}

// Reads a set's inputs and types the graph's by them; small ones become constants too (shapes, axes, scales). "" or why
// not.
inline std::string feed(ir::Graph& g, const Json& set, const std::string& data, std::vector<Tensor>& inputs) {
  auto& slots = g.top().inputs;
  for (const Json& j : set["inputs"])
    if (!j.is_null()) inputs.push_back(tensorOf(j, data));
  if (inputs.size() != slots.size()) return fmt::format("{} inputs for {} of the model", inputs.size(), slots.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    slots[i]->type = ir::Type::tensor(inputs[i].dtype(), ir::toDims(inputs[i].shape()));
    if (inputs[i].rank() <= 1 && inputs[i].size() <= 64) slots[i]->constant = inputs[i];
  }
  return "";
}

}  // namespace rutter::ops::test
