#include "knobs/route.h"

#include <array>

#include "knobs/parse.h"

namespace rutter::knobs {

std::string_view toString(RouteErrorKind kind) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "empty_input",     "no_expressions",      "unbalanced_bracket", "no_equals",     "unknown_knob",
      "bad_scope",       "text_before_bracket", "text_after_bracket", "open_range",    "empty_list",
      "duplicate_value", "type_word",           "invalid_value",      "duplicate_knob"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {
// One line whatever the input holds, and not a megabyte long.
std::string printable(std::string_view s) {
  std::string out;
  for (unsigned char c : s.substr(0, 200)) {
    if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else
      out += static_cast<char>(c);
  }
  return s.size() > 200 ? out + "…" : out;
}
}  // namespace

RouteError::RouteError(RouteErrorKind kind, std::string token, size_t column, const std::string& text)
    : UserError("build route: {}: {} (column {}{})", toString(kind), printable(text), column,
                token.empty() ? "" : fmt::format(", token '{}'", printable(token))),
      kind(kind),
      column(column),
      token(std::move(token)) {}

Route::Route(std::vector<Assignment> assignments, const Registry& registry)
    : registry_(&registry), assignments_(std::move(assignments)) {}

Route Route::parse(std::string_view text, const Registry& registry) {
  Route r(registry);
  if (text.empty()) return r;
  for (auto& t : parseTokens(text, registry, false))
    r.assignments_.push_back({t.knob, std::move(t.values[0]), std::move(t.scope), t.column});
  return r;
}

std::string encodeScope(std::string_view glob) {
  std::string out;
  for (char c : glob) {
    if (static_cast<unsigned char>(c) < 0x20 || std::string_view(" =|[]@%").find(c) != std::string_view::npos)
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

std::string printAssignment(const Assignment& a, const Registry& registry) {
  std::string out = registry[a.knob].name;
  if (!a.scope.empty()) out += "@" + encodeScope(a.scope);
  return out + "=" + a.value;
}

std::string Route::print() const {
  std::string out;
  for (const auto& a : assignments_) {
    if (!out.empty()) out += " ";
    out += printAssignment(a, *registry_);
  }
  return out;
}

std::vector<Assignment> lossyAssignments(const Route& route) {
  std::vector<Assignment> out;
  for (const auto& a : route.assignments())
    if (route.registry()[a.knob].numericsOf(a.value) == Numerics::kLossy) out.push_back(a);
  return out;
}

}  // namespace rutter::knobs
