#pragma once
#include "net.h"

namespace rutter::test {

/// A graph of some `steps` operators from the families that have kernels: convolutions, products, pointwise operators,
/// reductions, rows, poolings and everything that only moves data. Values stay within a few powers of ten.
void randomNet(Net& n, unsigned seed, int steps);

}  // namespace rutter::test
