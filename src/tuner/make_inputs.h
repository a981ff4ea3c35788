#pragma once
// Inputs that nobody gave: random, reproducible, and such that the network can run on them (spec 5.3).
#include <cstdint>
#include <map>
#include <string>

#include "ir/graph.h"

namespace rutter::tuner {

/// What an input's elements may be.
struct InputRule {
  enum class Kind : uint8_t {
    kPlain,    ///< by dtype: floats in [-1, 1], integers in [-128, 127] (unsigned: [0, 255]), bool {0, 1}
    kIndices,  ///< integers in [0, limit)
    kMask,     ///< {0, 1}: ones first, then zeros, along the last axis; at least one 1 in a row
    kExtent,   ///< integers in [1, limit): shapes, repeats, lengths
  };
  Kind kind = Kind::kPlain;
  int64_t limit = 0;
  bool operator==(const InputRule&) const = default;
};

/// How floats and plain integers are drawn. Some networks are not finite on the usual draw: logarithms and roots of
/// what is below zero, exponentials and powers of what is large.
enum class Draw : uint8_t {
  kUsual,     ///< as InputRule says
  kSmall,     ///< a tenth of it: floats in [-0.1, 0.1], integers in [-12, 12] ([0, 25])
  kPositive,  ///< floats in [0.1, 1], integers from 1 up
  kOnes,      ///< set 0: all 1; set s: 1 + s/8 (integers 1 + s)
};
inline constexpr int kDraws = 4;
const char* drawText(Draw d);  ///< for messages: "numbers near zero"
/// Ways to make up inputs, in the order in which they are tried: each draw, then each without the set that was varied
/// from a given one (variedInput).
inline constexpr int kInputWays = 2 * kDraws;

/// The rule of every input of the graph's top region, from what uses it: integers that index a table lie within it,
/// integers that only feed Cast, Sub, Mul, Where and comparisons are masks. Types must have been inferred.
std::map<std::string, InputRule> inputRules(const ir::Graph& g);

/// `set` chooses another draw: sets 0, 1, … of one seed differ; equal arguments give equal bits on every machine.
ir::Tensor makeInput(const std::string& name, ir::DType dtype, const std::vector<int64_t>& dims, const InputRule& rule,
                     uint64_t seed, int set, Draw draw = Draw::kUsual);

/// Another set from a given input, which knows best where the network's inputs lie: floats each times a number in
/// [0.5, 1], indices and masks drawn anew by their rule, all others as they are.
ir::Tensor variedInput(const std::string& name, const ir::Tensor& given, const InputRule& rule, uint64_t seed);

}  // namespace rutter::tuner
