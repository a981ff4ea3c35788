#pragma once
// Which outputs take the memory of an input that dies in the same layer.
#include "codegen/decide.h"

namespace rutter::codegen {

/// Fills Layer::overwrites of every layer that may overwrite (Layer::mayOverwrite). The layers must be in execution
/// order.
void decideInPlace(Decision& d);

}  // namespace rutter::codegen
