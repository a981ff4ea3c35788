#include "tuner/frames.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "tuner/measure.h"

namespace rutter::tuner {
namespace {

constexpr char kMagic[4] = {'R', 't', 'r', 'F'};
// A candidate's process is not to be trusted with our memory.
constexpr uint32_t kMaxJson = 256u << 20;

struct Header {
  char magic[4];
  uint16_t version, type;
  uint32_t json, crc;
  uint64_t blob;
};
static_assert(sizeof(Header) == 24);

uint32_t checksum(const std::string& json, const std::string& blob) {
  // The blob's own consumer checks it (kernels and models carry their hashes): here only its ends.
  const size_t n = std::min<size_t>(blob.size(), 4096);
  return crc32c(json + blob.substr(0, n) + blob.substr(blob.size() - n));
}

void sendAll(int fd, const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes) {
    const ssize_t n = ::send(fd, p, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd f{fd, POLLOUT, 0};
      ::poll(&f, 1, 1000);
      continue;
    }
    if (n < 0) throw DeviceError("the other process is gone ({})", strerror(errno));
    p += n;
    bytes -= size_t(n);
  }
}

}  // namespace

void sendFrame(int fd, const Frame& f) {
  const std::string json = f.body.dump(-1, ' ', false, Json::error_handler_t::replace);
  Header h{};
  std::memcpy(h.magic, kMagic, 4);
  h.version = kFrameVersion;
  h.type = uint16_t(f.type);
  h.json = uint32_t(json.size());
  h.blob = f.blob.size();
  h.crc = checksum(json, f.blob);
  std::string head(reinterpret_cast<const char*>(&h), sizeof h);
  head += json;
  sendAll(fd, head.data(), head.size());
  sendAll(fd, f.blob.data(), f.blob.size());
}

void sendFrame(int fd, FrameType type, Json body, std::string blob) {
  sendFrame(fd, Frame{type, std::move(body), std::move(blob)});
}

Wait receiveFrame(int fd, double seconds, Frame& out, int alsoReadable, const Trust& trust) {
  SteadyClock clock;
  double deadline = seconds < 0 ? INFINITY : clock.now() + seconds;
  bool started = false;
  auto read = [&](void* to, size_t bytes) -> Wait {
    char* p = static_cast<char*>(to);
    while (bytes) {
      const double left = deadline - clock.now();
      pollfd fds[2] = {{fd, POLLIN, 0}, {alsoReadable, POLLIN, 0}};
      const int ms = std::isinf(deadline) ? -1 : std::max(0, int(std::ceil(left * 1000)));
      const int ready = ::poll(fds, !started && alsoReadable >= 0 ? 2 : 1, ms);
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0) throw DeviceError("poll: {}", strerror(errno));
      if (fds[0].revents == 0) {
        // Half a frame cannot be given back: the rest is waited for.
        if (started) throw DeviceError("half a message");
        return Wait::kTimeout;
      }
      const ssize_t n = ::recv(fd, p, bytes, MSG_DONTWAIT);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return Wait::kClosed;
      started = true;
      deadline = clock.now() + trust.stall;
      p += n;
      bytes -= size_t(n);
    }
    return Wait::kFrame;
  };
  Header h;
  if (Wait w = read(&h, sizeof h); w != Wait::kFrame) return w;
  if (std::memcmp(h.magic, kMagic, 4) != 0) throw DeviceError("a message of another program");
  if (h.version != kFrameVersion) throw DeviceError("a message of version {}, wanted {}", h.version, kFrameVersion);
  if (h.json > kMaxJson || h.blob > trust.maxBlob) throw DeviceError("a message that is too long");
  std::string json(h.json, 0);
  out.blob.assign(h.blob, 0);
  if (Wait w = read(json.data(), json.size()); w != Wait::kFrame) return w;
  if (Wait w = read(out.blob.data(), out.blob.size()); w != Wait::kFrame) return w;
  if (checksum(json, out.blob) != h.crc) throw DeviceError("a message with a wrong checksum");
  out.type = FrameType(h.type);
  out.body = Json::parse(json, nullptr, false);
  if (out.body.is_discarded()) throw DeviceError("a message that is not JSON");
  return Wait::kFrame;
}

void sendException(int fd, const std::exception& e) {
  const char* kind = dynamic_cast<const UserError*>(&e)       ? "user"
                     : dynamic_cast<const DiskFullError*>(&e) ? "disk"
                     : dynamic_cast<const DeviceError*>(&e)   ? "device"
                                                              : "internal";
  sendFrame(fd, FrameType::kError, {{"kind", kind}, {"text", e.what()}});
}

void rethrowError(const Json& body) {
  const std::string text = body.value("text", "unknown error"), kind = body.value("kind", "internal");
  if (kind == "user") throw UserError(text);
  if (kind == "disk") throw DiskFullError(text);
  if (kind == "device") throw DeviceError(text);
  throw DeviceError("{}", text);  // an InternalError's text already says how to report it
}

}  // namespace rutter::tuner
