#include "ir/dim.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"

namespace rutter::ir {
namespace {
int64_t checkedMul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    throw UserError("tensor extents overflow: {} * {} does not fit in 64 bits", a, b);
  return r;
}
int64_t checkedAdd(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r))
    throw UserError("tensor extents overflow: {} + {} does not fit in 64 bits", a, b);
  return r;
}
int64_t floorDivInt(int64_t a, int64_t b) {
  if (b == 0) throw UserError("a tensor extent is divided by zero");
  if (b == -1) return checkedMul(a, -1);
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
std::string monomialText(const Dim::Monomial& m) {
  std::string s;
  for (const auto& [text, atom] : m)
    for (int i = 0; i < atom.second; i++) s += (s.empty() ? "" : "*") + text;
  return s;
}
}  // namespace

using TermMap = std::map<std::string, Dim::Term>;
struct DimBuilder {
  static TermMap map(const Dim& d) {
    TermMap m;
    if (!d.terms_) {
      if (d.constant_) m[""] = {d.constant_, {}};
    } else {
      for (const auto& t : *d.terms_) m[monomialText(t.factors)] = t;
    }
    return m;
  }
  static Dim make(const TermMap& m) {
    std::vector<Dim::Term> terms;
    for (const auto& [k, t] : m)
      if (t.coefficient) terms.push_back(t);
    if (terms.empty()) return Dim(0);
    if (terms.size() == 1 && terms[0].factors.empty()) return Dim(terms[0].coefficient);
    Dim d;
    d.terms_ = std::make_shared<const std::vector<Dim::Term>>(std::move(terms));
    return d;
  }
  static void add(TermMap& m, const std::string& key, const Dim::Term& t) {
    auto [it, fresh] = m.try_emplace(key, t);
    if (!fresh) it->second.coefficient = checkedAdd(it->second.coefficient, t.coefficient);
  }
  static Dim atom(Dim::AtomRef a) {
    Dim::Monomial mono;
    mono[a->text] = {a, 1};
    TermMap m;
    m[a->text] = {1, mono};
    return make(m);
  }
  static Dim operation(Dim::Kind k, const Dim& a, const Dim& b) {
    static const char* names[] = {"floordiv", "ceildiv", "mod", "min", "max"};
    auto at = std::make_shared<Dim::Atom>();
    at->kind = k;
    at->a = a;
    at->b = b;
    at->text = fmt::format("{}({},{})", names[int(k)], a.text(), b.text());
    return atom(at);
  }
};

Dim::Dim(int64_t v) : constant_(v) {}
Dim Dim::symbol(const std::string& name) {
  auto at = std::make_shared<Atom>();
  at->symbol = name;
  at->text = name;
  return DimBuilder::atom(at);
}
int64_t Dim::value() const {
  RUTTER_CHECK(!terms_, "dim {} is symbolic", text());
  return constant_;
}
std::optional<std::string> Dim::asSymbol() const {
  if (!terms_ || terms_->size() != 1) return std::nullopt;
  const Term& t = (*terms_)[0];
  if (t.coefficient != 1 || t.factors.size() != 1) return std::nullopt;
  const auto& [atom, power] = t.factors.begin()->second;
  if (power != 1 || atom->symbol.empty()) return std::nullopt;
  return atom->symbol;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(checkedAdd(a.constant_, b.constant_));
  TermMap m = DimBuilder::map(a);
  for (const auto& [k, t] : DimBuilder::map(b)) DimBuilder::add(m, k, t);
  return DimBuilder::make(m);
}
Dim operator*(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(checkedMul(a.constant_, b.constant_));
  TermMap m;
  for (const auto& [ka, ta] : DimBuilder::map(a))
    for (const auto& [kb, tb] : DimBuilder::map(b)) {
      Dim::Term t{checkedMul(ta.coefficient, tb.coefficient), ta.factors};
      for (const auto& [text, f] : tb.factors) {
        auto [it, fresh] = t.factors.try_emplace(text, f);
        if (!fresh) it->second.second += f.second;
      }
      DimBuilder::add(m, monomialText(t.factors), t);
    }
  return DimBuilder::make(m);
}
Dim operator-(const Dim& a, const Dim& b) {
  return a + b * Dim(-1);
}

