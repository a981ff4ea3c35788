// Files that are no model: each gives one line that says so.
#include <gmock/gmock.h>

#include <random>

#include "onnx_writer.h"

namespace rutter::onnxwriter {
namespace {

using testing::HasSubstr;

std::string fileError(const std::string& path) {
  try {
    frontend::importFile(path);
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    return e.what();
  }
  ADD_FAILURE() << path << " imported without an error";
  return "";
}

TEST(OnnxFiles, Missing) {
  EXPECT_THAT(fileError("/nowhere/net.onnx"), HasSubstr("cannot open /nowhere/net.onnx: No such file"));
}
TEST(OnnxFiles, Folder) {
  TempFolder t;
  EXPECT_THAT(fileError(t.path()), HasSubstr("it is a folder"));
}
TEST(OnnxFiles, Empty) {
  TempFolder t;
  std::string e = fileError(t.write("net.onnx", ""));
  EXPECT_THAT(e, HasSubstr("net.onnx"));
  EXPECT_THAT(e, HasSubstr("empty"));
}
TEST(OnnxFiles, CutShortAnywhere) {
  const std::string whole = reluModel().bytes();
  importText(whole);
  for (size_t n = 1; n < whole.size(); n++) {
    try {
      importText(whole.substr(0, n));
      // A cut between two fields of the model may leave a whole model: the opset is the last.
      ADD_FAILURE() << "a prefix of " << n << " of " << whole.size() << " bytes imported";
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    }
  }
  EXPECT_THAT(importError(whole.substr(0, whole.size() / 2)), HasSubstr("cut short"));
}
TEST(OnnxFiles, RandomBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; i++) {
    std::string s(random() % 300 + 1, ' ');
    for (char& c : s) c = char(random());
    importError(s);
  }
}
TEST(OnnxFiles, DamagedBytesNeverCrash) {
  const std::string whole = reluModel().bytes();
  std::mt19937 random(2);
  for (int i = 0; i < 5000; i++) {
    std::string s = whole;
    for (int k = random() % 4; k >= 0; k--) s[random() % s.size()] = char(random());
    try {
      importText(s);
    } catch (const UserError&) {
    }
  }
}
// The same over models with weights, symbols, functions, subgraphs and old operators.
TEST(OnnxFiles, DamagedSeedsNeverCrash) {
  int models = 0, imported = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RUTTER_SOURCE_DIR "/tests/fuzz/seeds/onnx")) {
    std::ifstream f(entry.path(), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(f)), {});
    models++;
    std::mt19937 random(3);
    for (int i = 0; i < 3000; i++) {
      std::string s = whole;
      for (int k = random() % 3; k >= 0; k--) {
        const size_t at = random() % s.size();
        switch (random() % 4) {
          case 0:
            s[at] = char(random());
            break;
          case 1:
            s[at] = char(s[at] ^ (1 << random() % 8));
            break;
          case 2:
            s.erase(at, random() % 8);
            break;
          default:
            s.insert(at, s.substr(random() % s.size(), random() % 16));
            break;
        }
        if (s.empty()) break;
      }
      try {
        importText(s).graph->verify();
        imported++;
      } catch (const UserError& e) {
        ASSERT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
      }
    }
  }
  EXPECT_GE(models, 6);
  EXPECT_GT(imported, 100);  // damage to names and weights leaves a model
}
TEST(OnnxFiles, GitLfsPointer) {
  EXPECT_THAT(importError("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), HasSubstr("git lfs pull"));
}
TEST(OnnxFiles, NoGraph) {
  EXPECT_THAT(importError(message([](auto& w) { w.add_int64(1, 8); })), HasSubstr("holds no graph"));
}
TEST(OnnxFiles, Over2GiB) {
  TempFolder t;
  std::string path = t.write("big.onnx", reluModel().bytes());
  std::filesystem::resize_file(path, (int64_t{2} << 30) + 100);  // sparse: takes no disk
  EXPECT_THAT(fileError(path), HasSubstr("external data"));
}

}  // namespace
}  // namespace rutter::onnxwriter
