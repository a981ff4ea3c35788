#pragma once
// How many of an expression's routes are different engines for a model: decisions only, nothing is emitted.
#include "cli/console.h"
#include "cli/options.h"
#include "knobs/expression.h"
#include "onnx/import.h"

namespace rutter::cli {

struct Distinct {
  uint64_t engines = 0;   ///< different decisions seen
  uint64_t decided = 0;   ///< routes looked at
  bool complete = false;  ///< all routes were looked at
  bool untimed = false;   ///< the build would time kernels (levels 4 and 5), the count did not
  std::string problem;    ///< why nothing could be decided; empty if it could
};
/// Decides routes in their order until all are done or `seconds` have passed.
Distinct countDistinct(const frontend::Model& model, const knobs::Expression& e, const Options& o, double seconds);
/// The lines about it, with an estimate of the search's time.
std::vector<std::string> distinctLines(const Distinct& d);

}  // namespace rutter::cli
