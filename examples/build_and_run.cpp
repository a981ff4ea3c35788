// ONNX in, engine out, run, print. build_and_run MODEL.onnx [INPUT:1x3x320x320 ...] [--save=FILE]
// Inputs whose shape is open in the model need one on the command line.
#include <rutter/rutter.h>

#include <fstream>
#include <memory>

#include "common.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: build_and_run MODEL.onnx [INPUT:1x3x320x320 ...] [--save=FILE]\n");
    return 1;
  }
  PrintingLogger logger;
  std::unique_ptr<rutter::IBuilder> builder{rutter::createInferBuilder(logger)};
  require(builder != nullptr, "creating a builder");
  std::unique_ptr<rutter::INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<rutter::onnx::IParser> parser{rutter::onnx::createParser(*network, logger)};
  require(parser->parseFromFile(argv[1], 2), "parsing");

  std::unique_ptr<rutter::IBuilderConfig> config{builder->createBuilderConfig()};
  rutter::IOptimizationProfile* profile = builder->createOptimizationProfile();  // the builder's
  std::vector<std::pair<std::string, rutter::Dims>> shapes;
  std::string save;
  for (int i = 2; i < argc; i++) {
    const std::string arg = argv[i];
    const auto colon = arg.rfind(':');
    if (arg.rfind("--save=", 0) == 0) {
      save = arg.substr(7);
    } else if (colon != std::string::npos) {
      shapes.emplace_back(arg.substr(0, colon), parseDims(arg.c_str() + colon + 1));
      for (auto select :
           {rutter::OptProfileSelector::kMIN, rutter::OptProfileSelector::kOPT, rutter::OptProfileSelector::kMAX})
        require(profile->setDimensions(shapes.back().first.c_str(), select, shapes.back().second), "setting a profile");
    } else {
      require(false, "reading the command line");
    }
  }
  if (!shapes.empty()) require(config->addOptimizationProfile(profile) >= 0, "adding the profile");

  std::unique_ptr<rutter::IHostMemory> bytes{builder->buildSerializedNetwork(*network, *config)};
  require(bytes != nullptr, "building");
  if (!save.empty()) {
    std::ofstream file(save, std::ios::binary);
    require(bool(file.write(static_cast<const char*>(bytes->data()), std::streamsize(bytes->size())).flush()),
            "saving");
  }

  std::unique_ptr<rutter::IRuntime> runtime{rutter::createInferRuntime(logger)};
  std::unique_ptr<rutter::IEngine> engine{runtime->deserializeEngine(bytes->data(), bytes->size())};
  require(engine != nullptr, "loading the engine");
  std::unique_ptr<rutter::IExecutionContext> context{engine->createExecutionContext()};
  require(context != nullptr, "creating a context");
  for (const auto& [name, dims] : shapes) require(context->setInputShape(name.c_str(), dims), "setting a shape");
  Buffers buffers(*engine, *context);
  require(context->enqueueV3(nullptr), "running");  // without a queue: returns when it is done
  std::printf("%d layers, %zu bytes of engine\n", engine->getNbLayers(), bytes->size());
  buffers.printOutputs(*context);
}
