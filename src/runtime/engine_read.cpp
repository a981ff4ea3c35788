#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runtime/engine_file.h"

namespace rutter::runtime {
namespace {

constexpr uint64_t kHeader = 64, kPage = 4096;

struct MappedBlob : Blob {
  MappedBlob(const void* p, size_t n) { bytes_ = {static_cast<const char*>(p), n}; }
  ~MappedBlob() override { munmap(const_cast<char*>(bytes_.data()), bytes_.size()); }
};

template <typename T>
T at(std::string_view b, size_t pos) {
  T v;
  std::memcpy(&v, b.data() + pos, sizeof v);
  return v;
}
bool allZero(std::string_view b) {
  return b.find_first_not_of('\0') == std::string_view::npos;
}
[[noreturn]] void altered(const char* what) {
  throw UserError("engine is altered: its {} does not match its checksum; build or copy it again", what);
}
Hash128 parseHash(const std::string& hex) {
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) altered("manifest");
  return {std::stoull(hex.substr(16), nullptr, 16), std::stoull(hex.substr(0, 16), nullptr, 16)};
}
Manifest parseManifest(std::string_view text) {
  Manifest m;
  try {
    auto j = nlohmann::json::parse(text);
    m.features = CpuFeatures::parse(j.at("features").get<std::string>());
    m.target = j.at("target");
    m.versions = j.at("versions").get<std::map<std::string, std::string>>();
    m.modelName = j.at("model");
    m.modelHash = j.at("model_hash");
    m.route = j.at("route");
    m.decisionHash = j.at("decision_hash");
    m.fingerprint = j.at("fingerprint");
    m.notes = j.at("notes").get<std::map<std::string, std::string>>();
    for (const auto& s : j.at("sections"))
      m.sections.push_back({s.at("name"), s.at("offset"), s.at("size"), parseHash(s.at("xxh3"))});
  } catch (const nlohmann::json::exception& e) {
    throw UserError("engine has a manifest that cannot be read: {}", e.what());
  }
  return m;
}

}  // namespace

std::shared_ptr<const Blob> Blob::map(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw UserError("cannot open engine '{}': {}", path, std::strerror(errno));
  struct stat st{};
  const char* why = nullptr;
  void* p = MAP_FAILED;
  if (fstat(fd, &st) != 0)
    why = std::strerror(errno);
  else if (!S_ISREG(st.st_mode))
    why = "it is not a regular file";
  else if (st.st_size == 0)
    why = "it is empty";
  else if ((p = mmap(nullptr, size_t(st.st_size), PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0)) == MAP_FAILED)
    why = std::strerror(errno);
  close(fd);
  if (why) throw UserError("cannot read engine '{}': {}", path, why);
  return std::make_shared<MappedBlob>(p, size_t(st.st_size));
}
std::shared_ptr<const Blob> Blob::copy(std::string_view bytes) {
  if (bytes.empty()) throw UserError("the engine is empty (0 bytes)");
  void* p = mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw DeviceError("out of memory: {} bytes for an engine", bytes.size());
  std::memcpy(p, bytes.data(), bytes.size());
  mprotect(p, bytes.size(), PROT_READ);
  return std::make_shared<MappedBlob>(p, bytes.size());
}

uint32_t readFormatVersion(std::string_view b) {
  size_t n = std::min(b.size(), sizeof kEngineMagic);
  if (n == 0 || std::memcmp(b.data(), kEngineMagic, n) != 0)
    throw UserError("not a Rutter engine: its first bytes are those of another kind of file");
  if (b.size() < kHeader)
    throw UserError("engine is truncated: {} bytes, the header alone takes {}", b.size(), kHeader);
  return at<uint32_t>(b, 8);
}

