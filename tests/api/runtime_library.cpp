// librutter_runtime.so runs engines and needs nothing that builds them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

std::string output(const std::string& command) {
  std::string out;
  FILE* p = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (size_t n; p && (n = fread(buffer, 1, sizeof buffer, p)) > 0;) out.append(buffer, n);
  if (!p || pclose(p) != 0) out += "\ncommand failed";
  return out;
}
const std::string kLibrary = RUTTER_BINARY_DIR "/lib/librutter_runtime.so";

TEST(RuntimeLibrary, LinksNeitherLlvmNorTheBuilder) {
  std::string needed = output("ldd " + kLibrary);
  EXPECT_THAT(needed, testing::HasSubstr("libc.so"));
  for (const char* other : {"LLVM", "librutter.so", "librutter_cpu", "sqlite", "protobuf", "command failed"})
    EXPECT_THAT(needed, testing::Not(testing::HasSubstr(other)));
}
TEST(RuntimeLibrary, HoldsNoSymbolsOfOtherRooms) {
  std::string symbols = output("nm -DC " + kLibrary);
  EXPECT_THAT(symbols, testing::HasSubstr("rutterCreateInferRuntime"));
  EXPECT_THAT(symbols, testing::HasSubstr("rutter::runtime::Context::run()"));
  for (const char* other :
       {"llvm::", "protozero::", "rutter::knobs::", "rutter::frontend::", "rutter::passes::", "rutter::codegen::",
        "rutter::compiler::", "rutter::cpu::", "rutter::tuner::", "command failed"})
    EXPECT_THAT(symbols, testing::Not(testing::HasSubstr(other)));
}

}  // namespace
