// A library of a target that was built from another list of knobs is refused before any of its code runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/tactic.h"
#include "knobs/list_hash.h"

namespace rutter {
namespace {

using testing::HasSubstr;

TEST(KnobList, LibrariesOfOtherListsAreRefused) {
  // One with another list, and one from before there was a comparison.
  for (const char* file : {"libtest_other_knobs.so", "libtest_kernels.so"}) {
    const std::string path = std::string(RUTTER_BINARY_DIR "/lib/") + file;
    try {
      codegen::startTargetLibrary(path);
      ADD_FAILURE() << path << " was taken";
    } catch (const DeviceError& e) {
      EXPECT_THAT(e.what(), HasSubstr(path));
      EXPECT_THAT(e.what(), HasSubstr("built from another list of knobs"));
      EXPECT_THAT(e.what(), testing::Not(HasSubstr("\n")));
    }
  }
  EXPECT_THROW(codegen::startTargetLibrary(RUTTER_BINARY_DIR "/lib/absent.so"), UserError);
}

TEST(KnobList, NamesDomainsAndOrderCount) {
  using knobs::detail::mix;
  const uint64_t start = 0xcbf29ce484222325u;
  auto list = [&](std::initializer_list<std::string_view> words) {
    uint64_t h = start;
    for (auto w : words) h = mix(h, w);
    return h;
  };
  const uint64_t h = list({"bool", "a:b", "on|off", "ints", "c:d", "1|2"});
  EXPECT_NE(h, list({"ints", "c:d", "1|2", "bool", "a:b", "on|off"}));
  EXPECT_NE(h, list({"bool", "a:x", "on|off", "ints", "c:d", "1|2"}));
  EXPECT_NE(h, list({"bool", "a:b", "on|off", "ints", "c:d", "1|2|4"}));
  EXPECT_NE(h, list({"bool", "a:bon", "|off", "ints", "c:d", "1|2"}));  // where one word ends and the next begins
  EXPECT_NE(mix(start, int64_t(1)), mix(start, int64_t(256)));
  EXPECT_NE(knobs::kListHash, start);
}

}  // namespace
}  // namespace rutter