namespace {

struct Head {
  Manifest manifest;
  uint64_t end, base;  // of header and manifest; what offsets of sections count from
};
// `total`: bytes that there are; `b` may be the part in front of the weights.
Head readHead(std::string_view b, uint64_t bytes) {
  if (uint32_t v = readFormatVersion(b); v != kFormatVersion)
    throw UserError("engine has format version {}, this version of Rutter reads {}: build the engine again", v,
                    kFormatVersion);
  uint64_t manifestBytes = at<uint32_t>(b, 12), total = at<uint64_t>(b, 16);
  if (total > bytes) throw UserError("engine is truncated: {} bytes of {}", bytes, total);
  if (total < bytes) throw UserError("engine has {} bytes after its end; copy it again", bytes - total);
  if (kHeader + manifestBytes > b.size()) altered("header");
  std::string head(b.substr(0, kHeader + manifestBytes));
  std::memset(head.data() + 32, 0, 16);
  if (hashBytes(head) != Hash128{at<uint64_t>(b, 32), at<uint64_t>(b, 40)}) altered("header");

  Head h{parseManifest(b.substr(kHeader, manifestBytes)), kHeader + manifestBytes,
         (kHeader + manifestBytes + kPage - 1) / kPage * kPage};
  static constexpr const char* kNames[] = {"plan", "code", "weights"};
  const std::vector<Manifest::Section>& sections = h.manifest.sections;
  if (sections.size() != 3) throw UserError("engine has {} sections, 3 are expected", sections.size());
  uint64_t end = h.end;
  for (size_t i = 0; i < 3; i++) {
    const Manifest::Section& s = sections[i];
    if (s.name != kNames[i]) throw UserError("engine has section '{}' where '{}' is expected", s.name, kNames[i]);
    if (s.offset > total || h.base > total - s.offset || s.size > total - h.base - s.offset ||
        h.base + s.offset < end || s.offset % 64)
      throw UserError("engine section '{}' lies outside the file", s.name);
    end = h.base + s.offset + s.size;
  }
  if (end != total) throw UserError("engine has {} bytes that belong to no section", total - end);
  return h;
}
// Plan and code, and the padding up to `upTo`.
EngineImage readSections(std::string_view b, Head&& h, uint64_t upTo) {
  EngineImage image;
  uint64_t end = h.end;
  std::string_view* parts[] = {&image.plan, &image.code};
  for (size_t i = 0; i < 2; i++) {
    const Manifest::Section& s = h.manifest.sections[i];
    if (!allZero(b.substr(end, h.base + s.offset - end))) altered("padding");
    *parts[i] = b.substr(h.base + s.offset, s.size);
    if (hashBytes(*parts[i]) != s.hash) altered(fmt::format("section '{}'", s.name).c_str());
    end = h.base + s.offset + s.size;
  }
  if (!allZero(b.substr(end, upTo - end))) altered("padding");
  image.manifest = std::move(h.manifest);
  return image;
}

}  // namespace

EngineImage readEngine(std::string_view b) {
  Head h = readHead(b, b.size());
  const Manifest::Section weights = h.manifest.sections[2];
  const uint64_t at = h.base + weights.offset;
  EngineImage image = readSections(b, std::move(h), at);
  image.weights = b.substr(at, weights.size);
  if (hashBytes(image.weights) != weights.hash) altered("section 'weights'");
  return image;
}
EngineImage readEngine(std::string_view head, std::span<const WeightChunk> pieces, int64_t bytes) {
  Head h = readHead(head, head.size() + uint64_t(bytes));
  const Manifest::Section weights = h.manifest.sections[2];
  if (h.base + weights.offset != head.size() || weights.size != uint64_t(bytes)) altered("header");
  EngineImage image = readSections(head, std::move(h), head.size());
  if (hashWeights(pieces, uint64_t(bytes)) != weights.hash) altered("section 'weights'");
  return image;
}
Hash128 engineIdentity(std::string_view b) {
  readFormatVersion(b);
  return {at<uint64_t>(b, 32), at<uint64_t>(b, 40)};
}
std::string_view weightsSection(std::string_view b) {
  const Head h = readHead(b, b.size());
  return b.substr(h.base + h.manifest.sections[2].offset, h.manifest.sections[2].size);
}

}  // namespace rutter::runtime
