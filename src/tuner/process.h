#pragma once
// Processes that must not outlive their maker. What remains possible where PID namespaces are not allowed: a process
// that a candidate started and that left its process group (setsid), if worker and supervisor are both killed at once.
#include <sys/types.h>

#include <string>
#include <vector>

namespace rutter::tuner {

/// A program executed anew; talks through a socket that is its descriptor 3.
struct Process {
  pid_t pid = -1;
  int fd = -1;  ///< our end; close-on-exec
};

/// From a process that may have threads and signal handlers of its own (the host): posix_spawn into a new process
/// group; every other descriptor is closed. DeviceError if it cannot be executed.
Process spawnFromHost(const std::string& program, const std::vector<std::string>& args);
/// From the single-threaded supervisor: a new process group, and a PID namespace where that is allowed (so that
/// killing it kills all it ever started). Standard output and error go to `logFile` (appended).
Process spawnWorker(const std::string& program, const std::vector<std::string>& args, const std::string& logFile);
/// Kills the process group (SIGKILL), reaps the process, closes the socket.
void destroy(Process& p);

/// First thing in a worker: die with the parent, become reaper of orphans, no core dumps.
void becomeWorker();
/// First thing in a forked child: a group of its own; die with `parent`. Ends the child at once if the parent is gone.
void becomeChild(pid_t parent);
/// Kills everything that descends from this process and reaps it.
void killDescendants();
/// InternalError if this process has more than one thread (from /proc/self/task).
void assertSingleThreaded();
int64_t residentBytes(pid_t pid);  ///< 0 if it is gone
/// "signal 11 (segmentation fault)".
std::string signalText(int signal);
/// The installed worker program: $RUTTER_WORKER, libexec beside the library, or the build folder's bin.
/// UserError if there is none.
std::string findWorkerProgram();

}  // namespace rutter::tuner
