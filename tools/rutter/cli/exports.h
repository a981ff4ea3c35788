#pragma once
// Exported files (spec section 8), for writeFileAtomically: strings are escaped, NaN and infinity null.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report.h"

namespace rutter::cli {

/// UserError if `path` can not be written, as far as that shows without writing: before minutes of work, not after.
void checkWritable(std::string_view flag, const std::string& path);

std::string timesJson(std::span<const RunTimes> runs);
/// First {"count": runs}, then an object a layer; percentages of the sum over layers.
std::string profileJson(std::span<const LayerTimes> layers);

/// A number as JSON text: shortest that reads back as the same value; null for NaN and infinity.
std::string jsonNumber(double v);
std::string jsonNumber(float v);
/// A string as JSON text, quotes included; bytes that are not UTF-8 are replaced.
std::string jsonString(std::string_view s);

/// An output tensor whose values are already JSON texts, in C order.
struct OutputValues {
  std::string name;
  std::vector<int64_t> dims;
  size_t count = 0;
  std::function<std::string(size_t)> value;
};
std::string outputJson(std::span<const OutputValues> outputs);

}  // namespace rutter::cli