// Divides term by term by a single-term divisor; every term must be divisible.
std::optional<Dim> exactDiv(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (b.is(1)) return a;
  if (a.is(0)) return Dim(0);
  if (a == b) return Dim(1);
  auto mb = DimBuilder::map(b);
  if (mb.size() != 1) return std::nullopt;
  const Dim::Term& tb = mb.begin()->second;
  TermMap m;
  for (const auto& [k, ta] : DimBuilder::map(a)) {
    if (tb.coefficient == -1 && ta.coefficient == INT64_MIN) return std::nullopt;  // no such integer
    if (ta.coefficient % tb.coefficient) return std::nullopt;
    Dim::Term t{ta.coefficient / tb.coefficient, ta.factors};
    for (const auto& [text, f] : tb.factors) {
      auto it = t.factors.find(text);
      if (it == t.factors.end() || it->second.second < f.second) return std::nullopt;
      if ((it->second.second -= f.second) == 0) t.factors.erase(it);
    }
    DimBuilder::add(m, monomialText(t.factors), t);
  }
  return DimBuilder::make(m);
}
Dim floorDiv(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(floorDivInt(a.constant_, b.constant_));
  if (auto e = exactDiv(a, b)) return *e;
  // (c*x + r) / c with a constant c: the divisible terms leave the division, a constant leaves its remainder.
  if (auto c = b.constant(); c && *c > 0) {
    Dim whole(0), rest(0);
    for (const auto& [k, t] : DimBuilder::map(a)) {
      TermMap one;
      one[k] = t;
      Dim d = DimBuilder::make(one);
      if (t.factors.empty()) {
        int64_t q = floorDivInt(t.coefficient, *c);
        whole = whole + Dim(q);
        rest = rest + Dim(t.coefficient - q * *c);
      } else if (t.coefficient % *c == 0) {
        one[k].coefficient /= *c;
        whole = whole + DimBuilder::make(one);
      } else {
        rest = rest + d;
      }
    }
    if (auto rc = rest.constant()) return whole + Dim(floorDivInt(*rc, *c));
    if (!whole.is(0)) return whole + floorDiv(rest, b);
    // (x / d + r) / c is (x + r*d) / (c*d).
    const Dim::Term* inner = nullptr;
    int64_t r = 0;
    for (const Dim::Term& t : *rest.terms_) {
      if (t.factors.empty())
        r = t.coefficient;
      else if (!inner)
        inner = &t;
      else
        return DimBuilder::operation(Dim::Kind::kFloorDiv, rest, b);
    }
    if (inner && inner->coefficient == 1 && inner->factors.size() == 1 && inner->factors.begin()->second.second == 1) {
      const Dim::Atom& at = *inner->factors.begin()->second.first;
      if (at.symbol.empty() && at.kind == Dim::Kind::kFloorDiv && at.b.isConstant() && at.b.value() > 0)
        return floorDiv(at.a + Dim(r) * at.b, at.b * b);
    }
  }
  return DimBuilder::operation(Dim::Kind::kFloorDiv, a, b);
}
Dim ceilDiv(const Dim& a, const Dim& b) {
  if (auto c = b.constant(); c && *c > 0) {
    Dim f = floorDiv(a + Dim(*c - 1), b);
    return f;
  }
  if (auto e = exactDiv(a, b)) return *e;
  return DimBuilder::operation(Dim::Kind::kCeilDiv, a, b);
}
Dim mod(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(a.constant_ - floorDivInt(a.constant_, b.constant_) * b.constant_);
  if (exactDiv(a, b)) return Dim(0);
  return DimBuilder::operation(Dim::Kind::kMod, a, b);
}
Dim min(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(std::min(a.constant_, b.constant_));
  if (a == b) return a;
  if (auto d = (a - b).constant()) return *d < 0 ? a : b;
  return b < a ? DimBuilder::operation(Dim::Kind::kMin, b, a) : DimBuilder::operation(Dim::Kind::kMin, a, b);
}
Dim max(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(std::max(a.constant_, b.constant_));
  if (a == b) return a;
  if (auto d = (a - b).constant()) return *d < 0 ? b : a;
  return b < a ? DimBuilder::operation(Dim::Kind::kMax, b, a) : DimBuilder::operation(Dim::Kind::kMax, a, b);
}

std::string Dim::text() const {
  if (!terms_) return std::to_string(constant_);
  if (!text_.empty()) return text_;
  std::string s;
  for (const Term& t : *terms_) {
    std::string f = monomialText(t.factors);
    std::string part = f.empty()            ? std::to_string(t.coefficient)
                       : t.coefficient == 1 ? f
                                            : std::to_string(t.coefficient) + "*" + f;
    s += (s.empty() || part[0] == '-') ? part : "+" + part;
  }
  return text_ = s;
}

int64_t Dim::evaluate(const std::map<std::string, int64_t>& symbols) const {
  if (!terms_) return constant_;
  int64_t sum = 0;
  for (const Term& t : *terms_) {
    int64_t p = t.coefficient;
    for (const auto& [text, f] : t.factors) {
      int64_t v;
      if (!f.first->symbol.empty()) {
        auto it = symbols.find(f.first->symbol);
        RUTTER_CHECK(it != symbols.end(), "no value for symbol {}", f.first->symbol);
        v = it->second;
      } else {
        int64_t a = f.first->a.evaluate(symbols), b = f.first->b.evaluate(symbols);
        switch (f.first->kind) {
          case Kind::kFloorDiv:
            v = floorDivInt(a, b);
            break;
          case Kind::kCeilDiv:
            v = -floorDivInt(-a, b);
            break;
          case Kind::kMod:
            v = a - floorDivInt(a, b) * b;
            break;
          case Kind::kMin:
            v = std::min(a, b);
            break;
          default:
            v = std::max(a, b);
            break;
        }
      }
      for (int i = 0; i < f.second; i++) p = checkedMul(p, v);
    }
    sum = checkedAdd(sum, p);
  }
  return sum;
}

