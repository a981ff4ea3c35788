#pragma once
// The pointwise operators: each output element comes from the elements of the inputs at the same (broadcast) place.
#include <span>
#include <string_view>

namespace rutter::ops {

struct Pointwise {
  enum Inputs : uint8_t { kOne, kTwo, kTwoOrMore, kOther };
  std::string_view name;
  Inputs inputs;  ///< kOne: others, where there are any, are parameters
  const char* domain = "";
};
/// The one list of them: passes move layouts and views through these, codegen has a scalar program for each (but for
/// Identity, which is a view to it). Null for other operators.
const Pointwise* findPointwise(std::string_view domain, std::string_view name);
std::span<const Pointwise> allPointwise();

}  // namespace rutter::ops
