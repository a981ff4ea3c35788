#include <xxhash.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/ints.h"
#include "runtime/engine_file.h"

namespace rutter::runtime {
namespace {

using Sink = std::function<void(std::string_view)>;
constexpr uint64_t kHeader = 64, kPage = 4096;

void pad(const Sink& sink, uint64_t n) {
  static const char zeros[kPage] = {};
  for (; n; n -= std::min(n, kPage)) sink({zeros, size_t(std::min(n, kPage))});
}
void emitWeights(std::span<const WeightChunk> weights, uint64_t bytes, const Sink& sink) {
  uint64_t at = 0;
  for (const WeightChunk& c : weights) {
    RUTTER_CHECK(c.offset >= 0 && uint64_t(c.offset) >= at && c.offset % 64 == 0, "weight chunk at {} after {}",
                 c.offset, at);
    pad(sink, uint64_t(c.offset) - at);
    sink(c.data);
    at = uint64_t(c.offset) + c.data.size();
  }
  RUTTER_CHECK(at <= bytes, "weights of {} bytes in a section of {}", at, bytes);
  pad(sink, bytes - at);
}

void emitHead(const EngineParts& parts, const Hash128& weightsHash, const Sink& sink) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &parts.plan));
  std::string_view plan(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  RUTTER_CHECK(parts.plan.kernels.empty() == parts.code.empty(), "{} kernels with {} bytes of code",
               parts.plan.kernels.size(), parts.code.size());
  struct Part {
    const char* name;
    uint64_t align, size;
    Hash128 hash;
    uint64_t offset = 0;
  };
  std::vector<Part> sections = {{"plan", 64, plan.size(), hashBytes(plan)},
                                {"code", 64, parts.code.size(), hashBytes(parts.code)},
                                {"weights", kPage, weightsBytes(parts), weightsHash}};
  nlohmann::ordered_json m;
  m["features"] = parts.features.text();
  m["target"] = parts.target;
  m["versions"] = parts.versions;
  m["model"] = parts.plan.model_name;
  m["model_hash"] = parts.plan.model_hash;
  m["route"] = parts.plan.route;
  m["decision_hash"] = parts.plan.decision_hash;
  m["fingerprint"] = parts.fingerprint;
  m["notes"] = parts.notes;
  // Offsets depend on the manifest's length: they are counted from the first section, which starts at its end.
  uint64_t at = 0;
  for (Part& s : sections) {
    s.offset = at = roundUp(at, s.align);
    at += s.size;
    m["sections"].push_back({{"name", s.name}, {"offset", s.offset}, {"size", s.size}, {"xxh3", s.hash.hex()}});
  }
  // A name may hold any bytes; what is not UTF-8 is shown as U+FFFD here (the plan keeps the bytes).
  std::string manifest = m.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  uint64_t base = roundUp(kHeader + manifest.size(), kPage), total = base + at;

  std::string header(kHeader, '\0');
  auto put = [&](size_t pos, auto v) { std::memcpy(header.data() + pos, &v, sizeof v); };
  std::memcpy(header.data(), kEngineMagic, 8);
  put(8, kFormatVersion);
  put(12, uint32_t(manifest.size()));
  put(16, total);
  Hash128 h = hashBytes(header + manifest);
  put(32, h.lo);
  put(40, h.hi);
  sink(header);
  sink(manifest);
  pad(sink, base - kHeader - manifest.size());
  sink(plan);
  pad(sink, sections[1].offset - plan.size());
  sink(parts.code);
  pad(sink, sections[2].offset - sections[1].offset - parts.code.size());
}
void emitEngine(const EngineParts& parts, const Sink& sink) {
  emitHead(parts, hashWeights(parts), sink);
  emitWeights(parts.weights, weightsBytes(parts), sink);
}

}  // namespace

uint64_t weightsBytes(const EngineParts& p) {
  return p.weights.empty() ? 0 : uint64_t(p.weights.back().offset) + p.weights.back().data.size();
}
Hash128 hashWeights(std::span<const WeightChunk> weights, uint64_t bytes) {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> s(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(s.get());
  emitWeights(weights, bytes, [&](std::string_view b) { XXH3_128bits_update(s.get(), b.data(), b.size()); });
  auto h = XXH3_128bits_digest(s.get());
  return {h.low64, h.high64};
}
std::string engineHead(const EngineParts& parts, const Hash128& weightsHash) {
  std::string out;
  emitHead(parts, weightsHash, [&](std::string_view b) { out.append(b); });
  return out;
}

std::string writeEngine(const EngineParts& parts) {
  std::string out;
  out.reserve(weightsBytes(parts) + parts.code.size() + (1 << 20));
  emitEngine(parts, [&](std::string_view b) { out.append(b); });
  return out;
}
void writeEngineFile(const EngineParts& parts, const std::string& path, bool durable) {
  AtomicFile f(path);
  std::string small;  // headers and padding go out together with what follows
  emitEngine(parts, [&](std::string_view b) {
    small.append(b.size() < (1 << 16) ? b : std::string_view());
    if (small.size() >= (1 << 20) || b.size() >= (1 << 16)) {
      f.write(small);
      small.clear();
    }
    if (b.size() >= (1 << 16)) f.write(b);
  });
  f.write(small);
  f.finish(durable);
}

}  // namespace rutter::runtime
