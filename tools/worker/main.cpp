// rutter-worker: supervisor, workers and measuring processes of the tuner.
#include "tuner/compiler_backend.h"
#include "tuner/worker.h"

int main(int argc, char** argv) {
  return rutter::tuner::workerMain(argc, argv, rutter::tuner::makeCompilerBackend);
}
