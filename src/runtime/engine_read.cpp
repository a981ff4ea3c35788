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
    throw UserError("not a Rutter engine: it does not start with the engine magic");
  if (b.size() < kHeader)
    throw UserError("engine is truncated: {} bytes, the header alone takes {}", b.size(), kHeader);
  return at<uint32_t>(b, 8);
}

EngineImage readEngine(std::string_view b) {
  if (uint32_t v = readFormatVersion(b); v != kFormatVersion)
    throw UserError("engine has format version {}, this version of Rutter reads {}: build the engine again", v,
                    kFormatVersion);
  uint64_t manifestBytes = at<uint32_t>(b, 12), total = at<uint64_t>(b, 16);
  if (total > b.size()) throw UserError("engine is truncated: {} bytes of {}", b.size(), total);
  if (total < b.size()) throw UserError("engine has {} bytes after its end; copy it again", b.size() - total);
  if (kHeader + manifestBytes > total) altered("header");
  std::string head(b.substr(0, kHeader + manifestBytes));
  std::memset(head.data() + 32, 0, 16);
  if (hashBytes(head) != Hash128{at<uint64_t>(b, 32), at<uint64_t>(b, 40)}) altered("header");

  EngineImage image;
  image.manifest = parseManifest(b.substr(kHeader, manifestBytes));
  const uint64_t base = (kHeader + manifestBytes + kPage - 1) / kPage * kPage;
  uint64_t end = kHeader + manifestBytes;
  static constexpr const char* kNames[] = {"plan", "code", "weights"};
  std::string_view* parts[] = {&image.plan, &image.code, &image.weights};
  if (image.manifest.sections.size() != 3)
    throw UserError("engine has {} sections, 3 are expected", image.manifest.sections.size());
  for (size_t i = 0; i < 3; i++) {
    const Manifest::Section& s = image.manifest.sections[i];
    if (s.name != kNames[i]) throw UserError("engine has section '{}' where '{}' is expected", s.name, kNames[i]);
    if (s.offset > total || base > total - s.offset || s.size > total - base - s.offset || base + s.offset < end ||
        s.offset % 64)
      throw UserError("engine section '{}' lies outside the file", s.name);
    if (!allZero(b.substr(end, base + s.offset - end))) altered("padding");
    *parts[i] = b.substr(base + s.offset, s.size);
    if (hashBytes(*parts[i]) != s.hash) altered(fmt::format("section '{}'", s.name).c_str());
    end = base + s.offset + s.size;
  }
  if (end != total) throw UserError("engine has {} bytes that belong to no section", total - end);
  return image;
}

}  // namespace rutter::runtime
