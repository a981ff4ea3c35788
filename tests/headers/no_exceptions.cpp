// Compiled with -fno-exceptions -fno-rtti: the public headers need neither.
#include <rutter/rutter.h>

extern "C" bool rutterHeadersCompile(rutter::ILogger& logger) {
  rutter::IRuntime* r = rutter::createInferRuntime(logger);
  bool ok = r != nullptr;
  delete r;
  return ok;
}
