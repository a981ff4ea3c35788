#include "tuner/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tuner/cache.h"

namespace rutter::tuner {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    char name[] = "/tmp/rutter-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& f) const { return path + "/" + f; }
  std::string path;
};
void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Json header() {
  return {{"type", "header"},
          {"tuner_version", "0.1.0"},
          {"accuracy_algorithm", "L0"},
          {"accuracy_parameter", {{"atol", 1e-5}, {"rtol", 1e-5}, {"epsilon", 0.0}}},
          {"searching_algorithm", "fast"},
          {"command_line", "rutter"},
          {"default_build_route", "-a=1"},
          {"tuning_expr", "-a=[1|2]"},
          {"files", nullptr},
          {"argv", {"rutter"}},
          {"schema", 1}};
}
CandidateRecord candidate(int64_t iter, const std::string& route, Status s = Status::kOk) {
  CandidateRecord r;
  r.iter = iter;
  r.route = route;
  r.status = s;
  if (s == Status::kOk) {
    r.ms = 2.5;
    r.losses = std::map<std::string, double>{{"y", 0.25}};
    r.logRatios = {0.1, 0.2, 0.3, 0.4, 0.5};
  } else {
    r.error = "died";
  }
  return r;
}

TEST(Journal, RecordsComeBackAndEveryFieldSurvives) {
  Folder dir;
  CandidateRecord r = candidate(3, "-a=2");
  r.relativeError = 1e-7;
  r.decision = "d";
  r.engineHash = "e";
  r.sameAs = -1;
  r.knobsRead = {"-a"};
  r.buildMs = 7;
  r.busySeconds = 0.5;
  r.peakBytes = 1 << 20;
  r.host = "h";
  r.time = "t";
  r.losses->emplace("z", std::numeric_limits<double>::infinity());
  {
    auto j = Journal::create(dir / "j");
    j->append(header());
    j->append(toJson(r));
  }
  auto records = readJournal(dir / "j");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0], header());
  EXPECT_EQ(toJson(candidateFromJson(records[1])), toJson(r));
  EXPECT_TRUE(std::isinf(candidateFromJson(records[1]).losses->at("z")));
}

TEST(Journal, CrcIsOfTheLineWithoutIt) {
  const std::string line = journalLine({{"a", 1}});
  EXPECT_EQ(line, fmt::format("{{\"a\":1,\"crc\":\"{:08x}\"}}\n", crc32c("{\"a\":1}")));
}

TEST(Journal, EveryTornTailIsDroppedAndOverwritten) {
  Folder dir;
  const std::string first = journalLine(header()), second = journalLine(toJson(candidate(0, "-a=1")));
  for (size_t keep = 0; keep < second.size(); keep++) {
    write(dir / "j", first + second.substr(0, keep));
    auto j = Journal::open(dir / "j");
    EXPECT_EQ(j->records().size(), 1u) << keep;
    j->append(toJson(candidate(1, "-a=2")));
    auto records = readJournal(dir / "j");
    ASSERT_EQ(records.size(), 2u) << keep;
    EXPECT_EQ(records[1]["iter"], 1);
  }
}

TEST(Journal, AlteredBytesAreSeen) {
  const std::string first = journalLine(header()), second = journalLine(toJson(candidate(0, "-a=1")));
  const std::string third = journalLine(toJson(candidate(1, "-a=2")));
  for (size_t at = 0; at + 1 < second.size(); at++) {
    std::string bad = second;
    bad[at] ^= 1;
    if (bad[at] == '\n') continue;
    const JournalText t = parseJournal(first + bad + third);
    EXPECT_EQ(t.records.size(), 2u) << at;
    EXPECT_EQ(t.damaged, 1) << at;
    EXPECT_EQ(t.goodBytes, first.size() + bad.size() + third.size());
    // A last line that is whole but for a byte was altered, not torn: nothing is cut off.
    const JournalText last = parseJournal(first + third + bad);
    EXPECT_EQ(last.damaged, 1) << at;
    EXPECT_EQ(last.goodBytes, first.size() + third.size() + bad.size());
  }
}

