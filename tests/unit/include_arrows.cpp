// Who may include whom: docs/architecture.md draws the same arrows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace {
namespace fs = std::filesystem;

// Direct arrows; what a room may include is their transitive closure, less the exceptions below.
const std::map<std::string, std::set<std::string>> kArrows = {
    {"base", {}},
    {"knobs", {"base"}},
    {"ir", {"base"}},
    {"ops", {"ir"}},
    {"onnx", {"ops"}},
    {"runtime", {"ops"}},
    {"passes", {"knobs", "ops"}},
    {"codegen", {"passes", "runtime"}},
    {"cpu", {"codegen"}},
    {"compiler", {"onnx", "codegen"}},
    {"tuner", {"compiler"}},
    {"api", {"tuner"}},
};
// The CPU target must not share mistakes with the oracle, nor see graphs, plans or passes.
const std::map<std::string, std::set<std::string>> kForbidden = {{"cpu", {"ops", "passes"}}};

std::set<std::string> reach(const std::string& room) {
  std::set<std::string> seen = {room};
  std::vector<std::string> stack = {room};
  while (!stack.empty()) {
    std::string r = stack.back();
    stack.pop_back();
    for (const std::string& d : kArrows.at(r))
      if (seen.insert(d).second) stack.push_back(d);
  }
  return seen;
}

TEST(Architecture, RoomsIncludeOnlyWhatTheArrowsAllow) {
  const std::regex include(R"re(^\s*#\s*include\s*"([a-z_]+)/([^"]+)")re");
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(RUTTER_SOURCE_DIR "/src")) {
    std::string ext = entry.path().extension();
    if (ext != ".h" && ext != ".cpp") continue;
    std::string relative = fs::relative(entry.path(), RUTTER_SOURCE_DIR "/src");
    std::string room = relative.substr(0, relative.find('/'));
    ASSERT_TRUE(kArrows.count(room)) << "room src/" << room << " has no place in the arrows";
    std::set<std::string> allowed = reach(room);
    if (auto f = kForbidden.find(room); f != kForbidden.end())
      for (const std::string& r : f->second) allowed.erase(r);
    // The runtime half of the API is linked into librutter_runtime.
    if (relative.rfind("api/runtime/", 0) == 0) {
      allowed = reach("runtime");
      allowed.insert("api");
    }
    files++;
    std::ifstream in(entry.path());
    std::string line;
    for (int n = 1; std::getline(in, line); n++) {
      std::smatch m;
      if (!std::regex_search(line, m, include)) continue;
      std::string to = m[1];
      if (!kArrows.count(to)) continue;
      EXPECT_TRUE(allowed.count(to)) << "src/" << relative << ":" << n << " includes " << to << "/" << m[2].str()
                                     << ", which " << room << " may not see";
    }
  }
  EXPECT_GT(files, 100);
}

// LLVM and lld in every spelling: C++ and C API, either kind of quotes.
bool includesLlvm(const std::string& line) {
  static const std::regex include(R"re(^\s*#\s*include\s*[<"](llvm|llvm-c|lld|clang|clang-c)/)re");
  return std::regex_search(line, include);
}

TEST(Architecture, OnlyTheCpuTargetSeesLlvm) {
  for (const char* seen :
       {"#include <llvm/IR/Module.h>", "# include \"lld/Common/Driver.h\"", "  #include <llvm-c/Core.h>"})
    EXPECT_TRUE(includesLlvm(seen)) << seen;
  EXPECT_FALSE(includesLlvm("#include \"cpu/llvm/x.h\""));
  int files = 0, inTarget = 0;
  for (const char* top : {"src", "tools", "bench"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(RUTTER_SOURCE_DIR) / top)) {
      const std::string relative = fs::relative(entry.path(), RUTTER_SOURCE_DIR);
      if (!entry.is_regular_file()) continue;
      const bool target = relative.rfind("src/cpu/", 0) == 0;
      files++;
      std::ifstream in(entry.path());
      std::string line;
      for (int n = 1; std::getline(in, line); n++) {
        if (!includesLlvm(line)) continue;
        inTarget += target;
        EXPECT_TRUE(target) << relative << ":" << n << ": " << line;
      }
    }
  EXPECT_GT(files, 200);
  EXPECT_GT(inTarget, 5) << "the target itself includes none: the pattern is wrong";
}
}  // namespace
