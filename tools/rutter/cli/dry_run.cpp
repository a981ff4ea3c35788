#include "cli/dry_run.h"

#include "base/error.h"
#include "cli/exports.h"

namespace rutter::cli {

knobs::Expression readExpression(const TuningOptions& t) {
  if (t.expressionFile) return knobs::Expression::parse(knobs::readExpressionFile(*t.expressionFile));
  RUTTER_CHECK(t.expression.has_value(), "no expression");
  return knobs::Expression::parse(*t.expression);
}

void listRoutes(const knobs::Expression& e, const TuningOptions& t, Console& console) {
  const bool full = t.search == "full";
  const knobs::BigCount count = full ? e.fullCount() : knobs::BigCount(e.fastCount());
  if (knobs::BigCount(kAskAbove) < count && !t.yes)
    throw UserError("--dryRun would list {} routes; narrow the expression, or give --yes", count.print());
  console.info(fmt::format("{} build routes would be tried:", count.print()));
  // With --yes there may be more than 2^64 routes; nobody waits for their end, but the order is right.
  const uint64_t n = count.small().value_or(UINT64_MAX);
  for (uint64_t i = 0; i < n; i++) {
    const auto route = (full ? e.full(i) : e.fast(i)).print();
    if (console.json())
      console.result(fmt::format("{{\"index\":{},\"route\":{}}}", i, jsonString(route)));
    else
      console.info(fmt::format("[{}]:{}", i, route));
  }
  if (t.search == "mixed")
    console.info(fmt::format("a second phase would vary the knobs that helped together: at most {} further routes",
                             e.mixedBound().print()));
}

}  // namespace rutter::cli
