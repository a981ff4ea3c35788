#include "cli/exports.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/values.h"

namespace rutter::cli {
void checkWritable(std::string_view flag, const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) throw UserError("--{}={}: it is a folder", flag, path);
    if (!S_ISREG(st.st_mode)) return;
  }
  if (const std::string why = whyUnwritable(path); !why.empty()) throw UserError("--{}={}: {}", flag, path, why);
}

std::string jsonNumber(double v) {
  return std::isfinite(v) ? fmt::format("{}", v) : "null";
}
std::string jsonNumber(float v) {
  return std::isfinite(v) ? fmt::format("{}", v) : "null";
}
std::string jsonString(std::string_view s) {
  return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string timesJson(std::span<const RunTimes> runs) {
  std::string out = "[";
  for (size_t i = 0; i < runs.size(); i++) {
    const auto& r = runs[i];
    const std::pair<const char*, double> fields[] = {{"startEnqMs", r.startEnq},
                                                     {"endEnqMs", r.endEnq},
                                                     {"startH2dMs", r.startH2d},
                                                     {"endH2dMs", r.endH2d},
                                                     {"startComputeMs", r.startCompute},
                                                     {"endComputeMs", r.endCompute},
                                                     {"startD2hMs", r.startD2h},
                                                     {"endD2hMs", r.endD2h},
                                                     {"h2dMs", r.h2d()},
                                                     {"computeMs", r.compute()},
                                                     {"d2hMs", r.d2h()},
                                                     {"latencyMs", r.latency()}};
    out += i ? ",\n  { " : "\n  { ";
    for (size_t f = 0; f < std::size(fields); f++)
      out += fmt::format("{}\"{}\" : {}", f ? ", " : "", fields[f].first, jsonNumber(fields[f].second));
    out += " }";
  }
  return out + "\n]\n";
}

std::string profileJson(std::span<const LayerTimes> layers) {
  size_t count = 0;
  double total = 0;
  for (const auto& l : layers) {
    count = std::max(count, l.ms.size());
    total += std::accumulate(l.ms.begin(), l.ms.end(), 0.0);
  }
  std::string out = fmt::format("[\n  {{ \"count\" : {} }}", count);
  for (const auto& l : layers) {
    auto ms = l.ms;
    std::sort(ms.begin(), ms.end());
    double sum = std::accumulate(ms.begin(), ms.end(), 0.0);
    out += fmt::format(
        ",\n  {{ \"name\" : {}, \"timeMs\" : {}, \"averageMs\" : {}, \"medianMs\" : {}, \"percentage\" : {} }}",
        jsonString(l.name), jsonNumber(sum), jsonNumber(ms.empty() ? 0 : sum / static_cast<double>(ms.size())),
        jsonNumber(ms.empty() ? 0 : median(ms)), jsonNumber(total > 0 ? sum / total * 100 : 0));
  }
  return out + "\n]\n";
}

std::string outputJson(std::span<const OutputValues> outputs) {
  std::string out = "[";
  for (size_t i = 0; i < outputs.size(); i++) {
    const auto& o = outputs[i];
    out += fmt::format("{}\n  {{ \"name\" : {}, \"dimensions\" : {}, \"values\" : [", i ? "," : "", jsonString(o.name),
                       jsonString(o.dims.empty() ? "" : printDims(o.dims)));
    for (size_t k = 0; k < o.count; k++) {
      out += k ? ", " : " ";
      out += o.value(k);
    }
    out += " ] }";
  }
  return out + "\n]\n";
}

}  // namespace rutter::cli
