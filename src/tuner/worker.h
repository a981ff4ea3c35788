#pragma once
// libexec/rutter/rutter-worker: supervisor, worker and measuring process are modes of one program.
#include "tuner/backend.h"

namespace rutter::tuner {

/// `rutter-worker supervisor|worker|measure`; talks through descriptor 3. Anything else prints what the program is for
/// and returns 1. Never throws.
int workerMain(int argc, char** argv, const BackendFactory& makeBackend);

int superviseMain(int fd, const std::string& program, const BackendFactory& makeBackend);

}  // namespace rutter::tuner
