// A process's own folder, and what is left of those of processes that were killed.
#include "base/private_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace rutter {
namespace {

namespace fs = std::filesystem;

TEST(PrivateFolder, SweepsWhatTheKilledLeave) {
  std::string parent = testing::TempDir() + "rutter-private-XXXXXX";
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  const fs::path dir = parent;
  // A user's own by such a name has no lock; what a killed process left has one.
  fs::create_directory(dir / "own-a");
  std::ofstream(dir / "own-a" / "1.engine") << "x";
  fs::create_directory(dir / "own-b");
  std::ofstream(dir / "own-b" / "lock");
  fs::create_directory(dir / "other");
  // One that lives, in another process.
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready) + pipe(go), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    {
      PrivateFolder f(parent, "live-");
      char c = 1;
      if (write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 1) _exit(1);
      if (!fs::exists(f.path() + "/lock")) _exit(2);
    }
    _exit(0);
  }
  char c;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  {
    PrivateFolder own(parent, "own-"), live(parent, "live-");
    EXPECT_TRUE(fs::exists(dir / "own-a" / "1.engine"));
    EXPECT_FALSE(fs::exists(dir / "own-b"));
    EXPECT_TRUE(fs::exists(dir / "other"));
    EXPECT_TRUE(fs::exists(own.path()));
  }
  ASSERT_EQ(write(go[1], &c, 1), 1);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
  fs::remove(dir / "other");
  fs::remove_all(dir / "own-a");
  EXPECT_TRUE(fs::is_empty(dir)) << "all remove their own";
  fs::remove_all(dir);
}

}  // namespace
}  // namespace rutter
