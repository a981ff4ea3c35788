// --continue with a record that is damaged, of something else, or in a place where none can be: one line that says what
// is wrong and what to do, and no byte of the old record is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "api/cli_fixture.h"
#include "tuner/journal.h"

namespace rutter {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tuner::Json;
using Strings = std::vector<std::string>;

// A search of two routes, recorded in c and c.journal.
class TuningCache : public CliProgram {
 protected:
  const std::string journal_ = dir_ + "/c.journal", cache_ = dir_ + "/c";
  const Strings continue_{"--continue", "--tuningCacheFile=c"};
  void SetUp() override {
    CliProgram::SetUp();
    auto r =
        run({"--onnx=m.onnx", "--tuneBuildRoutes=-codegen:vector=[auto|128]", "--tuningCacheFile=c", "--saveEngine=e"});
    ASSERT_EQ(r.code, 0) << r.err;
    ASSERT_EQ(tuner::readJournal(journal_).at(0)["type"], "header");
  }

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> out;
    for (const auto& e : fs::directory_iterator(dir_))
      if (e.is_regular_file() && e.path().filename() != "stdout" && e.path().filename() != "stderr")
        out[e.path().filename()] = slurp(e.path());
    return out;
  }
  static Strings linesOf(const std::string& text, const char* kind) {
    Strings out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      if (line.find(kind) != line.npos) out.push_back(line.substr(line.find(kind) + 4));
    return out;
  }
  // The one line of an error, after which every file is what it was.
  std::string refused(const Strings& args) {
    const auto before = files();
    const Outcome r = run(args);
    EXPECT_EQ(r.code, 1) << r.out << r.err;
    EXPECT_TRUE(files() == before);
    const auto lines = linesOf(r.err, "[E] ");
    EXPECT_EQ(lines.size(), 1u) << r.err;
    return lines.empty() ? "" : lines[0];
  }
  // The one warning, if there is one, of a search that goes on; the bytes of the old files are there, under their own
  // names or others. `intact` says how much of a file's beginning that is.
  std::string goesOn(const Strings& args, const std::map<std::string, size_t>& intact = {}) {
    const auto before = files();
    const Outcome r = run(args);
    EXPECT_EQ(r.code, 0) << r.out << r.err;
    EXPECT_THAT(r.out, HasSubstr("2 / 2 candidates succeeded"));
    const auto after = files();
    for (const auto& [name, bytes] : before) {
      const std::string old = intact.count(name) ? bytes.substr(0, intact.at(name)) : bytes;
      EXPECT_TRUE(std::any_of(after.begin(), after.end(), [&](auto& f) { return f.second.starts_with(old); })) << name;
    }
    const auto lines = linesOf(r.err, "[W] ");
    EXPECT_LE(lines.size(), 1u) << r.err;
    EXPECT_THAT(r.err, Not(HasSubstr("[E]")));
    return lines.empty() ? "" : lines[0];
  }

  Strings journalLines() const {
    Strings out;
    std::ifstream in(journal_);
    for (std::string line; std::getline(in, line);) out.push_back(line + "\n");
    return out;
  }
  void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  // Where a line of the journal begins: its header is line 0.
  size_t startOf(size_t line) const {
    size_t at = 0;
    for (size_t i = 0; i < line; i++) at += journalLines()[i].size();
    return at;
  }
  size_t lineOf(const char* type) const {
    const auto records = tuner::readJournal(journal_);
    for (size_t i = 0; i < records.size(); i++)
      if (records[i]["type"] == type) return i;
    ADD_FAILURE() << "no record " << type;
    return 0;
  }
  void flip(size_t at) {
    std::string text = slurp(journal_);
    text[at] ^= 1;
    write(journal_, text);
  }
  // With checksums that fit. Returns the text.
  std::string writeJournal(const std::vector<Json>& records) {
    std::string text;
    for (const Json& r : records) text += tuner::journalLine(r);
    write(journal_, text);
    return text;
  }
  void editHeader(const std::function<void(Json&)>& edit) {
    auto records = tuner::readJournal(journal_);
    edit(records[0]);
    writeJournal(records);
  }
  // The cache alone, each of its lines edited. Returns the text.
  std::string onlyCache(const std::function<void(Json&)>& edit) {
    std::istringstream in(slurp(cache_));
    std::string text;
    for (std::string line; std::getline(in, line);) {
      Json j = Json::parse(line);
      edit(j);
      text += j.dump() + "\n";
    }
    write(cache_, text);
    fs::remove(journal_);
    return text;
  }
  // As trtexec would have written it: without the keys that are Rutter's own.
  std::string asTrtexecs() {
    return onlyCache([](Json& j) {
      auto end = j.find(j.contains("argv") ? "argv" : "gpu_time");
      j.erase(++end, j.end());
    });
  }
};

