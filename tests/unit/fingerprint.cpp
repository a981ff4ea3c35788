#include "base/fingerprint.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace rutter {
namespace {

TEST(Fingerprint, NamesWhatDiffers) {
  Fingerprint here = Fingerprint::ofMachine();
  EXPECT_EQ(here.facts.size(), 6u);
  EXPECT_EQ(Fingerprint::parse(here.text()).facts, here.facts);
  EXPECT_TRUE(here.differences(here).empty());
  Fingerprint there = here;
  there.facts["cores"] = "999";
  there.facts["shapes"] = "x:1x3";  // not a fact of the machine here: not compared
  there.facts.erase("l2");          // an older fingerprint may lack a fact
  EXPECT_EQ(there.differences(here), std::vector<std::string>{"cores: 999 there, " + here.facts["cores"] + " here"});
  EXPECT_THROW(Fingerprint::parse("[1]"), UserError);
  EXPECT_THROW(Fingerprint::parse("{"), UserError);
}

}  // namespace
}  // namespace rutter
