// Files are read whole and written whole: whatever goes wrong, the old one stays and nothing else is left.
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace rutter {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Files : testing::Test {
  Files() {
    std::string path = testing::TempDir() + "rutter-file-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    dir = path;
  }
  ~Files() override { fs::remove_all(dir); }
  size_t count() const { return size_t(std::distance(fs::directory_iterator(dir), fs::directory_iterator())); }
  fs::path dir;
};
template <typename E, typename F>
std::string message(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}
// A process that has begun to write `path`, and ends at once or when it is told to.
struct Writer {
  explicit Writer(const std::string& path) {
    int begun[2], go[2];
    if (pipe(begun) != 0 || pipe(go) != 0) throw DeviceError("no pipe");
    pid = fork();
    if (pid == 0) {
      AtomicFile f(path);
      f.write("theirs");
      char c = 1;
      if (write(begun[1], &c, 1) != 1 || read(go[0], &c, 1) != 1) _exit(1);
      f.finish();
      _exit(0);
    }
    char c;
    EXPECT_EQ(read(begun[0], &c, 1), 1);
    tell = go[1];
    for (int fd : {begun[0], begun[1], go[0]}) close(fd);
  }
  ~Writer() { close(tell); }
  int end() {
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
  }
  pid_t pid;
  int tell;
};

TEST_F(Files, ReadWhole) {
  const std::string path = dir / "f";
  for (size_t size : {0, 1, 4096, 65536, 300000}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; i++) bytes[i] = char(i * 31 >> 3);
    writeFileAtomically(path, bytes);
    EXPECT_TRUE(readWholeFile(path) == bytes) << size;
  }
  EXPECT_THAT(readWholeFile("/proc/self/status"), HasSubstr("Name:"));  // says that it has 0 bytes
  EXPECT_EQ(message<UserError>([&] { readWholeFile(dir / "none"); }),
            fmt::format("cannot read '{}/none': No such file or directory", dir.string()));
  EXPECT_THAT(message<UserError>([&] { readWholeFile(dir); }), HasSubstr("Is a directory"));
}

TEST_F(Files, ReplacedWholeWithNothingBeside) {
  const std::string path = dir / "f";
  writeFileAtomically(path, "one");
  {
    AtomicFile f(path);
    f.write("t");
    EXPECT_EQ(readWholeFile(path), "one");
    f.write("wo");
    f.finish();
  }
  EXPECT_EQ(readWholeFile(path), "two");
  EXPECT_EQ(count(), 1u);
  writeFileAtomically(dir / std::string(255, 'n'), "longest name there is");
  EXPECT_EQ(count(), 2u);
}

TEST_F(Files, WhatFailsLeavesTheOldFile) {
  const std::string path = dir / "f";
  writeFileAtomically(path, "old");
  {
    AtomicFile f(path);
    f.write("half");
  }
  EXPECT_EQ(readWholeFile(path), "old");
  EXPECT_EQ(count(), 1u);
  // The name cannot be taken: a folder has come there.
  fs::create_directories(dir / "g" / "full");
  fs::rename(dir / "g", dir / "moved");
  {
    AtomicFile f(dir / "g");
    f.write("x");
    fs::rename(dir / "moved", dir / "g");
    EXPECT_THAT(message<DeviceError>([&] { f.finish(); }), HasSubstr("cannot write '" + (dir / "g").string()));
  }
  EXPECT_TRUE(fs::is_directory(dir / "g" / "full"));
  EXPECT_EQ(count(), 2u);
}

TEST_F(Files, LinksStay) {
  const std::string file = dir / "f", link = dir / "l", chain = dir / "c";
  writeFileAtomically(file, "old");
  fs::create_symlink("f", link);  // relative to its folder
  fs::create_symlink(link, chain);
  writeFileAtomically(chain, "new");
  EXPECT_EQ(readWholeFile(file), "new");
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(chain));
  fs::create_symlink(dir / "none yet", dir / "d");
  writeFileAtomically(dir / "d", "x");
  EXPECT_EQ(readWholeFile(dir / "none yet"), "x");
}

// As /dev/stdout is where a shell redirected it to: whoever writes there goes on behind it.
TEST_F(Files, OpenDescriptorsAreWrittenDirectly) {
  const std::string file = dir / "f", link = dir / "out";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(fd, 0);
  fs::create_symlink(fmt::format("/proc/self/fd/{}", fd), link);
  EXPECT_TRUE(isOpenDescriptor(link));
  EXPECT_TRUE(isOpenDescriptor("/dev/stdout"));
  EXPECT_FALSE(isOpenDescriptor(file));
  EXPECT_TRUE(writeAll(fd, "a"));
  writeFileAtomically(link, "b");
  EXPECT_TRUE(writeAll(fd, "c"));
  ::close(fd);
  EXPECT_EQ(readWholeFile(file), "abc");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(count(), 2u);
}

