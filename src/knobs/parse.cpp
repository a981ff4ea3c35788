#include "knobs/parse.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "knobs/route.h"

namespace rutter::knobs {
namespace {

using Kind = RouteErrorKind;

bool isBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && isBlank(s.front())) s.remove_prefix(1);
  while (!s.empty() && isBlank(s.back())) s.remove_suffix(1);
  return s;
}

struct Piece {
  std::string_view text;
  size_t column;
};

// Cutting sees only blanks and brackets; a blank inside brackets does not separate.
std::vector<Piece> cut(std::string_view text) {
  if (text.empty())
    throw RouteError(Kind::kEmptyInput, "", 1, "there is nothing to read; write for example -gemm:tile_m=[8|12]");
  std::vector<Piece> out;
  std::vector<size_t> open;
  size_t begin = text.npos;
  auto tokenAround = [&](size_t i) {
    size_t from = begin == text.npos ? i : begin, to = i;
    while (to < text.size() && !isBlank(text[to])) to++;
    return std::string(text.substr(from, to - from));
  };
  for (size_t i = 0; i < text.size(); i++) {
    char c = text[i];
    if (isBlank(c) && open.empty()) {
      if (begin != text.npos) out.push_back({text.substr(begin, i - begin), begin + 1});
      begin = text.npos;
      continue;
    }
    if (c == ']') {
      if (open.empty()) throw RouteError(Kind::kUnbalancedBracket, tokenAround(i), i + 1, "this ] closes no [");
      open.pop_back();
    }
    if (begin == text.npos && !isBlank(c)) begin = i;
    if (c == '[') open.push_back(i);
  }
  if (!open.empty())
    throw RouteError(Kind::kUnbalancedBracket, tokenAround(open.front()), open.front() + 1,
                     "this [ is never closed by ]");
  if (begin != text.npos) out.push_back({text.substr(begin), begin + 1});
  if (out.empty())
    throw RouteError(Kind::kNoExpressions, "", 1, "there are only blanks; write for example -gemm:tile_m=[8|12]");
  return out;
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

class TokenParser {
 public:
  TokenParser(const Registry& registry, bool lists) : registry_(registry), lists_(lists) {}

  Token parse(Piece p) {
    piece_ = p;
    Token t;
    t.column = p.column;
    t.text = p.text;
    auto eq = p.text.find('=');
    if (eq == p.text.npos) fail(Kind::kNoEquals, "there is no =; write -knob=value");
    auto name = p.text.substr(0, eq), scope = std::string_view();
    auto at = name.find('@');
    if (at != name.npos) {
      scope = name.substr(at + 1);
      name = name.substr(0, at);
    }
    const KnobInfo& knob = find(name);
    t.knob = knob.id;
    if (at != name.npos) t.scope = decodeScope(scope);
    readValues(t, knob, p.text.substr(eq + 1));
    auto [other, fresh] = seen_.emplace(std::pair(t.knob, t.scope), t.column);
    if (!fresh)
      fail(Kind::kDuplicateKnob, "{} is given twice{}, at columns {} and {}; give it once", knob.name,
           t.scope.empty() ? "" : " for the same scope", other->second, t.column);
    return t;
  }

 private:
  template <typename... A>
  [[noreturn]] void fail(Kind kind, fmt::format_string<A...> f, A&&... a) const {
    throw RouteError(kind, std::string(piece_.text), piece_.column, fmt::format(f, std::forward<A>(a)...));
  }

  const KnobInfo& find(std::string_view name) const {
    if (auto* k = registry_.find(name)) return *k;
    fail(Kind::kUnknownKnob, "there is no knob {}; nearest: {}", name, joinOr(registry_.nearest(name)));
  }

  std::string decodeScope(std::string_view s) const {
    if (s.empty()) fail(Kind::kBadScope, "nothing follows @; write -knob@<layer name or glob>=value");
    std::string out;
    for (size_t i = 0; i < s.size(); i++) {
      if (std::string_view("|[]@").find(s[i]) != std::string_view::npos || isBlank(s[i]))
        fail(Kind::kBadScope, "'{}' must be written %{:02X} in a scope", s[i], static_cast<unsigned char>(s[i]));
      if (s[i] != '%') {
        out += s[i];
        continue;
      }
      int hi = i + 2 < s.size() ? hexDigit(s[i + 1]) : -1, lo = hi >= 0 ? hexDigit(s[i + 2]) : -1;
      if (lo < 0) fail(Kind::kBadScope, "% must be followed by two hexadecimal digits in a scope (% itself is %25)");
      out += static_cast<char>(hi * 16 + lo);
      i += 2;
    }
    return out;
  }

  void readValues(Token& t, const KnobInfo& knob, std::string_view text) const {
    auto open = text.find('[');
    if (open == text.npos) {
      t.values.push_back(check(knob, text));
      return;
    }
    auto close = text.find(']', open);
    if (close == text.npos) fail(Kind::kBadScope, "[ and ] must be written %5B and %5D in a scope");
    if (!trim(text.substr(0, open)).empty())
      fail(Kind::kTextBeforeBracket, "'{}' stands before the [; write {}=[a|b]", trim(text.substr(0, open)), knob.name);
    if (!trim(text.substr(close + 1)).empty())
      fail(Kind::kTextAfterBracket, "'{}' stands after the ]; write {}=[a|b]", trim(text.substr(close + 1)), knob.name);
    t.variable = true;
    auto list = text.substr(open + 1, close - open - 1);
    std::vector<std::string_view> written;
    for (size_t from = 0; from <= list.size();) {
      size_t to = std::min(list.find('|', from), list.size());
      if (auto v = trim(list.substr(from, to - from)); !v.empty()) written.push_back(v);
      from = to + 1;
    }
    if (std::find(written.begin(), written.end(), "...") != written.end() || list.find("...") != list.npos)
      fail(Kind::kOpenRange, "'...' is no value; list the values");
    if (written.empty()) fail(Kind::kEmptyList, "the list has no value; allowed: {}", knob.domainText());
    auto twice = [&](std::string_view v) { fail(Kind::kDuplicateValue, "{} is listed twice; list it once", v); };
    for (size_t i = 0; i < written.size(); i++)
      if (std::find(written.begin(), written.begin() + i, written[i]) != written.begin() + i) twice(written[i]);
    if (!lists_) fail(Kind::kInvalidValue, "a route holds one value for a knob; lists belong in --tuneBuildRoutes");
    for (auto v : written) {
      auto c = check(knob, v);
      // Spellings of one number: 7 and 07.
      if (std::find(t.values.begin(), t.values.end(), c) != t.values.end()) twice(v);
      t.values.push_back(c);
    }
  }

  std::string check(const KnobInfo& knob, std::string_view v) const {
    if (v == "int32_t") fail(Kind::kTypeWord, "int32_t is the type, not a value; allowed: {}", knob.domainText());
    if (auto c = knob.canonical(v)) return *c;
    if (v.find('|') != v.npos) fail(Kind::kInvalidValue, "alternatives need brackets: {}=[{}]", knob.name, v);
    if (!knob.bounded())
      fail(Kind::kInvalidValue, "'{}' is not allowed for {}; allowed: {}", v, knob.name, knob.domainText());
    fail(Kind::kInvalidValue, "'{}' is not allowed for {}; allowed: {}; nearest: {}", v, knob.name, knob.domainText(),
         nearestValue(knob, v));
  }

  // Among numbers the numerically closest, among words the one with the fewest edits.
  static std::string nearestValue(const KnobInfo& knob, std::string_view v) {
    if (knob.domain == Domain::kInts) {
      char* end = nullptr;
      std::string text(v);
      double wanted = std::strtod(text.c_str(), &end), best = 0;
      const std::string* found = nullptr;
      if (!text.empty() && *end == 0) {
        for (const auto& c : knob.values)
          if (c != "auto" && (!found || std::abs(std::stod(c) - wanted) < best)) {
            found = &c;
            best = std::abs(std::stod(c) - wanted);
          }
        if (found) return *found;
      }
    }
    return nearestNames(v, knob.values, 1).front();
  }

  const Registry& registry_;
  bool lists_;
  Piece piece_{};
  std::map<std::pair<KnobId, std::string>, size_t> seen_;
};

}  // namespace

std::vector<Token> parseTokens(std::string_view text, const Registry& registry, bool lists) {
  std::vector<Token> out;
  TokenParser parser(registry, lists);
  for (const auto& piece : cut(text)) out.push_back(parser.parse(piece));
  return out;
}

}  // namespace rutter::knobs
