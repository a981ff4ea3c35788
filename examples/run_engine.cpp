// Runs a saved engine at its first profile's opt shapes. Links librutter_runtime only: no LLVM, no compiler.
// run_engine FILE.engine
#include <rutter/runtime.h>

#include <memory>

#include "common.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_engine FILE.engine\n");
    return 1;
  }
  PrintingLogger logger;
  std::unique_ptr<rutter::IRuntime> runtime{rutter::createInferRuntime(logger)};
  std::unique_ptr<rutter::IEngine> engine{runtime->deserializeFile(argv[1])};  // mapped, not copied
  require(engine != nullptr, "loading the engine");
  std::unique_ptr<rutter::IExecutionContext> context{engine->createExecutionContext()};
  require(context != nullptr, "creating a context");
  for (int i = 0; i < engine->getNbIOTensors(); i++) {
    const char* name = engine->getIOTensorName(i);
    if (engine->getTensorIOMode(name) != rutter::TensorIOMode::kINPUT) continue;
    const auto opt = engine->getProfileShape(name, 0, rutter::OptProfileSelector::kOPT);
    require(context->setInputShape(name, opt), "setting a shape");
  }
  Buffers buffers(*engine, *context);
  require(context->enqueueV3(nullptr), "running");
  buffers.printOutputs(*context);
}
