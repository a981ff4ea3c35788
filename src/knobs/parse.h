#pragma once
// The shared grammar of routes and expressions (spec 1.1 to 1.3). Routes and expressions are what users see of it.
#include <string>
#include <string_view>
#include <vector>

#include "knobs/registry.h"

namespace rutter::knobs {

/// `-knob@scope=value` or `-knob@scope=[value|value]`.
struct Token {
  KnobId knob{};
  std::string scope;                ///< percent-decoded, empty for the whole model
  std::vector<std::string> values;  ///< canonical; at least one
  bool variable = false;            ///< written as a list
  size_t column = 0;
  std::string text;
};

/// Cuts `text` at blanks outside brackets, then checks token after token; the first error is thrown as a RouteError.
/// `lists`: whether `[a|b]` is allowed.
std::vector<Token> parseTokens(std::string_view text, const Registry& registry, bool lists);

}  // namespace rutter::knobs
