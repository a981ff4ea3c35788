#pragma once
// What a run leaves behind: layers, outputs, raw files, the JSON result.
#include <span>
#include <string>

#include "bindings.h"
#include "build.h"
#include "inference.h"

namespace rutter::cli {

/// Layer information as JSON (spec section 8), as detailed as the engine was built to keep (--profilingVerbosity).
std::string layerInfoJson(const Session& s, const IExecutionContext* context);
/// The same as lines for the log.
std::vector<std::string> layerInfoLines(const Session& s, const IExecutionContext* context);
std::vector<std::string> profileShapeLines(const IEngine& engine);

std::string outputsJson(const NamedTensors& outputs);
std::vector<std::string> outputLines(const NamedTensors& outputs);
/// `<name>.<input|output>.<d.d.d>.<type>.raw` in the working folder; slashes in names become underscores.
void dumpRaw(const NamedTensors& inputs, const NamedTensors& outputs);

/// The result of --json.
std::string resultJson(const Session& s, const Options& o, const Trace* trace, const AccuracyResult& accuracy);

}  // namespace rutter::cli
