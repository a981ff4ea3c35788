#pragma once
// Small text helpers: globs over names, and "did you mean" suggestions.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rutter {

/// Case-sensitive match of the whole of `text`: `*` stands for any run of bytes, `?` for exactly one.
bool globMatch(std::string_view pattern, std::string_view text);

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; a change of case alone costs nothing
/// beyond one edit in total.
size_t editDistance(std::string_view a, std::string_view b);
/// The `n` names closest to `wanted`, closest first; ties in the order of `names`.
std::vector<std::string> nearestNames(std::string_view wanted, std::span<const std::string> names, size_t n = 3);
/// "1x3x224x224"; "scalar" without dims.
std::string printDims(std::span<const int64_t> dims);
/// "x:1x3x224x224" as the flags of shapes read it: names with a colon or a comma in single quotes.
std::string printShape(std::string_view name, std::span<const int64_t> dims);
/// `items` as "a, b or c".
std::string joinOr(std::span<const std::string> items);

}  // namespace rutter
