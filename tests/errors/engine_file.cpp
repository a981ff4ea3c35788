// Engines that are truncated, altered by one bit, of another version, or cannot be written.
#include "runtime/engine_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"

namespace rutter::runtime {
namespace {

using testing::HasSubstr;

EngineParts smallParts() {
  static const std::string weights(100, 'w');
  EngineParts p;
  p.plan.kernels = {"k0"};
  p.plan.route = "-a=1";
  p.plan.model_name = "m";
  p.code = "not really code";
  p.weights = {{0, std::string_view(weights).substr(0, 10)}, {64, weights}};
  p.features = {CpuFeature::kAvx2};
  p.versions["rutter"] = "0.1.0";
  return p;
}
std::string whyNot(std::string_view bytes) {
  try {
    readEngine(bytes);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(EngineFile, WhatIsWrittenIsRead) {
  std::string bytes = writeEngine(smallParts());
  EXPECT_EQ(bytes, writeEngine(smallParts()));
  auto image = readEngine(bytes);
  EXPECT_EQ(image.code, "not really code");
  ASSERT_EQ(image.weights.size(), 164u);
  EXPECT_EQ(image.weights.substr(0, 11), std::string("wwwwwwwwww\0", 11));
  EXPECT_EQ(image.weights.back(), 'w');
  EXPECT_EQ(image.manifest.route, "-a=1");
  EXPECT_EQ(image.manifest.features, CpuFeatures{CpuFeature::kAvx2});
  EXPECT_EQ(image.manifest.versions.at("rutter"), "0.1.0");
  EXPECT_EQ(readFormatVersion(bytes), kFormatVersion);
}
TEST(EngineFile, EveryTruncationSaysSo) {
  std::string bytes = writeEngine(smallParts());
  EXPECT_THAT(whyNot(""), HasSubstr("not a Rutter engine"));
  for (size_t n = 1; n < bytes.size(); n++)
    ASSERT_THAT(whyNot(std::string_view(bytes).substr(0, n)), HasSubstr("truncated")) << n;
  EXPECT_THAT(whyNot(bytes + "x"), HasSubstr("1 bytes after its end"));
}
TEST(EngineFile, EveryFlippedBitIsFound) {
  const std::string bytes = writeEngine(smallParts());
  std::string bad = bytes;
  for (size_t i = 0; i < bytes.size() * 8; i++) {
    bad[i / 8] = char(bytes[i / 8] ^ (1 << i % 8));
    ASSERT_NE(whyNot(bad), "") << "bit " << i;
    bad[i / 8] = bytes[i / 8];
  }
}
TEST(EngineFile, AlterationsNameTheSection) {
  const std::string bytes = writeEngine(smallParts());
  auto flip = [&](size_t at) {
    std::string bad = bytes;
    bad[at] ^= 1;
    return whyNot(bad);
  };
  EXPECT_THAT(flip(bytes.find("not really")), HasSubstr("section 'code'"));
  EXPECT_THAT(flip(bytes.size() - 1), HasSubstr("section 'weights'"));
  EXPECT_THAT(flip(4096 + 8), HasSubstr("section 'plan'"));
  EXPECT_THAT(flip(70), HasSubstr("header"));
  EXPECT_THAT(flip(4000), HasSubstr("padding"));
}
TEST(EngineFile, ForeignFilesAndVersions) {
  EXPECT_THAT(whyNot("\x7f"
                     "ELF and more"),
              HasSubstr("not a Rutter engine"));
  std::string bytes = writeEngine(smallParts());
  uint32_t v = kFormatVersion + 1;
  std::memcpy(bytes.data() + 8, &v, 4);
  EXPECT_THAT(whyNot(bytes), HasSubstr("format version 2"));
}
TEST(EngineFile, FilesAndBytesAreTheSame) {
  auto path = std::filesystem::path(testing::TempDir()) / ("engine." + std::to_string(getpid()));
  writeEngineFile(smallParts(), path);
  EXPECT_EQ(Blob::map(path)->bytes(), writeEngine(smallParts()));
  // Written again over the old one; nothing else is left in the folder.
  writeEngineFile(smallParts(), path);
  int beside = 0;
  for (auto& e : std::filesystem::directory_iterator(path.parent_path()))
    beside += e.path().filename().string().starts_with(path.filename().string());
  EXPECT_EQ(beside, 1);
  std::filesystem::remove(path);
}
template <typename E>
std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}
TEST(EngineFile, UnwritablePaths) {
  EXPECT_THAT(message<DeviceError>([] { writeEngineFile(smallParts(), "/no/such/folder/x.engine"); }),
              AllOf(HasSubstr("'/no/such/folder/x.engine'"), HasSubstr("No such file")));
  EXPECT_THAT(message<DeviceError>([] { writeFileAtomically("/dev/full/x", "abc"); }), HasSubstr("Not a directory"));
  EXPECT_THAT(message<DeviceError>([] { writeFileAtomically(testing::TempDir(), "abc"); }), HasSubstr("cannot"));
}
TEST(EngineFile, UnreadablePaths) {
  EXPECT_THAT(message<UserError>([] { Blob::map("/no/such.engine"); }), HasSubstr("No such file"));
  EXPECT_THAT(message<UserError>([] { Blob::map("/tmp"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message<UserError>([] { Blob::map("/dev/null"); }), HasSubstr("not a regular file"));
}
TEST(EngineFile, AFullDiskLeavesNothing) {
  auto path = std::filesystem::path(testing::TempDir()) / ("full." + std::to_string(getpid()));
  // In a child: the limit on file sizes stands in for a full disk (SIGXFSZ is ignored so that write() fails).
  EXPECT_EXIT(
      {
        signal(SIGXFSZ, SIG_IGN);
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 4096;
        setrlimit(RLIMIT_FSIZE, &limit);
        std::string why = message<DeviceError>([&] { writeFileAtomically(path, std::string(10000, 'x')); });
        _exit(why.find("File too large") != std::string::npos ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  for (auto& e : std::filesystem::directory_iterator(path.parent_path()))
    EXPECT_FALSE(e.path().filename().string().starts_with(path.filename().string())) << e.path();
}

}  // namespace
}  // namespace rutter::runtime
