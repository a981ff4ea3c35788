// A tuner of one's own: hill climbing over knobs, one at a time. custom_tuner MODEL.onnx INPUT:SHAPE SECONDS [KNOB ...]
// It uses three calls: getAllBuildRoutes() says what there is, setBuildRoute() chooses, getBuildRoute() says what was
// chosen. Unlike `rutter --tune` it checks no accuracy and a crash would be its own: see docs/tuning.md.
#include <rutter/rutter.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <regex>

#include "common.h"

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: custom_tuner MODEL.onnx INPUT:SHAPE SECONDS [KNOB ...]\n"), 1;
  const double until = seconds() + std::atof(argv[3]);
  const std::vector<std::string> wanted(argv + 4, argv + argc);
  const std::string arg = argv[2], input = arg.substr(0, arg.rfind(':'));
  const auto dims = parseDims(arg.c_str() + arg.rfind(':') + 1);

  PrintingLogger logger;
  std::unique_ptr<rutter::IBuilder> builder{rutter::createInferBuilder(logger)};
  std::unique_ptr<rutter::INetworkDefinition> network{builder->createNetworkV2(0)};
  std::unique_ptr<rutter::onnx::IParser> parser{rutter::onnx::createParser(*network, logger)};
  std::unique_ptr<rutter::IBuilderConfig> config{builder->createBuilderConfig()};
  require(parser->parseFromFile(argv[1], 2), "parsing");
  auto* profile = builder->createOptimizationProfile();
  for (auto s : {rutter::OptProfileSelector::kMIN, rutter::OptProfileSelector::kOPT, rutter::OptProfileSelector::kMAX})
    require(profile->setDimensions(input.c_str(), s, dims), "setting a profile");
  require(config->addOptimizationProfile(profile) >= 0, "adding the profile");

  // The fastest of many runs, in milliseconds; a route that does not build is infinitely slow.
  auto measure = [&](const std::string& route) {
    if (!config->setBuildRoute(route.c_str())) return 1e30;
    std::unique_ptr<rutter::IEngine> engine{builder->buildEngineWithConfig(*network, *config)};
    std::unique_ptr<rutter::IExecutionContext> context{engine ? engine->createExecutionContext() : nullptr};
    if (!context) return 1e30;
    Buffers buffers(*engine, *context);  // the profile leaves one shape
    double fastest = 1e30;
    for (double begin = seconds(), run = begin; run < begin + 0.2; run = seconds()) {
      require(context->enqueueV3(nullptr), "running");
      fastest = std::min(fastest, (seconds() - run) * 1e3);
    }
    return fastest;
  };

  std::string route;
  double best = measure(route);
  require(best < 1e30, "building the default");
  std::printf("default: %.3f ms\n", best);
  // "allowed_values": "-gemm:tile_m=[auto|1|2]" is an expression in which one alternative has to be chosen.
  const std::string database = config->getAllBuildRoutes();
  const std::regex knob(R"re("allowed_values": "(-[a-z_:0-9]+)=\[([^\]]+)\]")re"), value(R"([^|]+)");
  for (std::sregex_iterator k(database.begin(), database.end(), knob), end; k != end && seconds() < until; ++k) {
    const std::string name = (*k)[1], values = (*k)[2];
    const std::string before = route.empty() ? "" : route + " ";  // a route names a knob once
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    for (std::sregex_iterator v(values.begin(), values.end(), value); v != end && seconds() < until; ++v) {
      const double ms = measure(before + name + "=" + v->str());
      if (ms > 0.98 * best) continue;  // smaller gains drown in noise
      best = ms;
      route = config->getBuildRoute();
      std::printf("%.3f ms  %s\n", best, route.c_str());
    }
  }
  // Once more, one after the other: what disturbed the first measurement is no gain.
  const double base = measure(""), again = measure(route);
  std::printf("best: %.3f ms, %.2fx, route \"%s\"\n", again, base / again, route.c_str());
}
