#pragma once
// The real backend of workers: Rutter's compiler and runtime.
#include "tuner/backend.h"

namespace rutter::tuner {

std::unique_ptr<Backend> makeCompilerBackend();

}  // namespace rutter::tuner
