#pragma once
// --dryRun: the routes that a search would try, in its own order and numbering (spec section 3).
#include "cli/console.h"
#include "cli/options.h"
#include "knobs/expression.h"

namespace rutter::cli {

/// The expression that the options give, from the flag or its file. RouteError, UserError.
knobs::Expression readExpression(const TuningOptions& t);

/// More routes than this are listed only with --yes.
inline constexpr uint64_t kAskAbove = 1'000'000;

/// Lists the routes; with --json one {"index","route"} a line on standard output.
/// UserError if there are more than kAskAbove and --yes is not given.
void listRoutes(const knobs::Expression& e, const TuningOptions& t, Console& console);

}  // namespace rutter::cli
