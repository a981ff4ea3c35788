#include "base/fingerprint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"

namespace rutter {

Fingerprint Fingerprint::ofMachine() {
  const CpuInfo& c = cpuInfo();
  Fingerprint f;
  f.facts["cpu"] = fmt::format("{} family {}", c.vendor, c.family);
  f.facts["features"] = c.features.text();
  f.facts["l1d"] = std::to_string(c.l1d);
  f.facts["l2"] = std::to_string(c.l2);
  f.facts["l3"] = std::to_string(c.l3);
  f.facts["cores"] = std::to_string(usableThreads());
  return f;
}
std::string Fingerprint::text() const {
  return nlohmann::json(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
Fingerprint Fingerprint::parse(const std::string& json) {
  try {
    Fingerprint f;
    f.facts = nlohmann::json::parse(json).get<std::map<std::string, std::string>>();
    return f;
  } catch (const nlohmann::json::exception&) {
    throw UserError("a fingerprint cannot be read: it is no JSON object of texts");
  }
}
std::vector<std::string> Fingerprint::differences(const Fingerprint& here) const {
  std::vector<std::string> out;
  for (const auto& [name, value] : here.facts)
    if (auto it = facts.find(name); it != facts.end() && it->second != value)
      out.push_back(fmt::format("{}: {} there, {} here", name, it->second, value));
  return out;
}

}  // namespace rutter
