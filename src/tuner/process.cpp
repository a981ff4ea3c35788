#include "tuner/process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tuner/hook.h"

extern char** environ;

namespace rutter::tuner {
namespace {

constexpr int kSocket = 3;

// Neither end takes the place of a standard stream, or of kSocket, if one of these is closed.
void makePair(int fds[2]) {
  int low[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) != 0)
    throw DeviceError("socketpair: {}", strerror(errno));
  for (int i = 0; i < 2; i++) fds[i] = fcntl(low[i], F_DUPFD_CLOEXEC, kSocket + 1);
  const int error = errno;
  ::close(low[0]);
  ::close(low[1]);
  if (fds[0] >= 0 && fds[1] >= 0) return;
  for (int i = 0; i < 2; i++)
    if (fds[i] >= 0) ::close(fds[i]);
  throw DeviceError("socketpair: {}", strerror(error));
}

std::vector<char*> argvOf(const std::string& program, const std::vector<std::string>& args) {
  std::vector<char*> v{const_cast<char*>(program.c_str())};
  for (const std::string& a : args) v.push_back(const_cast<char*>(a.c_str()));
  v.push_back(nullptr);
  return v;
}

// Parent of a process, from /proc; -1 if it is gone.
pid_t parentOf(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t end = text.rfind(')');  // the name may hold anything
  int parent = -1;
  if (end == std::string::npos || sscanf(text.c_str() + end + 1, " %*c %d", &parent) != 1) return -1;
  return parent;
}

}  // namespace

Process spawnFromHost(const std::string& program, const std::vector<std::string>& args) {
  int fds[2];
  makePair(fds);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, fds[1], kSocket);
  for (int standard = 0; standard < kSocket; standard++)
    if (fcntl(standard, F_GETFD) < 0) posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, kSocket + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  Process p;
  p.fd = fds[0];
  const int error = posix_spawn(&p.pid, program.c_str(), &actions, &attributes, argvOf(program, args).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(fds[1]);
  if (error) {
    ::close(fds[0]);
    throw DeviceError("cannot execute {}: {}", program, strerror(error));
  }
  return p;
}

Process spawnWorker(const std::string& program, const std::vector<std::string>& args, const std::string& logFile) {
  assertSingleThreaded();
  int fds[2];
  makePair(fds);
  const std::vector<char*> argv = argvOf(program, args);
  hook("fork.before");
  // As root a PID namespace needs no user namespace; else one of its own; else none.
  pid_t pid = -1;
  for (long flags : {long(CLONE_NEWPID), long(CLONE_NEWUSER | CLONE_NEWPID), 0L}) {
    pid = pid_t(syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));
    if (pid >= 0) break;
  }
  if (pid < 0) {
    const int error = errno;
    ::close(fds[0]);
    ::close(fds[1]);
    throw DeviceError("cannot start a worker: {}", strerror(error));
  }
  if (pid == 0) {
    setpgid(0, 0);
    const int log = ::open(logFile.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, 0);
    ::dup2(log >= 0 ? log : null, 1);
    ::dup2(log >= 0 ? log : null, 2);
    ::dup2(fds[1], kSocket);
    ::close_range(kSocket + 1, ~0u, 0);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  hook("fork.after");
  ::close(fds[1]);
  return {pid, fds[0]};
}

void destroy(Process& p) {
  if (p.pid > 0) {
    ::kill(-p.pid, SIGKILL);
    ::kill(p.pid, SIGKILL);
    while (waitpid(p.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (p.fd >= 0) ::close(p.fd);
  p = {};
}

void becomeWorker() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGPIPE, SIG_IGN);
}

void becomeChild(pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it died before the line above took effect
}

void killDescendants() {
  if (getpid() == 1) {  // in a PID namespace of our own: everything in it
    ::kill(-1, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    return;
  }
  // Orphans come to us, their subreaper; killing one may bring us its children.
  for (int round = 0; round < 100; round++) {
    bool any = false;
    if (DIR* proc = opendir("/proc")) {
      while (dirent* e = readdir(proc)) {
        if (!isdigit(static_cast<unsigned char>(e->d_name[0]))) continue;
        const pid_t pid = pid_t(atoi(e->d_name));
        if (parentOf(pid) != getpid()) continue;
        any = true;
        ::kill(-pid, SIGKILL);
        ::kill(pid, SIGKILL);
      }
      closedir(proc);
    }
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!any) return;
    usleep(1000);
  }
}

void assertSingleThreaded() {
  int threads = 0;
  if (DIR* tasks = opendir("/proc/self/task")) {
    while (dirent* e = readdir(tasks)) threads += e->d_name[0] != '.';
    closedir(tasks);
  }
  RUTTER_CHECK(threads == 1, "this process has {} threads and must not fork", threads);
}

int64_t residentBytes(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/statm");
  int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::string signalText(int signal) {
  const char* what = sigdescr_np(signal);
  std::string text = what ? what : "unknown";
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("signal {} ({})", signal, text);
}

std::string findWorkerProgram() {
  namespace fs = std::filesystem;
  if (const char* given = getenv("RUTTER_WORKER"); given && *given) return given;
  Dl_info here;
  std::vector<fs::path> places;
  if (dladdr(reinterpret_cast<void*>(&findWorkerProgram), &here) && here.dli_fname) {
    std::error_code error;
    const fs::path lib = fs::canonical(here.dli_fname, error).parent_path();
    places = {lib / "../libexec/rutter/rutter-worker", lib / "../../libexec/rutter/rutter-worker",
              lib / "../bin/rutter-worker", lib / "rutter-worker"};
  }
  for (const fs::path& p : places)
    if (::access(p.c_str(), X_OK) == 0) return p.lexically_normal().string();
  throw UserError("the program rutter-worker is not installed beside the library ({}); set RUTTER_WORKER to its path",
                  places.empty() ? std::string("unknown place") : places[0].string());
}

}  // namespace rutter::tuner
