#include "knobs/expression.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace rutter::knobs {

Expression Expression::parse(std::string_view text, const Registry& registry) {
  Expression e;
  e.registry_ = &registry;
  e.text_ = text;
  e.tokens_ = parseTokens(text, registry, true);
  for (size_t t = e.tokens_.size(); t-- > 0;) {
    if (!e.tokens_[t].variable) continue;
    for (size_t v = 0; v < e.tokens_[t].values.size(); v++)
      if (e.tokens_[t].values[v] != e.baselineValue(t)) e.variations_.push_back({t, v});
  }
  return e;
}

const std::string& Expression::baselineValue(size_t t) const {
  return tokens_[t].variable ? (*registry_)[tokens_[t].knob].defaultValue : tokens_[t].values[0];
}

Route Expression::make(std::span<const std::string> values) const {
  std::vector<Assignment> out;
  for (size_t t = 0; t < tokens_.size(); t++)
    out.push_back({tokens_[t].knob, values[t], tokens_[t].scope, tokens_[t].column});
  return Route(std::move(out), *registry_);
}

BigCount Expression::fullCount() const {
  BigCount n = 1;
  for (const auto& t : tokens_) n *= static_cast<uint32_t>(t.values.size());
  return n;
}

Route Expression::full(uint64_t index) const {
  std::vector<std::string> values(tokens_.size());
  uint64_t rest = index;
  for (size_t t = tokens_.size(); t-- > 0;) {
    values[t] = tokens_[t].values[rest % tokens_[t].values.size()];
    rest /= tokens_[t].values.size();
  }
  RUTTER_CHECK(rest == 0, "route {} of {}", index, fullCount().print());
  return make(values);
}

std::optional<Variation> Expression::variation(size_t index) const {
  RUTTER_CHECK(index < fastCount(), "route {} of {}", index, fastCount());
  if (index == 0) return std::nullopt;
  return variations_[index - 1];
}

Route Expression::fast(size_t index) const {
  std::vector<std::string> values;
  for (size_t t = 0; t < tokens_.size(); t++) values.push_back(baselineValue(t));
  if (auto v = variation(index)) values[v->token] = tokens_[v->token].values[v->value];
  return make(values);
}

BigCount Expression::mixedBound() const {
  std::vector<uint32_t> sizes;
  for (const auto& t : tokens_) sizes.push_back(static_cast<uint32_t>(t.values.size()));
  std::sort(sizes.rbegin(), sizes.rend());
  BigCount n = 1;
  for (size_t i = 0; i < std::min(sizes.size(), PhaseTwo::kMaxKnobs); i++) n *= sizes[i];
  return n;
}

PhaseTwo::PhaseTwo(const Expression& e, std::span<const Positive> positives)
    : expression_(&e), nextIndex_(e.fastCount()) {
  std::map<size_t, double> gains;  // best gain by token
  for (const auto& p : positives)
    if (auto v = e.variation(p.index)) {
      auto& g = gains.try_emplace(v->token, p.gain).first->second;
      g = std::max(g, p.gain);
    }
  std::vector<size_t> order;
  for (const auto& [token, gain] : gains) order.push_back(token);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return gains[a] > gains[b]; });
  varied_.assign(order.begin(), order.begin() + std::min(order.size(), kMaxKnobs));
  leftOut_.assign(order.begin() + varied_.size(), order.end());
  std::sort(varied_.begin(), varied_.end());
  digits_.assign(varied_.size(), 0);
  done_ = !runs();
  if (done_) return;

  // Phase 1 had the routes that differ from the baseline in at most one knob.
  count_ = 1;
  size_t unlisted = 0, unlistedToken = 0, known = 0;
  auto listed = [&](size_t t) {
    const auto& values = e.tokens()[t].values;
    return std::find(values.begin(), values.end(), e.baselineValue(t)) != values.end();
  };
  for (size_t t : varied_) {
    count_ *= static_cast<uint32_t>(e.tokens()[t].values.size());
    if (!listed(t)) unlisted++, unlistedToken = t;
  }
  if (unlisted == 0) {
    known = 1;
    for (size_t t : varied_) known += e.tokens()[t].values.size() - 1;
  } else if (unlisted == 1) {
    known = e.tokens()[unlistedToken].values.size();
  }
  count_ -= known;
}

std::optional<PhaseTwo::Item> PhaseTwo::next() {
  while (!done_) {
    std::vector<std::string> values;
    for (size_t t = 0; t < expression_->tokens().size(); t++) values.push_back(expression_->baselineValue(t));
    size_t changed = 0;
    for (size_t i = 0; i < varied_.size(); i++) {
      const auto& v = expression_->tokens()[varied_[i]].values[digits_[i]];
      changed += v != values[varied_[i]];
      values[varied_[i]] = v;
    }
    size_t i = varied_.size();
    while (i > 0 && ++digits_[i - 1] == expression_->tokens()[varied_[i - 1]].values.size()) digits_[--i] = 0;
    done_ = i == 0;
    if (changed > 1) return Item{nextIndex_++, expression_->make(values)};
  }
  return std::nullopt;
}

std::string readExpressionFile(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string out, line;
  if (in && in.peek() == EOF && in.bad()) in.setstate(std::ios::failbit);
  if (!in || in.bad())
    throw UserError("cannot read the expression file '{}': {}", path, errno ? std::strerror(errno) : "unknown error");
  in.clear();
  bool first = true;
  while (std::getline(in, line)) {
    if (auto hash = line.find('#'); hash != line.npos) line.resize(hash);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!first) out += ' ';
    out += line;
    first = false;
  }
  if (in.bad()) throw UserError("cannot read the expression file '{}': {}", path, std::strerror(errno));
  return out;
}

std::vector<Assignment> lossyAssignments(const Expression& e) {
  std::vector<Assignment> out;
  for (const auto& t : e.tokens())
    for (const auto& v : t.values)
      if (e.registry()[t.knob].numericsOf(v) == Numerics::kLossy) out.push_back({t.knob, v, t.scope, t.column});
  return out;
}

}  // namespace rutter::knobs