TEST_F(TuningCache, JournalThatIsGone) {
  fs::remove(journal_);
  const std::string w = goesOn(continue_);
  EXPECT_THAT(w, AllOf(HasSubstr(journal_ + " is missing or empty"), HasSubstr("the cache " + cache_),
                       HasSubstr("candidates: 2, unreadable lines: 0")));
  EXPECT_EQ(goesOn(continue_), "");  // it has one again
}

TEST_F(TuningCache, JournalThatNeverGotItsFirstLine) {
  for (size_t keep : {size_t(0), size_t(1), startOf(1) - 1}) {
    fs::copy_file(journal_, dir_ + "/whole", fs::copy_options::overwrite_existing);
    fs::resize_file(journal_, keep);
    EXPECT_THAT(goesOn(continue_), HasSubstr(journal_ + " is missing or empty")) << keep;
    fs::rename(dir_ + "/whole", journal_);
  }
  fs::resize_file(journal_, 5);
  fs::remove(cache_);
  EXPECT_THAT(refused(continue_), AllOf(HasSubstr("cannot continue"), HasSubstr("ends before its first line does"),
                                        HasSubstr("without --continue")));
}

TEST_F(TuningCache, JournalThatEndsInTheMiddleOfALine) {
  const size_t last = startOf(journalLines().size() - 1), candidate = startOf(lineOf("candidate"));
  for (size_t keep : {last + 20, candidate + 100}) {
    fs::resize_file(journal_, keep);
    const size_t line = keep > last ? last : candidate;
    EXPECT_THAT(goesOn(continue_, {{"c.journal", line}, {"c", 0}}),
                AllOf(HasSubstr(journal_ + " ends in the middle of a line"), HasSubstr("all before it counts")));
    EXPECT_EQ(goesOn(continue_), "");
  }
}

TEST_F(TuningCache, AlteredBytesOfTheJournal) {
  flip(startOf(lineOf("candidate")) + 50);
  EXPECT_THAT(goesOn(continue_, {{"c", 0}}),
              AllOf(HasSubstr(journal_ + " has damaged lines (1)"), HasSubstr("measured again")));
  flip(50);  // of the header
  EXPECT_THAT(refused(continue_), AllOf(HasSubstr("the first line of " + journal_), HasSubstr("is damaged"),
                                        HasSubstr("move that file away"), HasSubstr(cache_)));
  fs::rename(journal_, dir_ + "/damaged");
  EXPECT_THAT(goesOn(continue_), HasSubstr("is missing or empty"));  // as advised
  fs::rename(dir_ + "/damaged", journal_);
  fs::remove(cache_);
  EXPECT_THAT(refused(continue_), HasSubstr("begin the search anew"));
}

// By hand, with a checksum that fits: keys of another type are damage, too.
TEST_F(TuningCache, KeysOfTheJournalWithAnotherType) {
  const std::string whole = slurp(journal_);
  for (const auto& [type, key, value] : std::vector<std::tuple<const char*, const char*, Json>>{
           {"session", "t", "x"},
           {"session", "epoch", "x"},
           {"strategy", "event", 3},
           {"strategy", "type", 5},
           {"candidate", "iter", std::numeric_limits<int64_t>::max()}}) {
    auto records = tuner::readJournal(journal_);
    records[lineOf(type)][key] = value;
    writeJournal(records);
    // The cache shows a candidate that is measured again with its new times.
    const std::map<std::string, size_t> intact{{type == std::string("candidate") ? "c" : "", 0}};
    EXPECT_THAT(goesOn(continue_, intact), HasSubstr("has damaged lines (1)")) << type << " " << key;
    write(journal_, whole);
  }
}

