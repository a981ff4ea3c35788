// Messages between processes: whole or not at all; and that who forks has no second thread.
#include "tuner/frames.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "tuner/process.h"

namespace rutter::tuner {
namespace {

// A sender that is slower than the receiver's patience: what has begun is read to its end.
TEST(Frames, ASlowFrameArrives) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  std::thread sender([&] {
    int pipe[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pipe), 0);
    sendFrame(pipe[0], FrameType::kKernels, {{"a", 1}}, std::string(3000, 'x'));
    std::string bytes(8192, 0);
    bytes.resize(size_t(read(pipe[1], bytes.data(), bytes.size())));
    for (size_t at = 0; at < bytes.size(); at += 500) {
      EXPECT_GT(write(fds[0], bytes.data() + at, std::min<size_t>(500, bytes.size() - at)), 0);
      usleep(20'000);
    }
    close(pipe[0]), close(pipe[1]);
  });
  Frame f;
  Wait got;
  while ((got = receiveFrame(fds[1], 0.005, f)) == Wait::kTimeout) {
  }
  sender.join();
  EXPECT_EQ(got, Wait::kFrame);
  EXPECT_EQ(f.blob, std::string(3000, 'x'));
  EXPECT_THROW(
      {
        sendFrame(fds[0], FrameType::kKernels, {{"a", 1}}, std::string(3000, 'x'));
        receiveFrame(fds[1], 1, f, -1, {.maxBlob = 2000});
      },
      DeviceError);
  close(fds[0]), close(fds[1]);
}

TEST(Frames, TravelWholeOrNotAtAll) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  sendFrame(fds[0], FrameType::kBuilt, {{"a", 1}}, std::string(100000, 'x'));
  Frame f;
  ASSERT_EQ(receiveFrame(fds[1], 1, f), Wait::kFrame);
  EXPECT_EQ(f.type, FrameType::kBuilt);
  EXPECT_EQ(f.body["a"], 1);
  EXPECT_EQ(f.blob.size(), 100000u);
  EXPECT_EQ(receiveFrame(fds[1], 0, f), Wait::kTimeout);
  ASSERT_EQ(write(fds[0], "RtrF", 4), 4);  // half a header
  EXPECT_THROW(receiveFrame(fds[1], 0.05, f, -1, {.stall = 0.05}), DeviceError);
  close(fds[0]);
  close(fds[1]);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  ASSERT_EQ(write(fds[0], std::string(24, 'z').data(), 24), 24);
  EXPECT_THROW(receiveFrame(fds[1], 1, f), DeviceError);
  close(fds[0]);
  EXPECT_EQ(receiveFrame(fds[1], 1, f), Wait::kClosed);
  EXPECT_THROW(sendFrame(fds[1], FrameType::kEnd), DeviceError);
  close(fds[1]);
}

TEST(Processes, ThreadsAreCounted) {
  assertSingleThreaded();
  std::thread t([] { EXPECT_THROW(assertSingleThreaded(), InternalError); });
  t.join();
}

}  // namespace
}  // namespace rutter::tuner
