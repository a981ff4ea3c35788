#pragma once
// The verifier of graphs between passes.
#include "ir/graph.h"

namespace rutter::passes {

/// Graph::verify, and: every value in use is typed; shape rules agree with the types that passes gave; layouts are
/// permutations of the right rank. InternalError otherwise.
void checkGraph(const ir::Graph& g);

}  // namespace rutter::passes
