// rutter-worker with a synthetic backend: planted times and faults in real processes. The "model" is a JSON file, see
// tests/tuner/world.h. $RUTTER_TEST_KILL = "role point n marker" kills the process of that role at the n-th passing of
// the point, once (the marker file says that it has happened).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "tuner/hook.h"
#include "tuner/journal.h"
#include "tuner/worker.h"
#include "tuner/world.h"

namespace rutter::tuner::test {
namespace {

constexpr int kElements = 64;
float* g_defaultOutput = nullptr;  // what the fault "overwrite" aims at

class Engine : public LoadedEngine {
 public:
  Engine(const World& w, const Json& file, SimClock& clock, uint64_t luck)
      : time_(w, file.at("route"), clock, luck),
        fault_(file.at("fault")),
        route_(file.at("route")),
        layers_(w.layers(file.at("route"))) {}

  void bind(const Tensors& inputs) override {
    input_ = &inputs.at(0).second;
    output_ = ir::Tensor(ir::DType::kF32, {kElements});
    if (route_.empty()) g_defaultOutput = output_.as<float>();
  }
  void poison(uint8_t byte) override { std::memset(output_.mutableData(), byte, size_t(output_.bytes())); }
  Tensors outputs() const override {
    ir::Tensor copy(ir::DType::kF32, {kElements});
    std::memcpy(copy.mutableData(), output_.data(), size_t(copy.bytes()));
    return {{"y", copy}};
  }
  std::vector<LayerTime> profile(int) override { return layers_; }
  void run() override {
    runs_++;
    time_.run();
    if (fault_ == "crash_11" && runs_ == 11) raise(SIGSEGV);
    if (fault_ == "abort" && runs_ == 3) abort();
    if (fault_ == "error" && runs_ == 3) throw UserError("layer conv: index out of range");
    if (fault_ == "hang_run" && runs_ == 7)
      for (;;) pause();
    if (fault_ == "leak") std::memset(leak_ = static_cast<char*>(malloc(size_t(128) << 20)), 1, size_t(128) << 20);
    if (fault_ == "leave" && runs_ == 5) _exit(0);
    if (fault_ == "close" && runs_ == 5) close_range(3, 100, 0);
    if ((fault_ == "stubborn" || fault_ == "stubborn_daemon") && runs_ == 5) {
      // A child that ignores SIGTERM and holds every descriptor; the daemon also leaves the process group.
      if (fork() == 0) {
        signal(SIGTERM, SIG_IGN);
        if (fault_ == "stubborn_daemon") {
          setsid();
          if (fork() != 0) _exit(0);
        }
        std::ofstream(std::string(getenv("RUTTER_TEST_PIDS") ? getenv("RUTTER_TEST_PIDS") : "/dev/null"), std::ios::app)
            << numberInProc() << "\n";
        for (;;) pause();
      }
      usleep(50000);
      raise(SIGSEGV);
    }
    if (fault_ == "heap" && runs_ == 5) {
      // Writes past the end of its blocks, over what the allocator keeps between them. What comes of it is up to the
      // allocator: nothing here raises a signal.
      char* blocks[8];
      for (char*& b : blocks) b = static_cast<char*>(malloc(3000));
      const size_t tooMuch = getpid() ? 3040 : 0;  // more than the compiler can see
      for (char* b : blocks) std::memset(b, 0x7f, tooMuch);
      for (char* b : blocks) free(b);
      for (char*& b : blocks) b = static_cast<char*>(malloc(100'000));
    }
    if (fault_ == "overwrite" && runs_ > 6 && g_defaultOutput) corrupt_ = true;
    if (fault_ == "unwritten") return;
    const float* x = input_->as<float>();
    float* y = output_.as<float>();
    for (int i = 0; i < kElements; i++) y[i] = 2 * x[i] + 1;
    if (corrupt_) const_cast<float*>(x)[3] += 1;  // the input that both share
    if (fault_ == "nan") y[5] = NAN;
    if (fault_ == "wrong_set1" && x[0] < 0) y[5] += 0.1f;
    if (fault_ == "drift" && runs_ > 6) y[5] = std::nextafter(y[5], 100.f);
    if (fault_ == "late_wrong" && runs_ > 6) y[5] += 1;
  }

 private:
  static int numberInProc() {
    char text[32] = {};
    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : 0;
  }
  SimEngine time_;
  std::string fault_, route_;
  std::vector<LayerTime> layers_;
  const ir::Tensor* input_ = nullptr;
  ir::Tensor output_;
  int runs_ = 0;
  bool corrupt_ = false;
  char* leak_ = nullptr;
};

class SyntheticBackend : public Backend {
 public:
  void prepare(const Json& options) override {
    path_ = options.value("model_bytes", options.at("model").get<std::string>());
    open(path_);
    if (const std::string count = world_->json.value("prepared", ""); !count.empty())
      std::ofstream(count, std::ios::app) << "worker\n";
    for (int s = 0; s < 2; s++) {
      ir::Tensor x(ir::DType::kF32, {kElements});
      for (int i = 0; i < kElements; i++) x.as<float>()[i] = (s ? -1.f : 1.f) * float(i + 1) / kElements;
      inputs_.push_back({{"x", x}});
    }
  }
  Json describe() const override {
    return {{"model_hash", hashBytes(readWholeFile(path_)).hex()},
            {"stack", {{"backend", "synthetic"}, {"stack", world_->json.value("stack", "1")}}},
            {"machine", "m"},
            {"default_route", world_->registry->defaultRouteText()},
            {"test_no_dedupe", world_->json.value("no_dedupe", false)},
            {"test_shorten", world_->json.value("shorten", false)},
            {"default", {{"decision", world_->decision("")}, {"build_ms", 10.0}, {"knobs_read", Json::array()}}}};
  }
  const std::vector<Tensors>& inputs() const override { return inputs_; }
  const std::vector<Tensors>& references() const override { return references_; }
  Decision decide(const std::string& route) override {
    const std::string fault = world_->fault(route);
    if (fault == "rejected") throw UserError("needs another ISA");
    if (fault == "crash_decide") *static_cast<volatile int*>(nullptr) = 0;  // a first process ignores raise()
    return {Status::kOk, "", world_->decision(route), {}};
  }
  void writeDefault(const std::string& path) override { writeEngine("", path); }
  void admitKernels(const std::string&) override {}
  Tensors oracle(int set) override {
    ir::Tensor y(ir::DType::kF32, {kElements});
    const float* x = inputs_[size_t(set)][0].second.as<float>();
    for (int i = 0; i < kElements; i++) y.as<float>()[i] = 2 * x[i] + 1;
    return {{"y", y}};
  }
  std::string timedRoute(const std::map<std::string, double>& seconds) override {
    const std::string says = world_->json.value("timed_route", "");
    if (says == "crash") raise(SIGSEGV);
    if (says == "error") throw UserError("this machine lacks AVX-1024");
    if (says == "hang")
      for (;;) pause();
    for (const auto& [layer, ms] : world_->json.at("layers").items())
      if (!(seconds.at(layer) > 0)) throw UserError("no time for layer {}", layer);
    return says;
  }
  Built build(const std::string& route, const std::string& path) override {
    const std::string fault = world_->fault(route);
    if (fault == "crash_build") raise(SIGSEGV);
    if (fault == "disk_full") throw DiskFullError("cannot write '{}': No space left on device", path);
    if (fault == "reject_build") throw UserError("the arena is too small");
    if (fault == "hang_build")
      for (;;) pause();
    writeEngine(route, path);
    return {hashOf(path), {}};
  }
  std::string newKernels() override { return "kernel"; }
  std::unique_ptr<LoadedEngine> load(const std::string& path, int, uint64_t luck) override {
    const Json file = Json::parse(readWholeFile(path));
    if (!world_) open(file.at("world"));
    const std::string fault = file.at("fault"), once = world_->json.value("killed_once", "");
    if (!once.empty() && unlink((once + file.at("route").get<std::string>()).c_str()) == 0) raise(SIGKILL);
    if (fault == "crash_load") raise(SIGBUS);
    if (fault == "slow_start") usleep(1500000);
    if (fault == "hang_load")
      for (;;) pause();
    return std::make_unique<Engine>(*world_, file, clock_, luck);
  }
  EngineOrigin originOf(const std::string& path) override {
    const Json file = Json::parse(readWholeFile(path));
    return {file.at("route"), "", file.at("model")};
  }
  Clock& clock() override { return clock_; }
  std::shared_ptr<const knobs::Registry> registry(const Json& options) override {
    return World(Json::parse(readWholeFile(options.at("model")))).registry;
  }

 private:
  void open(const std::string& path) { world_ = std::make_unique<World>(Json::parse(readWholeFile(path))); }
  void writeEngine(const std::string& route, const std::string& path) const {
    std::ofstream(path) << Json{{"route", route},
                                {"fault", world_->fault(route)},
                                {"world", path_},
                                {"model", describe()["model_hash"]}}
                               .dump();
  }
  std::unique_ptr<World> world_;
  std::string path_;
  std::vector<Tensors> inputs_, references_;
  SimClock clock_;
};

struct Kill {
  std::string role, point, marker;
  int n = 0, seen = 0, forks = 0;
} g_kill;

// Which passing of the point this is.
int passing() {
  // Each process that measures passes its points once: they are counted together, by the size of a file.
  if (g_kill.role == "measure") {
    const int fd = open((g_kill.marker + ".passed").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1) _exit(1);
    const off_t size = lseek(fd, 0, SEEK_CUR);
    close(fd);
    return int(size);
  }
  // So does a child of the worker: its number is that of its fork.
  return g_kill.point == "child" ? g_kill.forks : ++g_kill.seen;
}

void maybeKill(const char* point) {
  g_kill.forks += std::string("fork.before") == point;
  if (g_kill.point != point || passing() != g_kill.n) return;
  const int fd = open(g_kill.marker.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0) return;
  close(fd);
  kill(getpid(), SIGKILL);
  raise(SIGKILL);  // as first process of a PID namespace
  for (;;) _exit(137);
}

}  // namespace
}  // namespace rutter::tuner::test

int main(int argc, char** argv) {
  using namespace rutter::tuner;
  if (const char* k = getenv("RUTTER_TEST_KILL"); k && argc == 2) {
    std::istringstream(k) >> test::g_kill.role >> test::g_kill.point >> test::g_kill.n >> test::g_kill.marker;
    if (test::g_kill.role == argv[1]) g_hook = test::maybeKill;
  }
  return workerMain(argc, argv, [] { return std::make_unique<test::SyntheticBackend>(); });
}