TEST_F(Files, WhyAPlaceCannotBeWritten) {
  EXPECT_EQ(whyUnwritable(dir / "f"), "");
  EXPECT_EQ(whyUnwritable("f"), "");
  EXPECT_EQ(whyUnwritable("/dev/stdout"), "");
  EXPECT_EQ(whyUnwritable("/dev/fd/9876"), "no file 9876 is open");
  EXPECT_EQ(whyUnwritable("/dev/fd/4294967297"), "no file 2147483647 is open");  // not 1, however it is counted
  EXPECT_THAT(whyUnwritable(dir / "no" / "f"), testing::HasSubstr("the folder " + (dir / "no").string() + ": No such"));
  std::ofstream(dir / "f") << "x";
  EXPECT_EQ(whyUnwritable(dir / "f" / "g"), (dir / "f").string() + " is a file, not a folder");
  fs::create_symlink("b", dir / "a");
  fs::create_symlink("a", dir / "b");
  EXPECT_EQ(whyUnwritable(dir / "a"), "its links lead in a circle");
  EXPECT_THAT(message<DeviceError>([&] { writeFileAtomically(dir / "a", "x"); }), testing::HasSubstr("symbolic links"));
  EXPECT_TRUE(fs::is_symlink(dir / "a") && fs::is_symlink(dir / "b"));
}

TEST_F(Files, ErrorsNameFileAndReason) {
  EXPECT_EQ(
      message<DeviceError>([&] { writeFileAtomically(dir / "no" / "f", ""); }),
      fmt::format("cannot write '{0}/no/f': no file can be made in the folder '{0}/no/': No such file or directory",
                  dir.string()));
  EXPECT_EQ(message<DeviceError>([&] { writeFileAtomically(dir, ""); }),
            fmt::format("cannot write '{}': Is a directory", dir.string()));
  EXPECT_EQ(message<DeviceError>([] { writeFileAtomically("/dev/full", "x"); }),
            "cannot write '/dev/full': No space left on device: free some");
  writeFileAtomically("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, AKilledWritersTemporaryGoesWithTheNextWrite) {
  const std::string path = dir / "f";
  writeFileAtomically(path, "old");
  writeFileAtomically(path + ".tmp-mine", "no temporary");
  writeFileAtomically(dir / "f2.tmp-1-1", "of another file");
  Writer w(path);
  EXPECT_EQ(count(), 4u);
  kill(w.pid, SIGKILL);
  w.end();
  EXPECT_EQ(readWholeFile(path), "old");
  EXPECT_EQ(count(), 4u);
  writeFileAtomically(path, "new");
  EXPECT_EQ(readWholeFile(path), "new");
  EXPECT_EQ(count(), 3u);
}

TEST_F(Files, ALivingWriterIsLeftAlone) {
  const std::string path = dir / "f";
  Writer w(path);
  writeFileAtomically(path, "ours");
  EXPECT_EQ(count(), 2u);
  EXPECT_EQ(readWholeFile(path), "ours");
  ASSERT_EQ(write(w.tell, "g", 1), 1);
  EXPECT_EQ(w.end(), 0);
  EXPECT_EQ(readWholeFile(path), "theirs");
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, ManyWritersNeverMix) {
  const std::string path = dir / "f";
  writeFileAtomically(path, std::string(20000, 'a'));
  std::vector<std::thread> threads;
  for (char c : {'a', 'b', 'c'})
    threads.emplace_back([&, c] {
      for (int i = 0; i < 50; i++) {
        AtomicFile f(path);
        for (int k = 0; k < 20; k++) f.write(std::string(1000, c));
        f.finish(false);
        const std::string now = readWholeFile(path);
        EXPECT_EQ(now.size(), 20000u);
        EXPECT_EQ(now.find_first_not_of(now[0]), now.npos);
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, TheHookStandsOnBothSidesOfTheRename) {
  static std::string path, seen;
  path = dir / "f";
  seen.clear();
  writeFileAtomically(path, "one");
  writeFileAtomically(path, "two",
                      [](const char* point) { seen += fmt::format("{}={} ", point, readWholeFile(path)); });
  EXPECT_EQ(seen, "rename.before=one rename.after=two ");
}

// A limit of the shell's (ulimit -f) is the user's to mend, like a full disk: no fault of what is written.
TEST_F(Files, ALimitOnTheirSizeIsSaid) {
  const std::string path = dir / "a";
  errno = EFBIG;
  EXPECT_EQ(message<DiskFullError>([&] { failWriting(path); }),
            "cannot write '" + path + "': File too large: allow larger files (ulimit -f)");
}

}  // namespace
}  // namespace rutter