// Nor does a checksum that fits make numbers that nobody wrote.
TEST(Journal, ImpossibleNumbersAreDamage) {
  const std::string first = journalLine(header());
  const auto damaged = [&](const char* key, const Json& value) {
    Json j = {{"type", "samples"}, {"iter", 1}, {"log_ratios", {0.1}}};
    j[key] = value;
    return parseJournal(first + journalLine(j)).damaged;
  };
  EXPECT_EQ(damaged("epoch", 3), 0);
  EXPECT_EQ(damaged("epoch", 1000000000), 1);
  EXPECT_EQ(damaged("epoch", int64_t(1) << 40), 1);
  EXPECT_EQ(damaged("log_ratios", {0.1, -3}), 0);
  EXPECT_EQ(damaged("log_ratios", {0.1, 1e308}), 1);
  EXPECT_EQ(damaged("log_ratios", {-1e308}), 1);
  EXPECT_EQ(damaged("lost_lines", 1), 1);
  EXPECT_EQ(damaged("brief", "yes"), 1);
}

TEST(Journal, OneWriter) {
  Folder dir;
  auto j = Journal::create(dir / "j");
  j->append(header());
  EXPECT_THROW(Journal::open(dir / "j"), UserError);
  EXPECT_THROW(Journal::create(dir / "j"), UserError);
  j.reset();
  EXPECT_NO_THROW(Journal::open(dir / "j"));
}

TEST(Journal, AnOldOneIsKeptUnderAnotherName) {
  Folder dir;
  for (int i = 0; i < 3; i++) {
    auto j = Journal::create(dir / "j");
    EXPECT_EQ(j->keptAs(), i ? dir / ("j." + std::to_string(i)) : "");
    Json h = header();
    h["n"] = i;
    j->append(h);
  }
  EXPECT_EQ(readJournal(dir / "j.1")[0]["n"], 0);
  EXPECT_EQ(readJournal(dir / "j.2")[0]["n"], 1);
  EXPECT_EQ(readJournal(dir / "j")[0]["n"], 2);
}

TEST(Journal, WhatCannotBeWrittenOrContinuedIsSaid) {
  Folder dir;
  EXPECT_THROW(Journal::create(dir / "no/such/j"), DeviceError);
  EXPECT_THROW(Journal::open(dir / "none"), UserError);
  write(dir / "j", journalLine(toJson(candidate(0, "-a=1"))));
  EXPECT_THROW(Journal::open(dir / "j"), UserError);  // no header
  if (int full = ::open("/dev/full", O_WRONLY); full >= 0) {
    ::close(full);
    fs::create_symlink("/dev/full", dir / "full");
    EXPECT_THROW(replaceFile(dir / "full", "text"), DeviceError);
  }
}

TEST(Journal, DescriptorsAreCloseOnExec) {
  Folder dir;
  auto j = Journal::create(dir / "j");
  int found = 0;
  for (const auto& e : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(e, error) != dir / "j") continue;
    found++;
    EXPECT_TRUE(fcntl(std::stoi(e.path().filename()), F_GETFD) & FD_CLOEXEC);
  }
  EXPECT_EQ(found, 1);
}

TEST(Cache, KeysInTheOrderOfTheSpec) {
  const auto keys = [](const std::string& line) {
    std::vector<std::string> k;
    const Json j = Json::parse(line);
    for (const auto& [name, v] : j.items()) k.push_back(name);
    return k;
  };
  Json h = header();
  h["model_hash"] = "m";
  h["private"] = 1;
  EXPECT_EQ(keys(cacheHeaderLine(h)),
            (std::vector<std::string>{"tuner_version", "accuracy_algorithm", "accuracy_parameter",
                                      "searching_algorithm", "command_line", "default_build_route", "tuning_expr",
                                      "files", "argv", "schema", "model_hash"}));
  EXPECT_EQ(keys(cacheLine(candidate(0, "-a=1"), nullptr)),
            (std::vector<std::string>{"iter",     "build_route", "crash",       "error_message", "accuracy_loss",
                                      "gpu_time", "phase",       "status",      "ratio",         "ratio_lo",
                                      "ratio_hi", "rounds",      "engine_hash", "same_as",       "knobs_read",
                                      "build_ms", "peak_bytes",  "host",        "time",          "crc"}));
  EXPECT_NE(cacheHeaderLine(h).find("\"atol\":1e-05"), std::string::npos);
}

TEST(Cache, NullsByStatus) {
  for (Status s : {Status::kCrashed, Status::kHung, Status::kRejected, Status::kInterrupted}) {
    const Json j = Json::parse(cacheLine(candidate(0, "-a=1", s), nullptr));
    EXPECT_TRUE(j["crash"]) << statusName(s);
    EXPECT_TRUE(j["gpu_time"].is_null());
    EXPECT_TRUE(j["accuracy_loss"].is_null());
    EXPECT_TRUE(j["ratio"].is_null());
  }
  CandidateRecord r = candidate(0, "-a=1");
  r.status = Status::kInaccurate;
  const Json j = Json::parse(cacheLine(r, nullptr));
  EXPECT_FALSE(j["crash"]);
  EXPECT_TRUE(j["gpu_time"].is_null());
  EXPECT_EQ(j["accuracy_loss"]["y"], 0.25);
  const Json ok = Json::parse(cacheLine(candidate(0, "-a=1"), nullptr));
  EXPECT_EQ(ok["gpu_time"], 2.5);
  EXPECT_NEAR(ok["ratio"].get<double>(), std::exp(0.3), 1e-12);
}

