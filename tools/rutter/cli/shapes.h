#pragma once
// From the shape flags to profiles and run shapes for the inputs that a model really has (spec section 7).
#include <map>
#include <string>
#include <vector>

#include "cli/options.h"

namespace rutter::cli {

/// An input as the model or engine declares it; -1 is dynamic.
struct InputInfo {
  std::string name;
  std::vector<int64_t> dims;  ///< -1: dynamic
  bool known = true;          ///< false: not even the rank is
  bool dynamic() const;
};
using Shape = std::vector<int64_t>;
using ShapeMap = std::map<std::string, Shape>;
struct Range {
  Shape min, opt, max;
  bool operator==(const Range&) const = default;
};
using RangeMap = std::map<std::string, Range>;

/// Names with their `*` replaced by the inputs that it matches. UserError for a name that is no input (with the nearest
/// ones), a rank or a static extent that differs, an input named twice. `flag` starts the message, `of` is what the
/// inputs belong to.
ShapeMap matchShapes(const std::vector<InputInfo>& inputs, const std::vector<NamedShape>& given,
                     const std::string& flag, std::string_view of = "model");

struct ShapePlan {
  std::vector<RangeMap> profiles;  ///< at least one; every dynamic input is in each
  ShapeMap run;                    ///< every input
  std::vector<std::string> warnings;
};
/// Profiles to build and shapes to run. Dynamic extents that no flag gives become 1, with a warning; in a search they
/// are a UserError that lists the inputs and shows a --shapes that would do.
ShapePlan planShapes(const std::vector<InputInfo>& inputs, const Options& o);

/// Shapes to run on an engine with these profiles. UserError if they lie outside the chosen one.
ShapeMap planRun(const std::vector<InputInfo>& inputs, const std::vector<RangeMap>& profiles, const Options& o);

}  // namespace rutter::cli