// A search that is cut and of something else is refused before it is mended.
TEST_F(TuningCache, RecordsOfSomethingElse) {
  struct Case {
    std::function<void(Json&)> edit;
    const char *what, *value;
  };
  const std::string whole = slurp(journal_);
  for (const Case& c :
       {Case{[](Json& h) { h["tuner_version"] = "0.0.9"; }, "another version of the tuner", "0.0.9"},
        Case{[](Json& h) { h["schema"] = 7; }, "another format of records", "7 then"},
        Case{[](Json& h) { h["model_hash"] = std::string(32, '0'); }, "another model", "0000"},
        Case{[](Json& h) { h["default_build_route"] = "-a=1"; }, "other knobs or defaults", "-a does not exist here"},
        Case{[](Json& h) {
               std::string d = h["default_build_route"];
               h["default_build_route"] = d.substr(d.find(' ') + 1) + " -gone:knob=1";
             },
             "other knobs or defaults", "did not exist then"},
        Case{[](Json& h) { h["accuracy_parameter"]["atol"] = 2e-5; }, "other limits of accuracy", "2e-05"},
        Case{[](Json& h) { h["fingerprint"]["cores"] = "999"; }, "another machine", "cores: 999 there"},
        Case{[](Json& h) { h["fingerprint"]["cpu"] = "a Z80"; }, "another machine", "a Z80 there"}}) {
    for (bool cut : {false, true}) {
      write(journal_, whole);
      editHeader(c.edit);
      if (cut) fs::resize_file(journal_, fs::file_size(journal_) - 10);
      EXPECT_THAT(refused(continue_), AllOf(HasSubstr("cannot continue " + cache_), HasSubstr(c.what),
                                            HasSubstr(c.value), HasSubstr("--force measures everything again")));
    }
  }
  Strings force = continue_;
  force.push_back("--force");
  EXPECT_THAT(goesOn(force), HasSubstr("another machine"));
}

TEST_F(TuningCache, TheModelIsAnotherOrGone) {
  auto m = onnxwriter::reluModel();
  m.nodes = {onnxwriter::node("Neg", {"x"}, {"y"}, {}, "relu")};
  CliProgram::write("m.onnx", m);
  EXPECT_THAT(refused(continue_), AllOf(HasSubstr("another model (model_hash: "), HasSubstr("--force")));
  fs::remove(dir_ + "/m.onnx");
  EXPECT_THAT(refused(continue_), HasSubstr("m.onnx: No such file"));
}

TEST_F(TuningCache, UnknownKeysAndRecordsAreKept) {
  auto records = tuner::readJournal(journal_);
  for (Json& r : records) r["colour"] = {{"name", "blue"}};
  records.insert(records.begin() + 3, Json{{"type", "of the future"}, {"iter", "none"}});
  std::string text = writeJournal(records);
  EXPECT_EQ(goesOn(continue_), "");
  EXPECT_TRUE(slurp(journal_).starts_with(text));

  // In the cache alone, whose lines are written anew.
  text = onlyCache([](Json& j) { j["colour"] = "blue"; });
  EXPECT_THAT(goesOn(continue_), HasSubstr("candidates: 2, unreadable lines: 0"));
  EXPECT_EQ(slurp(dir_ + "/c.1"), text);
}

TEST_F(TuningCache, CachesOfTrtexec) {
  const std::string cache = asTrtexecs();
  ASSERT_THAT(cache, Not(HasSubstr("model_hash")));
  EXPECT_THAT(goesOn(continue_), HasSubstr("candidates: 2, unreadable lines: 0"));
  EXPECT_EQ(slurp(dir_ + "/c.1"), cache);

  // Its limits of accuracy went through 32 bits, and it knows fewer knobs.
  fs::remove(journal_);
  Json header = Json::parse(cache.substr(0, cache.find('\n')));
  header["accuracy_parameter"]["atol"] = header["accuracy_parameter"]["atol"].get<float>();
  const std::string defaults = header["default_build_route"];
  header["default_build_route"] = defaults.substr(defaults.find(' ') + 1);
  write(cache_, header.dump() + cache.substr(cache.find('\n')));
  EXPECT_THAT(goesOn(continue_), HasSubstr("candidates: 2, unreadable lines: 0"));

  fs::remove(journal_);
  write(cache_, cache.substr(0, cache.size() - 20));  // a torn last line
  EXPECT_THAT(goesOn(continue_), HasSubstr("candidates: 1, unreadable lines: 1"));

  fs::remove(journal_);
  const std::string other = std::string(cache).replace(cache.find("\"0.1.0\""), 7, "\"2.19\"");
  write(cache_, other);
  EXPECT_THAT(refused(continue_), HasSubstr("another version of the tuner"));
  for (const char* bad : {"", "\n", "hello\n", "{}\n", "[1]\n", "{\"argv\":"}) {
    write(cache_, bad);
    EXPECT_THAT(refused(continue_), AllOf(HasSubstr(cache_), HasSubstr("tuning cache"))) << bad;
  }
  for (const char* bad : {"{\"argv\":[]}\n", "{\"argv\":7}\n", "{\"argv\":[\"rutter\"]}\n"}) {
    write(cache_, bad);
    EXPECT_NE(refused(continue_), "") << bad;
  }
}

