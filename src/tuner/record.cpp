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
void read(const Json& j, const char* key, Status& s) {
  std::string word;
  read(j, key, word);
  if (!word.empty()) s = parseStatus(word);
}

// The keys of a record, in the order in which they are written, each with the member that it holds: one list for
// writing and reading.
template <typename F>
void eachField(const SampleRecord*, F&& f) {
  f("iter", &SampleRecord::iter);
  f("build_route", &SampleRecord::route);
  f("stage", &SampleRecord::stage);
  f("index", &SampleRecord::index);
  f("status", &SampleRecord::status);
  f("error_message", &SampleRecord::error);
  f("log_ratios", &SampleRecord::logRatios);
  f("default_ms", &SampleRecord::defaultMs);
  f("ms", &SampleRecord::ms);
  f("busy_s", &SampleRecord::busySeconds);
  f("share", &SampleRecord::share);
}
template <typename F>
void eachField(const ConfirmRecord*, F&& f) {
  f("iter", &ConfirmRecord::iter);
  f("build_route", &ConfirmRecord::route);
  f("processes", &ConfirmRecord::processes);
  f("share", &ConfirmRecord::share);
  f("center", &ConfirmRecord::center);
  f("lo", &ConfirmRecord::lo);
  f("hi", &ConfirmRecord::hi);
  f("faster", &ConfirmRecord::faster);
  f("reason", &ConfirmRecord::reason);
}
template <typename F>
void eachField(const WinnerRecord*, F&& f) {
  f("iter", &WinnerRecord::iter);
  f("build_route", &WinnerRecord::route);
  f("engine_hash", &WinnerRecord::engineHash);
  f("reason", &WinnerRecord::reason);
  f("center", &WinnerRecord::center);
  f("lo", &WinnerRecord::lo);
  f("hi", &WinnerRecord::hi);
  f("processes", &WinnerRecord::processes);
}
template <typename F>
void eachField(const DecidedRecord*, F&& f) {
  f("of", &DecidedRecord::of);
  f("build_route", &DecidedRecord::route);
  f("decision", &DecidedRecord::decision);
  f("busy_s", &DecidedRecord::busySeconds);
}
template <typename F>
void eachField(const ShortenedRecord*, F&& f) {
  f("of", &ShortenedRecord::of);
  f("iter", &ShortenedRecord::iter);
  f("build_route", &ShortenedRecord::route);
  f("engine_hash", &ShortenedRecord::engineHash);
  f("status", &ShortenedRecord::status);
  f("error_message", &ShortenedRecord::error);
  f("busy_s", &ShortenedRecord::busySeconds);
}

template <typename T>
Json asJson(const T& v) {
  return v;
}
Json asJson(Status s) {
  return statusName(s);
}
template <typename R>
Json written(const char* type, const R& r) {
  Json j = {{"type", type}};
  eachField(&r, [&](const char* key, auto member) { j[key] = asJson(r.*member); });
  return j;
}

template <typename R>
R readAs(const Json& j) {
  R r;
  eachField(&r, [&](const char* key, auto member) { read(j, key, r.*member); });
  return r;
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

CandidateRecord sameEngine(const CandidateRecord& of, int64_t iter, const std::string& route) {
  CandidateRecord r = of;
  r.iter = iter;
  r.route = route;
  r.sameAs = of.iter;
  r.busySeconds = r.buildMs = 0;
  r.stepMs.clear();
  return r;
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
  read(j, "status", r.status);
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
  if (!r.lostWishes.empty()) j["no_effect"] = r.lostWishes;
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
  read(j, "status", r.status);
  read(j, "error_message", r.error);
  if (j.contains("accuracy_loss")) r.losses = lossesFromJson(j["accuracy_loss"]);
  read(j, "relative_error", r.relativeError);
  read(j, "gpu_time", r.ms);
  read(j, "log_ratios", r.logRatios);
  read(j, "decision", r.decision);
  read(j, "engine_hash", r.engineHash);
  read(j, "same_as", r.sameAs);
  read(j, "knobs_read", r.knobsRead);
  read(j, "no_effect", r.lostWishes);
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
  return written("samples", r);
}
SampleRecord sampleFromJson(const Json& j) {
  return readAs<SampleRecord>(j);
}
Json toJson(const ConfirmRecord& r) {
  return written("confirm", r);
}
ConfirmRecord confirmFromJson(const Json& j) {
  return readAs<ConfirmRecord>(j);
}
Json toJson(const WinnerRecord& r) {
  return written("winner", r);
}
WinnerRecord winnerFromJson(const Json& j) {
  return readAs<WinnerRecord>(j);
}
Json toJson(const DecidedRecord& r) {
  return written("decided", r);
}
DecidedRecord decidedFromJson(const Json& j) {
  return readAs<DecidedRecord>(j);
}
Json toJson(const ShortenedRecord& r) {
  return written("shortened", r);
}
ShortenedRecord shortenedFromJson(const Json& j) {
  return readAs<ShortenedRecord>(j);
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
  c.lostWishes = r.lostWishes;
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
