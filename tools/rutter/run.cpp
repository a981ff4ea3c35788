#include "run.h"

#include "base/error.h"
#include "cli/dry_run.h"
#include "onnx/import.h"

namespace rutter::cli {

bool run(const Options& o, const std::vector<std::string>& argv, Console& console) {
  console.lines(echoOptions(o));
  if (o.tuning.dryRun) {
    auto expression = readExpression(o.tuning);
    frontend::importFile(o.model.onnx);
    listRoutes(expression, o.tuning, console);
    return true;
  }
  throw UserError("building and loading engines is not part of this version yet; --dryRun and --helpBuildRoute are");
}

}  // namespace rutter::cli
