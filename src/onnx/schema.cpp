#include "onnx/schema.h"

#include <charconv>
#include <unordered_map>

namespace rutter::frontend {
namespace {

struct Row {
  const char *name, *versions, *attributes;
  int64_t minInputs, maxInputs, minOutputs, maxOutputs;
};
#define ONNX_NEWEST(opset, ir) constexpr int64_t kNewestOpset = opset, kNewestIr = ir;
#define SCHEMA(...)
#include "onnx/schemas.def"
#undef ONNX_NEWEST
#undef SCHEMA
constexpr Row kRows[] = {
#define ONNX_NEWEST(opset, ir)
#define SCHEMA(name, versions, attributes, a, b, c, d) {name, versions, attributes, a, b, c, d},
#include "onnx/schemas.def"
#undef ONNX_NEWEST
#undef SCHEMA
};

std::vector<std::string_view> words(std::string_view s) {
  std::vector<std::string_view> out;
  while (!s.empty()) {
    size_t n = s.find(' ');
    out.push_back(s.substr(0, n));
    s = n == s.npos ? std::string_view() : s.substr(n + 1);
  }
  return out;
}

}  // namespace

const Schema* findSchema(std::string_view op) {
  static const auto index = [] {
    std::unordered_map<std::string_view, Schema> m;
    for (const Row& r : kRows) {
      Schema s{r.name, {}, words(r.attributes), r.minInputs, r.maxInputs, r.minOutputs, r.maxOutputs};
      for (auto w : words(r.versions)) {
        int v = 0;
        std::from_chars(w.data(), w.data() + w.size(), v);
        s.versions.push_back(v);
      }
      m.emplace(r.name, std::move(s));
    }
    return m;
  }();
  auto it = index.find(op);
  return it == index.end() ? nullptr : &it->second;
}
int Schema::versionAt(int64_t opset) const {
  int best = 0;
  for (int v : versions)
    if (v <= opset) best = v;
  return best;
}
int64_t newestOpset() {
  return kNewestOpset;
}
int64_t newestIrVersion() {
  return kNewestIr;
}

}  // namespace rutter::frontend
