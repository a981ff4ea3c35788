#pragma once
/// \file types.h
/// Types that the builder and the runtime share: shapes, element types, enumerations, and the interfaces that a program
/// implements to receive messages, errors, times and memory requests.
///
/// Names and shapes are TensorRT 11's, so that programs port by changing a namespace. Every method is noexcept:
/// failures come back as null or false, and the reason goes to ILogger and IErrorRecorder. Classes are abstract; their
/// methods are only ever appended, so a program keeps working with a newer library.
#include <cstddef>
#include <cstdint>

/// Version of these headers' interfaces: factories refuse a program that was compiled against a newer one.
#define RUTTER_API_VERSION 3

namespace rutter {

using AsciiChar = char;

/// The extents of a tensor, outermost first.
class Dims {
 public:
  static constexpr int32_t MAX_DIMS = 8;
  int32_t nbDims = 0;        ///< rank; 0 is a scalar; -1 an invalid or unknown shape
  int64_t d[MAX_DIMS] = {};  ///< extents; -1 depends on the shapes set at run time
};

/// Element type. Numbers are TensorRT's up to kE8M0, Rutter's own after that.
enum class DataType : int32_t {
  kFLOAT = 0,  ///< IEEE binary32
  kHALF = 1,   ///< IEEE binary16
  kINT8 = 2,
  kINT32 = 3,
  kBOOL = 4,  ///< one byte, 0 or 1
  kUINT8 = 5,
  kFP8 = 6,  ///< e4m3fn
  kBF16 = 7,
  kINT64 = 8,
  kINT4 = 9,     ///< two in a byte, the first in the low half
  kFP4 = 10,     ///< e2m1, two in a byte
  kE8M0 = 11,    ///< power-of-two scale
  kDOUBLE = 12,  ///< IEEE binary64
  kINT16 = 13,
  kUINT16 = 14,
  kUINT32 = 15,
  kUINT64 = 16,
};

enum class TensorIOMode : int32_t { kNONE = 0, kINPUT = 1, kOUTPUT = 2 };
/// Where a tensor's memory must be.
enum class TensorLocation : int32_t { kDEVICE = 0, kHOST = 1 };
/// How logical axes lie in memory.
enum class TensorFormat : int32_t {
  kLINEAR = 0,  ///< row-major: the last axis is contiguous
  kHWC = 1,     ///< channels last: the second axis is contiguous
  kOTHER = 2,   ///< some other permutation; see the format's description
};
enum class OptProfileSelector : int32_t { kMIN = 0, kOPT = 1, kMAX = 2 };

enum class ErrorCode : int32_t {
  kSUCCESS = 0,
  kUNSPECIFIED_ERROR = 1,
  kINTERNAL_ERROR = 2,    ///< a bug in Rutter: please report it
  kINVALID_ARGUMENT = 3,  ///< the description says which, and what to do
  kINVALID_CONFIG = 4,
  kFAILED_ALLOCATION = 5,      ///< out of memory
  kFAILED_INITIALIZATION = 6,  ///< the machine refused something: a file, a thread, executable memory
  kFAILED_EXECUTION = 7,       ///< a layer failed; the description names it
  kFAILED_COMPUTATION = 8,
  kINVALID_STATE = 9,       ///< called before something that it needs
  kUNSUPPORTED_STATE = 10,  ///< not available in this version or on this target
};

/// How much layer information an engine keeps.
enum class ProfilingVerbosity : int32_t { kLAYER_NAMES_ONLY = 0, kNONE = 1, kDETAILED = 2 };
enum class LayerInformationFormat : int32_t { kONELINE = 0, kJSON = 1 };
/// For which shapes an execution context holds memory, and who provides it.
enum class ExecutionContextAllocationStrategy : int32_t {
  kSTATIC = 0,             ///< the context, for every profile, when it is created
  kON_PROFILE_CHANGE = 1,  ///< the context, for the profile in use
  kUSER_MANAGED = 2,       ///< the program, by IExecutionContext::setDeviceMemoryV2
};
enum class EngineStat : int32_t {
  kTOTAL_WEIGHTS_SIZE = 0,  ///< bytes of the weights section
};

/// Receives messages. Implemented by the program; called from several threads, must outlive what it was given to.
class ILogger {
 public:
  enum class Severity : int32_t { kINTERNAL_ERROR = 0, kERROR = 1, kWARNING = 2, kINFO = 3, kVERBOSE = 4 };
  /// \param msg one line, without a line end; valid during the call.
  virtual void log(Severity severity, AsciiChar const* msg) noexcept = 0;
  virtual ~ILogger() = default;
};

/// Receives errors. Implemented by the program; called from several threads.
class IErrorRecorder {
 public:
  using ErrorDesc = char const*;
  using RefCount = int32_t;
  virtual int32_t getNbErrors() const noexcept = 0;
  virtual ErrorCode getErrorCode(int32_t errorIdx) const noexcept = 0;
  virtual ErrorDesc getErrorDesc(int32_t errorIdx) const noexcept = 0;
  virtual bool hasOverflowed() const noexcept = 0;
  virtual void clear() noexcept = 0;
  /// \param desc one line; valid during the call. \return whether the error is fatal to the recorder.
  virtual bool reportError(ErrorCode val, ErrorDesc desc) noexcept = 0;
  /// Called when an object starts and stops using the recorder.
  virtual RefCount incRefCount() noexcept = 0;
  virtual RefCount decRefCount() noexcept = 0;
  virtual ~IErrorRecorder() = default;
};

/// Bytes made by the library: serialised engines, timing caches. The caller deletes it.
class IHostMemory {
 public:
  virtual void* data() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;  ///< bytes
  virtual DataType type() const noexcept = 0;     ///< kINT8 for bytes
  virtual ~IHostMemory() = default;
};

/// Receives the time of each layer. Implemented by the program.
class IProfiler {
 public:
  /// Called once a layer and run, in execution order. \param ms milliseconds.
  virtual void reportLayerTime(char const* layerName, float ms) noexcept = 0;
  virtual ~IProfiler() = default;
};

/// Where seek() counts from.
enum class SeekPosition : int32_t { kSET = 0, kCUR = 1, kEND = 2 };

class IQueue;

/// Supplies an engine's bytes. Implemented by the program.
class IStreamReaderV2 {
 public:
  /// \return bytes read into `destination`, at most `nbBytes`; 0 at the end; -1 on failure. `stream` is null on a CPU.
  virtual int64_t read(void* destination, int64_t nbBytes, IQueue* stream) noexcept = 0;
  virtual bool seek(int64_t offset, SeekPosition where) noexcept = 0;
  virtual ~IStreamReaderV2() = default;
};
/// Takes an engine's bytes. Implemented by the program.
class IStreamWriter {
 public:
  /// \return bytes taken; less than `nbBytes` stops the writing with an error.
  virtual int64_t write(void const* data, int64_t nbBytes) noexcept = 0;
  virtual ~IStreamWriter() = default;
};

/// Supplies memory for outputs whose size is not known in advance. Implemented by the program.
class IOutputAllocator {
 public:
  /// \param currentMemory what setTensorAddress or the last call gave, or null. \param size bytes. \param alignment
  /// bytes.
  /// \return memory for the output, or null to fail the run.
  virtual void* reallocateOutputAsync(char const* tensorName, void* currentMemory, uint64_t size, uint64_t alignment,
                                      IQueue* stream) noexcept = 0;
  /// The output's extents, before the run that fills it begins.
  virtual void notifyShape(char const* tensorName, Dims const& dims) noexcept = 0;
  virtual ~IOutputAllocator() = default;
};

}  // namespace rutter

/// Rutter's version, "major.minor.patch", of the library that runs engines.
extern "C" char const* rutterRuntimeVersion() noexcept;