TEST_F(TuningCache, PlacesWhereNoRecordCanBe) {
  const Strings search{"--onnx=m.onnx", "--tuneBuildRoutes=-codegen:vector=[auto|128]", "--saveEngine=e"};
  auto begin = [&](const std::string& at) {
    Strings args = search;
    args.push_back("--tuningCacheFile=" + at);
    return refused(args);
  };
  auto goOn = [&](const std::string& at) { return refused({"--continue", "--tuningCacheFile=" + at}); };
  EXPECT_THAT(goOn("none"), AllOf(HasSubstr(dir_ + "/none is no record of a search"), HasSubstr("none.journal"),
                                  HasSubstr("name the --tuningCacheFile of one")));

  EXPECT_THAT(begin("m.onnx/c"), HasSubstr(dir_ + "/m.onnx is a file, not a folder"));
  EXPECT_THAT(goOn("m.onnx/c"), HasSubstr("is no record of a search"));
  EXPECT_THAT(begin("no/such/c"), HasSubstr("nothing can be written to the folder " + dir_ + "/no/such: No such file"));

  fs::create_directory(dir_ + "/d");
  fs::create_directory(dir_ + "/j.journal");
  for (const char* at : {"d", "j"}) {
    EXPECT_THAT(begin(at), AllOf(HasSubstr("is a folder"), HasSubstr("another --tuningCacheFile")));
    EXPECT_THAT(goOn(at), AllOf(HasSubstr("is a folder"), HasSubstr("another --tuningCacheFile")));
    EXPECT_TRUE(fs::is_directory(dir_ + "/d") && fs::is_directory(dir_ + "/j.journal"));
  }
  // By a link: the device itself may be ours to rename.
  for (const char* link : {"full", "null.journal"}) {
    fs::create_symlink(link[0] == 'f' ? "/dev/full" : "/dev/null", dir_ + "/" + link);
    const std::string at = std::string(link).substr(0, 4);
    EXPECT_THAT(begin(at), AllOf(HasSubstr("is a device or a pipe"), HasSubstr("another --tuningCacheFile")));
    EXPECT_THAT(goOn(at), AllOf(HasSubstr("is a device or a pipe"), HasSubstr("another --tuningCacheFile")));
    EXPECT_TRUE(fs::is_symlink(dir_ + "/" + link));
  }
}

// The winner's engine is read again, which a pipe would not give.
TEST_F(TuningCache, PlacesWhereNoWinnerCanBe) {
  ASSERT_EQ(::mkfifo((dir_ + "/pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/null", dir_ + "/null");
  for (const char* search : {"--tune=5s", "--tuneBuildRoutes=-codegen:vector=[auto|128]"}) {
    auto begin = [&](const char* at) { return refused({"--onnx=m.onnx", search, std::string("--saveEngine=") + at}); };
    EXPECT_THAT(begin("pipe"), AllOf(HasSubstr("/pipe: it is a device or a pipe"), HasSubstr("needs a file")));
    EXPECT_THAT(begin("null"), HasSubstr("/null: it is a device or a pipe"));
    EXPECT_THAT(begin("."), HasSubstr("it is a folder"));
    EXPECT_THAT(begin("m.onnx/e"), HasSubstr("m.onnx is a file, not a folder"));
  }
}

// Files of this process and its children stay below a size: as on a disk that is full.
class SmallDisk {
 public:
  explicit SmallDisk(size_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &was_);
    const rlimit now{bytes, was_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallDisk() { ::setrlimit(RLIMIT_FSIZE, &was_); }

 private:
  rlimit was_{};
};

TEST_F(TuningCache, DisksThatAreFull) {
  constexpr size_t kMuch = 4 << 20;  // more than any other file of the search has
  editHeader([](Json& h) { h["pad"] = std::string(kMuch, 'x'); });
  for (size_t room : {0, 10}) {  // for nothing, for half a line
    SmallDisk disk(fs::file_size(journal_) + room);
    EXPECT_THAT(refused(continue_), AllOf(HasSubstr("cannot write '" + journal_), HasSubstr("File too large")));
  }
  EXPECT_EQ(goesOn(continue_), "");

  std::string cache = slurp(cache_);
  cache.insert(1, "\"pad\":\"" + std::string(kMuch, 'x') + "\",");
  write(cache_, cache);
  fs::remove(journal_);
  {
    SmallDisk disk(kMuch);
    EXPECT_THAT(refused(continue_), AllOf(HasSubstr("cannot write '" + journal_), HasSubstr("File too large")));
  }
  EXPECT_THAT(goesOn(continue_), HasSubstr("is missing or empty"));
}

TEST_F(TuningCache, AnotherTunerIsWriting) {
  const int fd = ::open(journal_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THAT(refused(continue_), AllOf(HasSubstr(journal_ + " is being written by another tuner"),
                                        HasSubstr("give another --tuningCacheFile")));
  ::close(fd);
  EXPECT_EQ(goesOn(continue_), "");
}

}  // namespace
}  // namespace rutter
