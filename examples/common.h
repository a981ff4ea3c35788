#pragma once
// What the examples share: a logger that prints warnings and errors, sizes of tensors, inputs to run with.
#include <rutter/runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

class PrintingLogger final : public rutter::ILogger {
 public:
  void log(Severity severity, const char* msg) noexcept override {
    if (severity <= Severity::kWARNING) std::fprintf(stderr, "%s\n", msg);
  }
};

inline void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s failed\n", what);  // the logger has told why
  std::exit(1);
}

/// "1x3x320x320" as extents.
inline rutter::Dims parseDims(const char* text) {
  rutter::Dims dims;
  for (char* end; *text && dims.nbDims < rutter::Dims::MAX_DIMS; text = *end ? end + 1 : end)
    if (dims.d[dims.nbDims++] = std::strtoll(text, &end, 10); end == text) require(false, "reading a shape");
  return dims;
}

inline std::size_t bytesOf(const rutter::Dims& dims, rutter::DataType type) {
  using rutter::DataType;
  std::size_t bytes = 4;
  switch (type) {
    case DataType::kINT64:
    case DataType::kUINT64:
    case DataType::kDOUBLE:
      bytes = 8;
      break;
    case DataType::kHALF:
    case DataType::kBF16:
    case DataType::kINT16:
    case DataType::kUINT16:
      bytes = 2;
      break;
    case DataType::kINT8:
    case DataType::kUINT8:
    case DataType::kBOOL:
      bytes = 1;
      break;
    default:
      break;
  }
  for (int i = 0; i < dims.nbDims; i++) bytes *= static_cast<std::size_t>(dims.d[i]);
  return bytes;
}

/// Buffers for every input and output of an engine, set in its context. Float inputs hold a ramp over [-1, 1], integers
/// ones. Inputs have the shapes that were set; outputs follow from them.
class Buffers {
 public:
  Buffers(const rutter::IEngine& engine, rutter::IExecutionContext& context) : engine_(engine) {
    require(context.allInputDimensionsSpecified(), "finding the shapes of all inputs (give NAME:1x3x320x320, say)");
    for (int i = 0; i < engine.getNbIOTensors(); i++) {
      const char* name = engine.getIOTensorName(i);
      const auto type = engine.getTensorDataType(name);
      data_.emplace_back(bytesOf(context.getTensorShape(name), type));
      auto& bytes = data_.back();
      if (engine.getTensorIOMode(name) == rutter::TensorIOMode::kINPUT) {
        if (type == rutter::DataType::kFLOAT) {
          const std::size_t count = bytes.size() / 4;
          for (std::size_t k = 0; k < count; k++) {
            const float x = 2 * static_cast<float>(k % 1000) / 999 - 1;
            std::memcpy(&bytes[4 * k], &x, 4);
          }
        } else {
          const std::size_t element = bytesOf({}, type);
          for (std::size_t k = 0; k < bytes.size(); k += element) bytes[k] = 1;
        }
      }
      require(context.setTensorAddress(name, bytes.data()), "setting an address");
    }
  }
  /// Name, shape and first values of each output.
  void printOutputs(const rutter::IExecutionContext& context) const {
    for (int i = 0; i < engine_.getNbIOTensors(); i++) {
      const char* name = engine_.getIOTensorName(i);
      if (engine_.getTensorIOMode(name) != rutter::TensorIOMode::kOUTPUT) continue;
      const auto dims = context.getTensorShape(name);
      std::printf("%s [", name);
      for (int k = 0; k < dims.nbDims; k++) std::printf("%s%lld", k ? "x" : "", static_cast<long long>(dims.d[k]));
      std::printf("]");
      if (engine_.getTensorDataType(name) == rutter::DataType::kFLOAT)
        for (std::size_t k = 0; k < 5 && 4 * k < data_[i].size(); k++) {
          float x;
          std::memcpy(&x, &data_[i][4 * k], 4);
          std::printf(" %g", x);
        }
      std::printf("\n");
    }
  }

 private:
  const rutter::IEngine& engine_;
  std::vector<std::vector<unsigned char>> data_;
};
