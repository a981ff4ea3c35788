#pragma once
// From the options to an engine that is ready to run: compiled from a model, or loaded from a file.
#include <rutter/runtime.h>

#include <map>
#include <memory>
#include <string>

#include "bindings.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/shapes.h"
#include "host.h"
#include "onnx/import.h"

namespace rutter::cli {

/// What a command works with. Members are destroyed in reverse order: the engine before its runtime.
struct Session {
  explicit Session(Console& c) : console(c), logger(c) {}
  Console& console;
  HostLogger logger;
  Errors errors;
  std::unique_ptr<IRuntime> runtime;
  std::unique_ptr<IEngine> engine;
  ShapeMap shapes;                                ///< to run, every input
  std::map<std::string, tuner::InputRule> rules;  ///< for inputs that are made up; empty for a loaded engine
};

/// Inputs of a model as its file declares them.
std::vector<InputInfo> modelInputs(const ir::Graph& g);
/// Reads the model and says what it is.
frontend::Model readModel(const std::string& path, Console& console);

struct FormatTensor {
  std::string name;
  ir::DType dtype;
  int rank;
};
/// The tensors that --inputIOFormats or --outputIOFormats (`flag`) lays channels last. UserError for a count, a type or
/// a rank that does not fit.
std::vector<std::string> channelsLast(const std::vector<FormatTensor>& tensors, const std::vector<std::string>& formats,
                                      std::string_view flag);
/// The same for both flags and a model that was read.
std::vector<std::string> channelsLastTensors(const ir::Graph& g, const Options& o);

/// Builds or loads, saves if asked for, and logs times and sizes. Sets all of the session.
/// UserError if --tempdir is no folder to write to. In every mode, whether it needs the folder or not.
void checkTempdir(const Options& o);
void prepareEngine(Session& s, const Options& o);
/// Loads an engine file into the session.
void loadEngine(Session& s, const std::string& path, const Options& o);

}  // namespace rutter::cli
