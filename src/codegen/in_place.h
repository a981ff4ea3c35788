#pragma once
// When memory is in use, and which outputs take that of an input that dies in the same layer.
#include "codegen/decide.h"

namespace rutter::codegen {

/// Fills Decision::lifetimes. The layers must be in execution order.
void findLifetimes(Decision& d);
/// Fills Layer::overwrites of every layer that may overwrite (Layer::mayOverwrite), from the lifetimes.
void decideInPlace(Decision& d);

}  // namespace rutter::codegen
