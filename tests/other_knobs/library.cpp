// A library of a target as an older or newer build would have left it: its list of knobs is another one, and nothing in
// it may run.
#include <cstdint>
#include <cstdlib>

extern "C" {
extern const uint64_t rutterCpuKnobList;
const uint64_t rutterCpuKnobList = 0x1234567890abcdef;
void rutterCpuStart() {
  std::abort();
}
}
