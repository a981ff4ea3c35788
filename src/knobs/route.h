#pragma once
// Routes: assignments of values to knobs, for a whole model or for the layers that a scope names.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "knobs/registry.h"

namespace rutter::knobs {

/// What is wrong with a route or an expression. The names are stable: they are also in `--json` output (spec 1.3).
enum class RouteErrorKind {
  kEmptyInput,
  kNoExpressions,
  kUnbalancedBracket,
  kNoEquals,
  kUnknownKnob,
  kBadScope,
  kTextBeforeBracket,
  kTextAfterBracket,
  kOpenRange,
  kEmptyList,
  kDuplicateValue,
  kTypeWord,
  kInvalidValue,
  kDuplicateKnob,
};
/// "empty_input", "unknown_knob", …
std::string_view toString(RouteErrorKind kind);

class RouteError : public UserError {
 public:
  RouteError(RouteErrorKind kind, std::string token, size_t column, const std::string& text);
  const RouteErrorKind kind;
  const size_t column;      ///< of the token's first byte (of the bracket, for unbalanced_bracket), from 1
  const std::string token;  ///< as written; empty for empty input
};

/// One `-knob@scope=value`.
struct Assignment {
  KnobId knob{};
  std::string value;  ///< canonical
  std::string scope;  ///< glob over the names of origin nodes, percent-decoded; empty: the whole model
  size_t column = 0;  ///< where it was written, for messages; takes no part in equality

  bool operator==(const Assignment& o) const { return knob == o.knob && value == o.value && scope == o.scope; }
};

/// An ordered list of assignments, no knob twice within one scope. Without assignments: the default route.
class Route {
 public:
  Route() : Route(Registry::builtin()) {}
  explicit Route(const Registry& registry) : registry_(&registry) {}
  Route(std::vector<Assignment> assignments, const Registry& registry);
  /// Parses `-knob=value …`; "" is the default route. RouteError for anything that spec 1.3 rejects, and for a list.
  static Route parse(std::string_view text, const Registry& registry = Registry::builtin());

  const std::vector<Assignment>& assignments() const { return assignments_; }
  const Registry& registry() const { return *registry_; }
  bool isDefault() const { return assignments_.empty(); }
  /// In the order of the assignments; parse(print()) is equal.
  std::string print() const;
  /// Same assignments in the same order.
  bool operator==(const Route& o) const { return assignments_ == o.assignments_; }
  Hash128 hash() const { return hashBytes(print()); }

 private:
  const Registry* registry_;
  std::vector<Assignment> assignments_;
};

/// Assignments of `route` that may lose accuracy (numerics class `lossy`).
std::vector<Assignment> lossyAssignments(const Route& route);
/// "-knob@scope=value" of one assignment, the scope percent-encoded.
std::string printAssignment(const Assignment& a, const Registry& registry);

/// Percent-codes the bytes that a scope may not hold: blanks, control characters, = | [ ] @ %.
std::string encodeScope(std::string_view glob);

}  // namespace rutter::knobs
