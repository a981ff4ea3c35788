#pragma once
// A tensor extent: an integer, or an integer expression over named symbols (batch, sequence …).
// Kept in a canonical form, a polynomial with integer coefficients over atoms (symbols and floor-division,
// ceiling-division, modulo, minimum, maximum of expressions), so that equal expressions mostly compare equal:
// B*S*384 / S / 384 == B.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rutter::ir {

class Dim;
/// Bounds of a symbol in a profile, and a divisor that it always has.
struct SymbolInfo {
  int64_t min = 1, max = INT32_MAX, opt = 1;
};
using SymbolTable = std::map<std::string, SymbolInfo>;

class Dim {
 public:
  enum class Kind : uint8_t { kFloorDiv, kCeilDiv, kMod, kMin, kMax };
  struct Atom;  // a symbol, or an operation on two Dims
  using AtomRef = std::shared_ptr<const Atom>;
  using Monomial = std::map<std::string, std::pair<AtomRef, int>>;  // canonical text -> (atom, power)
  struct Term {
    int64_t coefficient;
    Monomial factors;
  };

  Dim() : Dim(0) {}
  Dim(int64_t v);  // NOLINT: integers are dims
  static Dim symbol(const std::string& name);

  bool isConstant() const { return !terms_; }
  /// The integer; a symbolic dim is an InternalError.
  int64_t value() const;
  std::optional<int64_t> constant() const { return terms_ ? std::nullopt : std::optional(constant_); }
  bool is(int64_t v) const { return !terms_ && constant_ == v; }
  std::optional<std::string> asSymbol() const;  ///< the name, if this is one bare symbol

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floorDiv(const Dim& a, const Dim& b);  ///< rounds towards minus infinity; exact division cancels
  friend Dim ceilDiv(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);  ///< sign of the divisor, as floorDiv
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  /// a / b if b divides a as a polynomial (or as integers), else nothing.
  friend std::optional<Dim> exactDiv(const Dim& a, const Dim& b);
  bool operator==(const Dim& o) const { return text() == o.text(); }
  bool operator<(const Dim& o) const { return text() < o.text(); }

  std::string text() const;  ///< canonical: "32*H", "ceildiv(W,2)", "7"
  /// Value under an assignment of symbols; an unknown symbol is an InternalError.
  int64_t evaluate(const std::map<std::string, int64_t>& symbols) const;
  /// Every symbol replaced by the given expression (those not listed stay).
  Dim substitute(const std::map<std::string, Dim>& symbols) const;
  /// Bounds by interval arithmetic (never too narrow).
  std::pair<int64_t, int64_t> range(const SymbolTable& symbols) const;
  int64_t optimum(const SymbolTable& symbols) const;  ///< value at the profile's opt
  /// A divisor of every value this can take, from the coefficients (64*H -> 64); at least 1.
  int64_t divisor() const;
  void collectSymbols(std::vector<std::string>& out) const;
  const std::vector<Term>* terms() const { return terms_.get(); }

 private:
  friend struct DimBuilder;
  int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  // null: the constant
  mutable std::string text_;                        // cache of text()
};

struct Dim::Atom {
  std::string symbol;  // if not empty, a symbol
  Kind kind{};
  Dim a, b;
  std::string text;
};

using Dims = std::vector<Dim>;
Dim product(const Dims& dims, size_t begin = 0, size_t end = SIZE_MAX);
std::string toString(const Dims& dims);  ///< "1x3xHxW"; rank 0 is "scalar"
std::optional<std::vector<int64_t>> constants(const Dims& dims);
Dims toDims(const std::vector<int64_t>& v);

}  // namespace rutter::ir
