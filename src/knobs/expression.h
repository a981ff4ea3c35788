#pragma once
// Expressions: routes with alternatives, and the order in which they expand. Order and numbering are part of the
// interface (spec section 3): caches, logs and scripts speak of "route 7".
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knobs/big_count.h"
#include "knobs/parse.h"
#include "knobs/route.h"

namespace rutter::knobs {

/// One value of one listed knob that is not the knob's default.
struct Variation {
  size_t token = 0;  ///< index into Expression::tokens()
  size_t value = 0;  ///< index into that token's values
  bool operator==(const Variation&) const = default;
};

class Expression {
 public:
  /// RouteError for everything in spec 1.3.
  static Expression parse(std::string_view text, const Registry& registry = Registry::builtin());

  const std::vector<Token>& tokens() const { return tokens_; }
  const Registry& registry() const { return *registry_; }
  const std::string& text() const { return text_; }

  /// full: mixed radix, the last token varies fastest.
  BigCount fullCount() const;
  Route full(uint64_t index) const;  ///< index < fullCount()

  /// fast: the baseline (listed knobs at their declared default), then one-off variations, tokens from last to first,
  /// values in list order, defaults skipped.
  size_t fastCount() const { return 1 + variations_.size(); }
  Route fast(size_t index) const;  ///< index < fastCount()
  Route baseline() const { return fast(0); }
  /// What fast(index) varies; none for the baseline.
  std::optional<Variation> variation(size_t index) const;

  /// The most routes that the second phase of `mixed` can have: the product over the ten longest lists.
  BigCount mixedBound() const;

 private:
  friend class PhaseTwo;
  Route make(std::span<const std::string> values) const;
  const std::string& baselineValue(size_t token) const;

  const Registry* registry_ = nullptr;
  std::string text_;
  std::vector<Token> tokens_;
  std::vector<Variation> variations_;
};

/// A variation of phase 1 that was accurate and statistically faster than the baseline.
struct Positive {
  size_t index = 0;   ///< of fast
  double gain = 1.0;  ///< baseline's time / its time
};

/// The second phase of `mixed`: the knobs that helped alone, varied together; the others stay at the baseline.
class PhaseTwo {
 public:
  static constexpr size_t kMaxKnobs = 10;
  /// `expression` must outlive this object.
  PhaseTwo(const Expression& expression, std::span<const Positive> positives);

  /// False if fewer than two knobs are positive: then there is no second phase.
  bool runs() const { return varied_.size() >= 2; }
  const std::vector<size_t>& varied() const { return varied_; }    ///< token indices, in the expression's order
  const std::vector<size_t>& leftOut() const { return leftOut_; }  ///< positive too, but beyond kMaxKnobs
  BigCount count() const { return count_; }                        ///< routes to measure: those of phase 1 are not

  struct Item {
    size_t index;  ///< goes on after phase 1
    Route route;
  };
  /// The next route in the order of `full` that phase 1 did not have; none at the end.
  std::optional<Item> next();

 private:
  const Expression* expression_;
  std::vector<size_t> varied_, leftOut_, digits_;
  BigCount count_;
  size_t nextIndex_ = 0;
  bool done_ = false;
};

/// The text of an expression file: `#` comments removed, lines joined by one space. UserError if unreadable.
std::string readExpressionFile(const std::string& path);

/// Lossy values that an expression may assign (fixed or listed), in its order.
std::vector<Assignment> lossyAssignments(const Expression& e);

}  // namespace rutter::knobs