TEST(Cache, RewrittenOnlyWhenItDisagrees) {
  Folder dir;
  std::vector<Json> records{header(), toJson(candidate(1, "-a=2")), toJson(candidate(0, "-a=1", Status::kInterrupted)),
                            toJson(candidate(0, "-a=1"))};
  EXPECT_TRUE(syncCache(dir / "c", records));
  EXPECT_FALSE(syncCache(dir / "c", records));
  const Cache c = parseCache(readWholeFile(dir / "c"), "c");
  ASSERT_EQ(c.candidates.size(), 2u);
  EXPECT_EQ(c.candidates[0].route, "-a=1");
  EXPECT_EQ(c.candidates[0].status, Status::kOk);  // the later record of a route counts
  write(dir / "c", "torn");
  EXPECT_TRUE(syncCache(dir / "c", records));
  ConfirmRecord confirmed{1, "-a=2", 7, 2, 0.05, 0.04, 0.06, true, ""};
  records.push_back(toJson(confirmed));
  EXPECT_TRUE(syncCache(dir / "c", records));
  EXPECT_NEAR(parseCache(readWholeFile(dir / "c"), "c").ratios[1]->lo, std::exp(0.04), 1e-12);
}

TEST(Cache, ReadsTrtexecsOwn) {
  const std::string text =
      R"({"tuner_version":"2.19.45","accuracy_algorithm":"Cosine","accuracy_parameter":{"atol":9.999999747378752e-06},)"
      R"("searching_algorithm":"fast","command_line":"trtexec","default_build_route":"-x=1","tuning_expr":"-x=[1|2|3]",)"
      R"("files":null,"argv":["trtexec","--onnx=/m.onnx"]})"
      "\n"
      R"({"iter":0,"build_route":"-x=1","crash":false,"error_message":"","accuracy_loss":null,"gpu_time":4.0})"
      "\n"
      R"({"iter":1,"build_route":"-x=2","crash":true,"error_message":"child exited with status 1","accuracy_loss":null,"gpu_time":null})"
      "\n"
      R"({"iter":2,"build_route":"-x=3","crash":false,"error_message":"child exited with status 1","accuracy_loss":{"y":0.5},"gpu_time":1.0,"new_key":[]})"
      "\n"
      R"({"iter":3,"build_route":"-x=4","crash":"yes","error_message":"","accuracy_loss":null,"gpu_time":1.0})"
      "\n"
      R"({"iter":4,"build_route":"-x=5","crash":true,"error_message":"","accuracy_loss":null,"gpu_time":null,"ratio":2})"
      "\n"
      R"({"iter":5,"build_route":"-x=6","cra)";
  const Cache c = parseCache(text, "c");
  ASSERT_EQ(c.candidates.size(), 4u);
  EXPECT_EQ(c.dropped, 2);
  EXPECT_FALSE(c.ratios[3]);  // no interval beside it
  EXPECT_EQ(c.candidates[0].status, Status::kOk);
  EXPECT_EQ(c.candidates[1].status, Status::kCrashed);
  EXPECT_EQ(c.candidates[2].status, Status::kInaccurate);
  const auto records = recordsOf(c);
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0]["type"], "header");
  EXPECT_EQ(candidateFromJson(records[1]).logRatios, std::vector<double>(5, 0.0));
  // A checksum that does not fit its line: one letter of the route has changed.
  CandidateRecord r;
  r.route = "-x=7";
  std::string line = cacheLine(r, nullptr);
  EXPECT_EQ(parseCache("{\"argv\":[]}\n" + line, "c").candidates.size(), 1u);
  line[line.find("-x=7") + 3] = '8';
  EXPECT_EQ(parseCache("{\"argv\":[]}\n" + line, "c").dropped, 1);
  EXPECT_THROW(parseCache("", "c"), UserError);
  EXPECT_THROW(parseCache("{}\n", "c"), UserError);
  EXPECT_THROW(parseCache("\x7f"
                          "ELF",
                          "c"),
               UserError);
}

}  // namespace
}  // namespace rutter::tuner
