#pragma once
// Messages between host, supervisor, workers and candidates' processes: frames on a stream socket.
//   magic "RtrF" · version (u16) · type (u16) · bytes of JSON (u32) · CRC-32C of JSON and blob (u32) · bytes of blob
//   (u64) JSON · blob
#include <optional>
#include <string>

#include "tuner/record.h"

namespace rutter::tuner {

inline constexpr uint16_t kFrameVersion = 1;
enum class FrameType : uint16_t {
  kHello = 1,  ///< to a new process: what it is to do
  kReady,      ///< its answer
  kDecide,     ///< route -> kDecided
  kDecided,
  kBuild,  ///< route -> kBuilt, kLoaded, kSamples …, kEnd
  kBuilt,
  kKernels,  ///< newly emitted kernels (blob)
  kLoaded,
  kMeasure,  ///< engines on disk -> kSamples …, kEnd
  kSamples,
  kEnd,     ///< the outcome
  kSave,    ///< write an engine -> kEnd
  kStop,    ///< give up what runs now
  kEvent,   ///< supervisor to host: something for the listener
  kAnswer,  ///< host to supervisor: what its own strategy answers
  kError,   ///< an exception: {"kind", "text"}
  kTime,    ///< time kernels of the hottest layers -> kEnd
};

struct Frame {
  FrameType type = FrameType::kHello;
  Json body = Json::object();
  std::string blob;
};

/// DeviceError if the other end is gone.
void sendFrame(int fd, const Frame& f);
void sendFrame(int fd, FrameType type, Json body = Json::object(), std::string blob = {});

enum class Wait { kFrame, kTimeout, kClosed };
/// How far the other end is trusted.
struct Trust {
  uint64_t maxBlob = uint64_t(8) << 30;  ///< bytes
  double stall = 30;                     ///< seconds without a byte in the middle of a frame
};
/// Reads one frame, waiting at most `seconds` for it to begin (negative: for ever; 0: only what is there); what has
/// begun is read to its end. A frame of another version, with a wrong checksum, not JSON, too long, or that stalls
/// throws DeviceError. `alsoReadable` (or -1): returns kTimeout early if that descriptor has something to read.
Wait receiveFrame(int fd, double seconds, Frame& out, int alsoReadable = -1, const Trust& trust = {});

/// Sends an exception as a kError frame, by kind; rethrowError throws it again as what it was.
void sendException(int fd, const std::exception& e);
[[noreturn]] void rethrowError(const Json& body);

}  // namespace rutter::tuner
