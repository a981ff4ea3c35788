#include <set>

#include "ops/support.h"

namespace rutter::ops {
namespace {
// Axes of an operand or of the result by letter; the axes of an ellipsis are '0', '1', … from the last one on.
using Letters = std::string;
struct Equation {
  std::vector<Letters> inputs;
  Letters output;
};
Letters expand(const std::string& term, size_t rank, bool isOutput, size_t dots) {
  size_t at = term.find("...");
  std::string letters = term;
  if (at != std::string::npos) letters.erase(at, 3);
  for (char ch : letters)
    if (!std::isalpha(static_cast<unsigned char>(ch))) throw UserError("equation: '{}' is no letter", ch);
  if (at == std::string::npos) {
    if (!isOutput && letters.size() != rank)
      throw UserError("equation: term '{}' has {} letters for {} axes", term, letters.size(), rank);
    return letters;
  }
  if (!isOutput && letters.size() > rank)
    throw UserError("equation: term '{}' has {} letters for {} axes", term, letters.size(), rank);
  size_t n = isOutput ? dots : rank - letters.size();
  if (n > 10) throw UserError("equation: an ellipsis of {} axes is not supported", n);
  std::string between;
  for (size_t i = n; i-- > 0;) between += char('0' + i);
  return letters.insert(at, between);
}
Equation parse(const ir::Node& n, const std::vector<size_t>& ranks) {
  std::string text = n.getString("equation", "");
  std::erase(text, ' ');
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation e;
  std::vector<std::string> terms{""};
  for (char ch : left) {
    if (ch == ',')
      terms.emplace_back();
    else
      terms.back() += ch;
  }
  if (terms.size() != ranks.size())
    throw UserError("equation '{}' has {} terms for {} inputs", text, terms.size(), ranks.size());
  size_t dots = 0;
  std::map<char, int> count;
  for (size_t i = 0; i < terms.size(); i++) {
    e.inputs.push_back(expand(terms[i], ranks[i], false, 0));
    size_t own = 0;
    for (char ch : e.inputs.back()) {
      count[ch]++;
      own += std::isdigit(static_cast<unsigned char>(ch)) ? 1 : 0;
    }
    dots = std::max(dots, own);
  }
  if (arrow != std::string::npos) {
    e.output = expand(text.substr(arrow + 2), 0, true, dots);
  } else {  // the ellipsis, then the letters that occur once, sorted
    for (size_t i = dots; i-- > 0;) e.output += char('0' + i);
    for (auto [ch, k] : count)
      if (std::isalpha(static_cast<unsigned char>(ch)) && k == 1) e.output += ch;
  }
  std::set<char> seen;
  for (char ch : e.output) {
    if (!count.count(ch)) throw UserError("equation '{}': '{}' is in the result only", text, ch);
    if (!seen.insert(ch).second) throw UserError("equation '{}': '{}' is twice in the result", text, ch);
  }
  return e;
}
void infer(InferContext& c) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.inputs(); i++) {
    accept(c, i, Accept::kNumber);
    sameType(c, 0, i);
    ranks.push_back(c.in(i).rank());
  }
  Equation e = parse(c.node, ranks);
  std::map<char, Dim> extent;
  for (size_t i = 0; i < ranks.size(); i++)
    for (size_t a = 0; a < ranks[i]; a++) {
      char ch = e.inputs[i][a];
      const Dim& d = c.in(i).dims[a];
      auto [it, fresh] = extent.try_emplace(ch, d);
      if (fresh || d.is(1)) continue;
      if (it->second.is(1))
        it->second = d;
      else
        c.requireEqual(it->second, d, fmt::format("axes of '{}' must agree", ch));
    }
  Dims out;
  for (char ch : e.output) out.push_back(extent.at(ch));
  c.out(0, c.in(0).dtype, std::move(out));
}
void eval(EvalContext& c) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.inputs.size(); i++) ranks.push_back(c.in(i).shape().size());
  Equation e = parse(c.node, ranks);
  std::map<char, int64_t> extent;
  for (size_t i = 0; i < ranks.size(); i++)
    for (size_t a = 0; a < ranks[i]; a++) {
      int64_t d = c.in(i).shape()[a], &have = extent.try_emplace(e.inputs[i][a], d).first->second;
      if (have != d && have != 1 && d != 1)
        throw UserError("axes of '{}' have the extents {} and {}", e.inputs[i][a], have, d);
      if (d != 1) have = d;
    }
  // All letters: first those of the result, then those that are summed over.
  Letters all = e.output;
  for (auto [ch, d] : extent)
    if (all.find(ch) == std::string::npos) all += ch;
  Extents shape, full;
  for (char ch : all) full.push_back(extent.at(ch));
  shape.assign(full.begin(), full.begin() + int64_t(e.output.size()));
  std::vector<Extents> strides;
  for (size_t i = 0; i < ranks.size(); i++) {
    Extents s(all.size(), 0), dense = ir::rowMajorStrides(c.in(i).shape());
    for (size_t a = 0; a < ranks[i]; a++)  // a letter twice in a term walks the diagonal
      if (c.in(i).shape()[a] != 1) s[all.find(e.inputs[i][a])] += dense[a];
    strides.push_back(std::move(s));
  }
  Tensor& y = c.out(0, c.in(0).dtype(), shape);
  compute(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> r(size_t(y.size()), T(0));
    std::vector<std::vector<T>> v;
    for (size_t i = 0; i < ranks.size(); i++) v.push_back(load<T>(c.in(i)));
    Extents k(all.size(), 0);
    int64_t total = ir::elementCount(full), perResult = y.size() ? total / y.size() : 0;
    for (int64_t t = 0; t < total; t++) {
      T product = 1;
      for (size_t i = 0; i < v.size(); i++) {
        int64_t at = 0;
        for (size_t a = 0; a < k.size(); a++) at += k[a] * strides[i][a];
        product *= v[i][size_t(at)];
      }
      r[size_t(t / perResult)] += product;
      for (size_t a = k.size(); a-- > 0;) {
        if (++k[a] < full[a]) break;
        k[a] = 0;
      }
    }
    store(y, r);
  });
}
}  // namespace
const OpDef op_Einsum = {"Einsum", "", 28, infer, eval};
}  // namespace rutter::ops
