#pragma once
// Searches: the options as the tuner wants them, its events as lines, its result as a summary.
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"
#include "tuner/tune.h"

namespace rutter::cli {

/// What --continue goes on with: the recorded command line with what the new one (`args`, without the program's name)
/// adds. `args` becomes that line. UserError if there is no such record.
Options resumedOptions(const Options& given, std::vector<std::string>& args);

/// Runs the search that the options ask for; `args` is their command line. True if there is a winner, the default
/// included; `enginePath` then says where it was saved ("" if nowhere).
bool runTuning(const Options& options, const std::string& program, const std::vector<std::string>& args,
               Console& console, std::string& enginePath);

/// Lines at the end of a search.
std::vector<std::string> tuningSummary(const tuner::TuneResult& r, const Options& o,
                                       const std::vector<std::string>& args);
/// The result of --json.
std::string tuningJson(const tuner::TuneResult& r);
/// "[3/60 search] 12.4 s, best 1.12x -gemm:tile_m=12, about 41 s left".
std::string progressLine(const tuner::Progress& p);

}  // namespace rutter::cli
