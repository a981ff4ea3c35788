#pragma once
// The modes of the command line that touch models and engines.
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"

namespace rutter::cli {

/// Does what the options ask for. False: done, but the result is a failure (an inaccurate engine, a search without a
/// winner); errors are thrown.
bool run(const Options& options, const std::vector<std::string>& argv, Console& console);

}  // namespace rutter::cli
