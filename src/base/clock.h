#pragma once
#include <time.h>

namespace rutter {

/// Seconds of CLOCK_MONOTONIC: the same clock in every process of the machine.
inline double monotonicSeconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace rutter
