#pragma once
// What became of a route's wishes.
#include <string>
#include <vector>

#include "codegen/decide.h"
#include "passes/pass.h"

namespace rutter::compiler {

/// One line for each assignment of the route that had no effect: its scope matches none of the model's nodes, nothing
/// that it is for reads its knob, or all that it is for refused the value. The value `auto` is no wish.
std::vector<std::string> lostWishes(const knobs::Route& route, const std::vector<std::string>& origins,
                                    const codegen::Decision& d, const passes::PassContext& passes);

}  // namespace rutter::compiler
