// The ONNX reader on any bytes: a model or a UserError, never more.
#include <cstddef>
#include <cstdint>
#include <span>

#include "onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    auto model = rutter::frontend::importBytes(std::as_bytes(std::span(data, size)), {});
    model.graph->verify();
  } catch (const rutter::UserError&) {
  }
  return 0;
}