Dim Dim::substitute(const std::map<std::string, Dim>& symbols) const {
  if (!terms_) return *this;
  Dim sum(0);
  for (const Term& t : *terms_) {
    Dim p(t.coefficient);
    for (const auto& [text, f] : t.factors) {
      Dim v;
      const Atom& at = *f.first;
      if (!at.symbol.empty()) {
        auto it = symbols.find(at.symbol);
        v = it == symbols.end() ? symbol(at.symbol) : it->second;
      } else {
        Dim a = at.a.substitute(symbols), b = at.b.substitute(symbols);
        switch (at.kind) {
          case Kind::kFloorDiv:
            v = floorDiv(a, b);
            break;
          case Kind::kCeilDiv:
            v = ceilDiv(a, b);
            break;
          case Kind::kMod:
            v = mod(a, b);
            break;
          case Kind::kMin:
            v = min(a, b);
            break;
          default:
            v = max(a, b);
            break;
        }
      }
      for (int i = 0; i < f.second; i++) p = p * v;
    }
    sum = sum + p;
  }
  return sum;
}

namespace {
using Range = std::pair<int64_t, int64_t>;
// Saturating: bounds of huge profiles must not throw.
int64_t satMul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return ((a < 0) != (b < 0)) ? INT64_MIN / 4 : INT64_MAX / 4;
  return r;
}
int64_t satAdd(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return a < 0 ? INT64_MIN / 4 : INT64_MAX / 4;
  return r;
}
Range mulRange(Range a, Range b) {
  int64_t v[] = {satMul(a.first, b.first), satMul(a.first, b.second), satMul(a.second, b.first),
                 satMul(a.second, b.second)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}
}  // namespace

std::pair<int64_t, int64_t> Dim::range(const SymbolTable& symbols) const {
  if (!terms_) return {constant_, constant_};
  Range sum{0, 0};
  for (const Term& t : *terms_) {
    Range p{t.coefficient, t.coefficient};
    for (const auto& [text, f] : t.factors) {
      Range v;
      const Atom& at = *f.first;
      if (!at.symbol.empty()) {
        auto it = symbols.find(at.symbol);
        v = it == symbols.end() ? Range{0, INT32_MAX} : Range{it->second.min, it->second.max};
      } else {
        Range a = at.a.range(symbols), b = at.b.range(symbols);
        if (at.kind == Kind::kMin) {
          v = {std::min(a.first, b.first), std::min(a.second, b.second)};
        } else if (at.kind == Kind::kMax) {
          v = {std::max(a.first, b.first), std::max(a.second, b.second)};
        } else if (at.kind == Kind::kMod) {
          v = b.first > 0 ? Range{0, b.second - 1} : Range{INT64_MIN / 4, INT64_MAX / 4};
        } else if (b.first > 0) {
          int64_t c = at.kind == Kind::kCeilDiv ? 1 : 0;
          v = {floorDivInt(a.first, a.first >= 0 ? b.second : b.first),
               satAdd(floorDivInt(a.second, a.second >= 0 ? b.first : b.second), c)};
        } else {
          v = {INT64_MIN / 4, INT64_MAX / 4};
        }
      }
      for (int i = 0; i < f.second; i++) p = mulRange(p, v);
    }
    sum = {satAdd(sum.first, p.first), satAdd(sum.second, p.second)};
  }
  return sum;
}
int64_t Dim::optimum(const SymbolTable& symbols) const {
  std::map<std::string, int64_t> v;
  for (const auto& [name, info] : symbols) v[name] = info.opt;
  return evaluate(v);
}
int64_t Dim::divisor() const {
  if (!terms_) return std::max<int64_t>(1, std::abs(constant_));
  int64_t g = 0;
  for (const Term& t : *terms_) g = std::gcd(g, t.coefficient);
  return std::max<int64_t>(1, g);
}
void Dim::collectSymbols(std::vector<std::string>& out) const {
  if (!terms_) return;
  for (const Term& t : *terms_)
    for (const auto& [text, f] : t.factors) {
      if (!f.first->symbol.empty()) {
        if (std::find(out.begin(), out.end(), f.first->symbol) == out.end()) out.push_back(f.first->symbol);
      } else {
        f.first->a.collectSymbols(out);
        f.first->b.collectSymbols(out);
      }
    }
}

Dim product(const Dims& dims, size_t begin, size_t end) {
  Dim p(1);
  for (size_t i = begin; i < std::min(end, dims.size()); i++) p = p * dims[i];
  return p;
}
std::string toString(const Dims& dims) {
  if (dims.empty()) return "scalar";
  std::string s;
  for (const Dim& d : dims) s += (s.empty() ? "" : "x") + d.text();
  return s;
}
std::optional<std::vector<int64_t>> constants(const Dims& dims) {
  std::vector<int64_t> v;
  for (const Dim& d : dims) {
    if (!d.isConstant()) return std::nullopt;
    v.push_back(d.value());
  }
  return v;
}
Dims toDims(const std::vector<int64_t>& v) {
  return Dims(v.begin(), v.end());
}

}  // namespace rutter::ir
