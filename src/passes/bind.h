#pragma once
// A graph with symbols, for one particular shape.
#include <cstdint>
#include <map>
#include <string>

#include "ir/graph.h"

namespace rutter::passes {

/// Gives every symbol a value: types, symbolic contents and constraints become constants, rutter.ShapeValue nodes
/// become Constant values. The oracle can run the result. UserError if a constraint does not hold.
void bindSymbols(ir::Graph& g, const std::map<std::string, int64_t>& symbols);

}  // namespace rutter::passes
