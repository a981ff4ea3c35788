#include "runtime/engine_split.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/ints.h"

namespace rutter::runtime {
namespace {

constexpr char kMagic[8] = {'R', 'U', 'T', 'S', 'P', 'L', 'I', 'T'};
constexpr uint64_t kPage = 4096;

struct Piece {
  int64_t offset, size, at;  // in the section; where its bytes lie in the base's section, or behind the head
  bool own;
};
[[noreturn]] void torn(const std::string& path) {
  throw UserError("the split engine '{}' is torn", path);
}

class PlainFile {
 public:
  explicit PlainFile(const std::string& path) : path_(path) {
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd_ < 0) fail();
  }
  ~PlainFile() {
    if (fd_ >= 0) close(fd_);
  }
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;
  void write(std::string_view b) {
    at_ += b.size();
    if (!writeAll(fd_, b)) fail();
  }
  void padTo(uint64_t at) { write(std::string(at - at_, '\0')); }
  void finish() {
    const int fd = std::exchange(fd_, -1);
    if (close(fd) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const { failWriting(path_); }
  std::string path_;
  int fd_ = -1;
  uint64_t at_ = 0;
};

}  // namespace

WeightIndex::WeightIndex(const EngineParts& parts, std::string path)
    : path_(std::move(path)), hash_(hashWeights(parts)) {
  for (const WeightChunk& c : parts.weights) {
    order_.emplace_back(c.offset, c.key);
    if (c.key != Hash128{}) chunks_.try_emplace(c.key, c.offset, int64_t(c.data.size()));
  }
}
int64_t WeightIndex::find(const WeightChunk& c) const {
  auto it = chunks_.find(c.key);
  return it != chunks_.end() && it->second.second == int64_t(c.data.size()) ? it->second.first : -1;
}
bool WeightIndex::sameSection(const EngineParts& parts) const {
  if (parts.weights.size() != order_.size()) return false;
  for (size_t i = 0; i < order_.size(); i++) {
    const WeightChunk& c = parts.weights[i];
    if (c.key == Hash128{} || order_[i] != std::pair(c.offset, c.key) || find(c) < 0) return false;
  }
  return true;
}

Hash128 writeSplitEngine(const EngineParts& parts, const WeightIndex& base, const std::string& path) {
  const std::string head = engineHead(parts, base.sameSection(parts) ? base.sectionHash() : hashWeights(parts));
  std::vector<Piece> pieces;
  int64_t own = 0;
  for (const WeightChunk& c : parts.weights) {
    const int64_t there = c.data.size() >= kPage ? base.find(c) : -1;
    pieces.push_back({c.offset, int64_t(c.data.size()), there < 0 ? own : there, there < 0});
    if (there < 0) own = roundUp(own + int64_t(c.data.size()), 64);
  }
  ByteWriter w;
  w.put<uint64_t>(head.size());
  w.put<uint64_t>(weightsBytes(parts));
  w.put(base.path());
  w.put<uint64_t>(pieces.size());
  for (const Piece& p : pieces) {
    w.put(p.offset);
    w.put(p.size);
    w.put(p.at);
    w.put(p.own);
  }
  const std::string table = w.take();
  const Hash128 check = hashBytes(table);
  const uint64_t size = table.size(), headAt = roundUp(32 + size, kPage), ownAt = roundUp(headAt + head.size(), kPage);
  std::string front(kMagic, sizeof kMagic);
  front.append(reinterpret_cast<const char*>(&check.lo), 8);
  front.append(reinterpret_cast<const char*>(&check.hi), 8);
  front.append(reinterpret_cast<const char*>(&size), 8);
  front += table;
  front.resize(headAt, '\0');
  front += head;
  front.resize(ownAt, '\0');
  PlainFile f(path);
  f.write(front);
  for (size_t i = 0; i < pieces.size(); i++) {
    if (!pieces[i].own) continue;
    f.padTo(ownAt + uint64_t(pieces[i].at));
    f.write(parts.weights[i].data);
  }
  f.finish();
  return engineIdentity(head);
}

EngineFiles openEngineFiles(const std::string& path,
                            const std::function<std::shared_ptr<const Blob>(const std::string&)>& map) {
  EngineFiles e;
  e.file = map(path);
  const std::string_view b = e.file->bytes();
  if (!b.starts_with(std::string_view(kMagic, sizeof kMagic))) return e;
  if (b.size() < 32) torn(path);
  Hash128 check;
  uint64_t size;
  std::memcpy(&check.lo, b.data() + 8, 8);
  std::memcpy(&check.hi, b.data() + 16, 8);
  std::memcpy(&size, b.data() + 24, 8);
  if (size > b.size() - 32 || hashBytes(b.substr(32, size)) != check) torn(path);
  ByteReader r(b.substr(32, size));
  // The checksum is against damage; whoever wrote the file may have made any table.
  const uint64_t head = r.get<uint64_t>(), headAt = roundUp(32 + size, kPage);
  if (headAt > b.size() || head > b.size() - headAt) torn(path);
  const uint64_t ownAt = roundUp(headAt + head, kPage);
  const uint64_t section = r.get<uint64_t>();
  e.base = map(std::string(r.getString()));
  if (ownAt > b.size()) torn(path);
  e.head = b.substr(headAt, head);
  const std::string_view own = b.substr(ownAt), theirs = weightsSection(e.base->bytes());
  uint64_t end = 0;  // of the pieces so far, which lie in order, with little between them
  for (uint64_t n = r.get<uint64_t>(); n > 0; n--) {
    Piece p;
    p.offset = r.get<int64_t>();
    p.size = r.get<int64_t>();
    p.at = r.get<int64_t>();
    p.own = r.get<uint8_t>() != 0;
    const std::string_view source = p.own ? own : theirs;
    if (p.at < 0 || p.size < 0 || uint64_t(p.at) > source.size() || uint64_t(p.size) > source.size() - uint64_t(p.at))
      torn(path);
    if (p.offset < 0 || p.offset % 64 || uint64_t(p.offset) < end || uint64_t(p.offset) - end > kPage) torn(path);
    end = uint64_t(p.offset) + uint64_t(p.size);
    e.weights.push_back({p.offset, source.substr(size_t(p.at), size_t(p.size))});
  }
  if (section != end || !r.atEnd()) torn(path);
  e.weightsBytes = int64_t(section);
  return e;
}

EngineImage readEngineFiles(const EngineFiles& f) {
  return f.split() ? readEngine(f.head, f.weights, f.weightsBytes) : readEngine(f.file->bytes());
}
std::shared_ptr<const Engine> loadEngineFiles(const EngineFiles& f, const LoadOptions& options) {
  if (!f.split()) return Engine::load(f.file, options);
  return Engine::load(f.head, f.weights, f.weightsBytes, {f.file, f.base}, options);
}

std::string wholeEngine(const EngineFiles& f) {
  if (!f.split()) return std::string(f.file->bytes());
  std::string out(f.head);
  const size_t start = out.size();
  out.resize(start + size_t(f.weightsBytes), '\0');
  for (const WeightChunk& p : f.weights) {
    RUTTER_CHECK(p.offset >= 0 && p.offset + int64_t(p.data.size()) <= f.weightsBytes, "weights outside their section");
    std::memcpy(out.data() + start + p.offset, p.data.data(), p.data.size());
  }
  return out;
}

}  // namespace rutter::runtime
