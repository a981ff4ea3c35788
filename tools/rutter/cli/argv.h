#pragma once
// Command lines that outlive their working folder: the record of a search keeps them for --continue.
#include <string>
#include <vector>

#include "cli/flags.h"
#include "tuner/tune.h"

namespace rutter::cli {

/// `args` (without the program's name) with every path made absolute against `folder`, whether the file exists or not.
/// Names with colons and a `~` are read as the flags themselves read them.
std::vector<std::string> absoluteArgs(const std::vector<std::string>& args, const std::string& folder);

/// The command line that --continue goes on with: the recorded one, but with the expression, search and budget of the
/// last session, unless `now` (without the program's name) brings its own. The budget is one, whether --tune or
/// --tuningTimeOut says it.
std::vector<std::string> continuedArgs(const tuner::LastSearch& last, const std::vector<std::string>& now);

/// The command line of one build that gives the winner of a search again: of `args` (without the program's name)
/// what shapes the build, as it was written, then the route ("": the default) and, at levels that time, the times.
std::vector<std::string> sameEngineArgs(const std::vector<std::string>& args, const std::string& route,
                                        const std::string& timingCacheFile);

}  // namespace rutter::cli
