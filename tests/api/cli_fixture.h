#pragma once
// Runs the command line as a program, in a folder of its own, on a small network.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "onnx_writer.h"

namespace rutter {

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Outcome {
  int code = -1;  // 128 + signal if it died of one
  std::string out, err;
};

class CliProgram : public testing::Test {
 protected:
  std::string dir_ = testing::TempDir() + "rutter_cli_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + "_" + std::to_string(::getpid());
  void SetUp() override {
    std::filesystem::create_directories(dir_);
    write("m.onnx", onnxwriter::reluModel());
    std::ofstream(dir_ + "/x.bin", std::ios::binary).write(reinterpret_cast<const char*>(kInput), sizeof kInput);
    const float right[6] = {0, 2, 0, 4, 5, 0}, wrong[6] = {0, 2, 0, 4, 5, 1};
    std::ofstream(dir_ + "/y.bin", std::ios::binary).write(reinterpret_cast<const char*>(right), sizeof right);
    std::ofstream(dir_ + "/bad.bin", std::ios::binary).write(reinterpret_cast<const char*>(wrong), sizeof wrong);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void write(const std::string& name, const onnxwriter::Model& m) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << m.bytes();
  }
  // Runs in dir_, so that relative names land there.
  Outcome run(std::vector<std::string> args) {
    args.insert(args.begin(), RUTTER_BINARY_DIR "/bin/rutter");
    return finish(start(std::move(args), dir_ + "/stdout"));
  }
  Outcome runInto(std::vector<std::string> args, const std::string& out) {
    args.insert(args.begin(), RUTTER_BINARY_DIR "/bin/rutter");
    return finish(start(std::move(args), out));
  }
  // A line of the shell, in which `rutter` is the program.
  Outcome shell(const std::string& line) {
    return finish(
        start({"/bin/sh", "-c", "rutter() { '" RUTTER_BINARY_DIR "/bin/rutter' \"$@\"; }\n" + line}, dir_ + "/stdout"));
  }
  pid_t start(std::vector<std::string> args, const std::string& out) {
    const auto err = dir_ + "/stderr";
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::vector<char*> argv;
      for (auto& a : args) argv.push_back(a.data());
      argv.push_back(nullptr);
      const int o = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
                e = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(o, 1);
      ::dup2(e, 2);
      ::signal(SIGHUP, SIG_DFL);  // whoever runs the tests may be deaf to it
      if (::chdir(dir_.c_str()) == 0) ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    return pid;
  }
  Outcome finish(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), slurp(dir_ + "/stdout"),
            slurp(dir_ + "/stderr")};
  }
  std::string last(const std::string& text) {
    auto t = text;
    while (t.ends_with('\n')) t.pop_back();
    return t.substr(t.rfind('\n') + 1);
  }
  static constexpr float kInput[6] = {-1, 2, -3, 4, 5, -6};
};

}  // namespace rutter
