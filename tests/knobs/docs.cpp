// docs/knobs.md says what the declarations say. After a change of *.def:
//   RUTTER_UPDATE_DOCS=1 build/bin/test_knobs --gtest_filter='KnobDocs*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "knobs/registry.h"
#include "knobs/route.h"

namespace rutter::knobs {
namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(KnobDocs, AreUpToDate) {
  const std::string docs = RUTTER_SOURCE_DIR "/docs/";
  // Written by bench/knobs: knob -> what it gained where, with intervals.
  std::unordered_map<std::string, std::string> measured;
  if (auto text = slurp(docs + "knobs-measured.json"); !text.empty())
    measured = nlohmann::json::parse(text).get<std::unordered_map<std::string, std::string>>();
  for (const auto& [name, note] : measured)
    EXPECT_NE(Registry::builtin().find(name), nullptr) << name << " is measured but not declared";
  const auto want = knobsMarkdown(Registry::builtin(), measured);
  if (std::getenv("RUTTER_UPDATE_DOCS")) std::ofstream(docs + "knobs.md", std::ios::binary) << want;
  EXPECT_EQ(slurp(docs + "knobs.md") == want, true)
      << "docs/knobs.md is out of date: run RUTTER_UPDATE_DOCS=1 " RUTTER_BINARY_DIR
         "/bin/test_knobs --gtest_filter='KnobDocs*'";
}

// "-area:knob", with what a route may add: "@scope*=value", "=[a|b]", "=value".
TEST(KnobDocs, EveryKnobMentionedInADocumentExists) {
  std::vector<std::filesystem::path> files{RUTTER_SOURCE_DIR "/README.md"};
  for (const auto& e : std::filesystem::directory_iterator(RUTTER_SOURCE_DIR "/docs"))
    if (e.path().extension() == ".md") files.push_back(e.path());
  const std::regex mention(R"re((^|[^A-Za-z0-9_-])(-[a-z]+:[a-z][a-z0-9_]*)(@[^=\s"`]*)?(=([A-Za-z0-9_.]+))?)re");
  size_t mentions = 0;
  for (const auto& file : files) {
    std::istringstream text(slurp(file.string()));
    std::string line;
    for (int number = 1; std::getline(text, line); number++)
      for (std::sregex_iterator m(line.begin(), line.end(), mention), end; m != end; ++m) {
        const std::string knob = (*m)[2], value = (*m)[5];
        if (m->suffix().str().starts_with(" ...")) continue;  // cut off, as a progress line is
        mentions++;
        const std::string where = file.filename().string() + ":" + std::to_string(number) + ": " + line;
        if (!Registry::builtin().find(knob)) {
          ADD_FAILURE() << where << "\nmentions the knob " << knob << ", which does not exist";
          continue;
        }
        if (value.empty()) continue;
        try {
          Route::parse(knob + (*m)[3].str() + "=" + value);
        } catch (const std::exception& e) {
          ADD_FAILURE() << where << "\nmentions " << m->str() << ", which is refused: " << e.what();
        }
      }
  }
  EXPECT_GT(mentions, 100u) << "the documents are not where this test looks, or it reads them wrongly";
}

}  // namespace
}  // namespace rutter::knobs
