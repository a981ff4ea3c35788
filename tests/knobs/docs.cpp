// docs/knobs.md says what the declarations say. After a change of *.def:
//   RUTTER_UPDATE_DOCS=1 build/bin/test_knobs --gtest_filter='KnobDocs*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "knobs/registry.h"

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

}  // namespace
}  // namespace rutter::knobs
