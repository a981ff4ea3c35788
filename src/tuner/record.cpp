#include "tuner/record.h"

#include <unistd.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "base/error.h"

namespace rutter::tuner {
namespace {

// Reads j[key] into `to` if it is there and not null.
template <typename T>
void read(const Json& j, const char* key, T& to) {
  auto it = j.find(key);
  if (it == j.end() || it->is_null()) return;
  try {
    to = it->get<T>();
  } catch (const nlohmann::json::exception&) {
    throw UserError("record of type '{}': \"{}\" is {}, not of the expected type", j.value("type", "?"), key,
                    it->dump());
  }
}
template <typename T>
void read(const Json& j, const char* key, std::optional<T>& to) {
  auto it = j.find(key);
  if (it == j.end() || it->is_null()) return;
  T v{};
  read(j, key, v);
  to = v;
}
template <typename T>
Json orNull(const std::optional<T>& v) {
  return v ? Json(*v) : Json(nullptr);
}
void readStatus(const Json& j, Status& s) {
  std::string word;
  read(j, "status", word);
  if (!word.empty()) s = parseStatus(word);
}

}  // namespace

Json lossesToJson(const std::optional<std::map<std::string, double>>& losses) {
  if (!losses) return nullptr;
  Json j = Json::object();
  for (const auto& [name, v] : *losses) j[name] = std::isfinite(v) ? Json(v) : Json(nullptr);
  return j;
}

std::optional<std::map<std::string, double>> lossesFromJson(const Json& j) {
  if (!j.is_object()) return std::nullopt;
  std::map<std::string, double> m;
  for (const auto& [name, v] : j.items())
    m[name] = v.is_number() ? v.get<double>() : std::numeric_limits<double>::infinity();
  return m;
}

Json toJson(const BaselineRecord& r) {
  Json layers = Json::array();
  for (const LayerTime& l : r.layers)
    layers.push_back({{"name", l.name}, {"origins", l.origins}, {"knobs_read", l.knobsRead}, {"ms", l.ms}});
  return {{"type", "baseline"},
          {"status", statusName(r.status)},
          {"error_message", r.error},
          {"decision", r.decision},
          {"engine_hash", r.engineHash},
          {"gpu_time", orNull(r.ms)},
          {"accuracy_loss", lossesToJson(r.losses)},
          {"relative_error", orNull(r.relativeError)},
          {"build_ms", r.buildMs},
          {"run_s", r.runSeconds},
          {"knobs_read", r.knobsRead},
          {"layers", layers},
          {"timed_route", r.timedRoute},
          {"machine", r.machine},
          {"inputs", r.inputs}};
}

BaselineRecord baselineFromJson(const Json& j) {
  BaselineRecord r;
  readStatus(j, r.status);
  read(j, "error_message", r.error);
  read(j, "decision", r.decision);
  read(j, "engine_hash", r.engineHash);
  read(j, "gpu_time", r.ms);
  if (j.contains("accuracy_loss")) r.losses = lossesFromJson(j["accuracy_loss"]);
  read(j, "relative_error", r.relativeError);
  read(j, "build_ms", r.buildMs);
  read(j, "run_s", r.runSeconds);
  read(j, "knobs_read", r.knobsRead);
  read(j, "timed_route", r.timedRoute);
  read(j, "machine", r.machine);
  read(j, "inputs", r.inputs);
  if (auto it = j.find("layers"); it != j.end() && it->is_array())
    for (const Json& l : *it) {
      LayerTime t;
      read(l, "name", t.name);
      read(l, "origins", t.origins);
      read(l, "knobs_read", t.knobsRead);
      read(l, "ms", t.ms);
      r.layers.push_back(std::move(t));
    }
  return r;
}

Json toJson(const CandidateRecord& r) {
  Json j = {{"type", "candidate"},
            {"iter", r.iter},
            {"phase", r.phase},
            {"build_route", r.route},
            {"status", statusName(r.status)},
            {"error_message", r.error},
            {"accuracy_loss", lossesToJson(r.losses)},
            {"relative_error", orNull(r.relativeError)},
            {"gpu_time", orNull(r.ms)},
            {"log_ratios", r.logRatios},
            {"decision", r.decision},
            {"engine_hash", r.engineHash},
            {"same_as", orNull(r.sameAs)},
            {"knobs_read", r.knobsRead},
            {"build_ms", r.buildMs},
            {"busy_s", r.busySeconds},
            {"peak_bytes", r.peakBytes},
            {"host", r.host},
            {"time", r.time}};
  if (!r.layerMs.empty()) j["layer_ms"] = r.layerMs;
  if (!r.defaultLayerMs.empty()) j["default_layer_ms"] = r.defaultLayerMs;
  if (!r.stepMs.empty()) j["step_ms"] = r.stepMs;
  return j;
}

CandidateRecord candidateFromJson(const Json& j) {
  CandidateRecord r;
  read(j, "iter", r.iter);
  read(j, "phase", r.phase);
  read(j, "build_route", r.route);
  readStatus(j, r.status);
  read(j, "error_message", r.error);
  if (j.contains("accuracy_loss")) r.losses = lossesFromJson(j["accuracy_loss"]);
  read(j, "relative_error", r.relativeError);
  read(j, "gpu_time", r.ms);
  read(j, "log_ratios", r.logRatios);
  read(j, "decision", r.decision);
  read(j, "engine_hash", r.engineHash);
  read(j, "same_as", r.sameAs);
  read(j, "knobs_read", r.knobsRead);
  read(j, "build_ms", r.buildMs);
  read(j, "busy_s", r.busySeconds);
  read(j, "peak_bytes", r.peakBytes);
  read(j, "layer_ms", r.layerMs);
  read(j, "default_layer_ms", r.defaultLayerMs);
  read(j, "step_ms", r.stepMs);
  read(j, "host", r.host);
  read(j, "time", r.time);
  return r;
}

Json toJson(const SampleRecord& r) {
  return {{"type", "samples"},         {"iter", r.iter},
          {"build_route", r.route},    {"stage", r.stage},
          {"index", r.index},          {"status", statusName(r.status)},
          {"error_message", r.error},  {"log_ratios", r.logRatios},
          {"default_ms", r.defaultMs}, {"ms", r.ms},
          {"busy_s", r.busySeconds}};
}

SampleRecord sampleFromJson(const Json& j) {
  SampleRecord r;
  read(j, "iter", r.iter);
  read(j, "build_route", r.route);
  read(j, "stage", r.stage);
  read(j, "index", r.index);
  readStatus(j, r.status);
  read(j, "error_message", r.error);
  read(j, "log_ratios", r.logRatios);
  read(j, "default_ms", r.defaultMs);
  read(j, "ms", r.ms);
  read(j, "busy_s", r.busySeconds);
  return r;
}

Json toJson(const ConfirmRecord& r) {
  return {{"type", "confirm"},
          {"iter", r.iter},
          {"build_route", r.route},
          {"processes", r.processes},
          {"finalists", r.finalists},
          {"center", r.center},
          {"lo", r.lo},
          {"hi", r.hi},
          {"faster", r.faster},
          {"reason", r.reason}};
}

ConfirmRecord confirmFromJson(const Json& j) {
  ConfirmRecord r;
  read(j, "iter", r.iter);
  read(j, "build_route", r.route);
  read(j, "processes", r.processes);
  read(j, "finalists", r.finalists);
  read(j, "center", r.center);
  read(j, "lo", r.lo);
  read(j, "hi", r.hi);
  read(j, "faster", r.faster);
  read(j, "reason", r.reason);
  return r;
}

Json toJson(const WinnerRecord& r) {
  return {{"type", "winner"},
          {"iter", r.iter},
          {"build_route", r.route},
          {"engine_hash", r.engineHash},
          {"reason", r.reason},
          {"center", r.center},
          {"lo", r.lo},
          {"hi", r.hi},
          {"processes", r.processes}};
}

Json toJson(const DecidedRecord& r) {
  return {
      {"type", "decided"}, {"of", r.of}, {"build_route", r.route}, {"decision", r.decision}, {"busy_s", r.busySeconds}};
}

DecidedRecord decidedFromJson(const Json& j) {
  DecidedRecord r;
  read(j, "of", r.of);
  read(j, "build_route", r.route);
  read(j, "decision", r.decision);
  read(j, "busy_s", r.busySeconds);
  return r;
}

Json toJson(const ShortenedRecord& r) {
  return {{"type", "shortened"},
          {"of", r.of},
          {"iter", r.iter},
          {"build_route", r.route},
          {"engine_hash", r.engineHash},
          {"status", statusName(r.status)},
          {"error_message", r.error},
          {"busy_s", r.busySeconds}};
}

ShortenedRecord shortenedFromJson(const Json& j) {
  ShortenedRecord r;
  read(j, "of", r.of);
  read(j, "iter", r.iter);
  read(j, "build_route", r.route);
  read(j, "engine_hash", r.engineHash);
  readStatus(j, r.status);
  read(j, "error_message", r.error);
  read(j, "busy_s", r.busySeconds);
  return r;
}

std::optional<Ratio> rankingOf(const std::vector<double>& logRatios) {
  if (logRatios.empty()) return std::nullopt;
  const Interval i = medianInterval(logRatios, 1.0 / 32);
  return Ratio{std::exp(median(logRatios)), std::exp(i.lo), std::exp(i.hi)};
}

CandidateInfo infoOf(const CandidateRecord& r) {
  CandidateInfo c;
  c.iter = r.iter;
  c.phase = r.phase;
  c.route = r.route;
  c.status = r.status;
  c.error = r.error;
  c.losses = r.losses;
  c.milliseconds = r.ms;
  c.ranking = rankingOf(r.logRatios);
  c.sameAs = r.sameAs;
  return c;
}

std::string hostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string timeStamp() {
  const time_t now = time(nullptr);
  tm utc;
  gmtime_r(&now, &utc);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace rutter::tuner
