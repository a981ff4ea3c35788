// An engine that refers to another's weights is the same engine: byte for byte when put together, in what it computes,
// and in what is noticed when it is torn.
#include "runtime/engine_split.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"

namespace rutter::runtime {
namespace {

namespace fs = std::filesystem;

struct Split : testing::Test {
  Split() {
    std::string path = (fs::temp_directory_path() / "rutter-split-XXXXXX").string();
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    dir = path;
    for (int i = 0; i < 3; i++) big[i] = std::string(size_t(9000 + i), char('a' + i));
    for (size_t i = 0; i < big[1].size(); i++) big[1][i] = char(i * 7);
  }
  ~Split() override { fs::remove_all(dir); }

  static EngineParts parts(const std::vector<std::string_view>& chunks) {
    EngineParts p;
    p.plan.profiles = 1;
    p.plan.model_name = "m";
    p.plan.regions.push_back(std::make_unique<fb::RegionT>());
    int64_t at = 0;
    for (std::string_view c : chunks) {
      p.weights.push_back({at, c, hashBytes(c)});
      auto b = std::make_unique<fb::BufferT>();
      b->place = fb::Place::Weights;
      b->offset = at;
      b->bytes = int64_t(c.size());
      p.plan.buffers.push_back(std::move(b));
      at = (at + int64_t(c.size()) + 63) / 64 * 64;
    }
    return p;
  }
  // Writes `base` whole and `p` split, reads back and compares with `p` written whole. Returns the split file's size.
  size_t roundTrip(const EngineParts& base, const EngineParts& p) {
    const std::string whole = (dir / "base").string(), split = (dir / "split").string();
    writeEngineFile(base, whole, false);
    const Hash128 id = writeSplitEngine(p, WeightIndex(base, whole), split);
    const std::string want = writeEngine(p);
    EXPECT_EQ(id, engineIdentity(want));
    const EngineFiles files = openEngineFiles(split);
    EXPECT_TRUE(files.split());
    EXPECT_EQ(wholeEngine(files), want);
    EXPECT_EQ(readEngineFiles(files).manifest.sections.size(), 3u);
    auto engine = loadEngineFiles(files);
    EXPECT_EQ(engine->weightsBytes(), int64_t(weightsBytes(p)));
    for (const WeightChunk& c : p.weights)
      EXPECT_EQ(std::memcmp(engine->weightsAt(c.offset), c.data.data(), c.data.size()), 0) << c.offset;
    return fs::file_size(split);
  }
  fs::path dir;
  std::string big[3];
  const std::string small = std::string(100, 's');
};

TEST_F(Split, SameWeightsAreNotWrittenAgain) {
  const EngineParts base = parts({big[0], big[1], small});
  EXPECT_LT(roundTrip(base, parts({big[0], big[1], small})), 16384u);  // a page of table, a page of head, 100 bytes
}

TEST_F(Split, OtherOrderOtherChunksAndNone) {
  const EngineParts base = parts({big[0], big[1], small});
  const size_t moved = roundTrip(base, parts({small, big[1], big[0]}));
  const size_t other = roundTrip(base, parts({big[1], big[2], small}));
  EXPECT_GT(other, moved + 8000);
  roundTrip(base, parts({}));
  roundTrip(parts({}), parts({big[0], small}));
}

// Chunks that nobody vouches for are compared with nothing.
TEST_F(Split, ChunksWithoutAKeyAreWritten) {
  const EngineParts base = parts({big[0]});
  EngineParts p = parts({big[0]});
  p.weights[0].key = {};
  EXPECT_GT(roundTrip(base, p), 9000u);
}

TEST_F(Split, WhatIsTornIsNoticed) {
  const EngineParts base = parts({big[0], big[1]});
  roundTrip(base, parts({big[1], big[0], small}));
  auto change = [&](const fs::path& file, size_t at) {
    std::fstream f(file, std::ios::binary | std::ios::in | std::ios::out);
    f.seekg(long(at));
    const char c = char(f.get());
    f.seekp(long(at));
    f.put(char(c ^ 1));
  };
  const auto load = [&] { loadEngineFiles(openEngineFiles((dir / "split").string())); };
  load();
  const size_t size = fs::file_size(dir / "split");
  for (size_t at : {size_t(9), size_t(40), size_t(4096 + 70), size - 1}) {
    change(dir / "split", at);
    EXPECT_THROW(load(), UserError) << at;
    change(dir / "split", at);
  }
  load();
  change(dir / "base", fs::file_size(dir / "base") - 5);  // weights that the split engine refers to
  EXPECT_THROW(load(), UserError);
  change(dir / "base", fs::file_size(dir / "base") - 5);
  fs::resize_file(dir / "split", size - 60);
  EXPECT_THROW(load(), UserError);
}

// The checksum is against damage: a process gone wrong can write any table with a right one.
TEST_F(Split, NoTableReachesOutsideTheFiles) {
  const std::string whole = (dir / "base").string(), path = (dir / "split").string();
  writeEngineFile(parts({big[0], big[1]}), whole, false);
  const uint64_t page = 4096, far = uint64_t(1) << 62;
  struct Table {
    uint64_t head = 100, section = 18025;
    int64_t offset[2] = {0, 9024}, size[2] = {9000, 9001}, at[2] = {0, 9024};
    uint64_t pieces = 2;
  };
  const auto error = [&](const Table& t) -> std::string {
    ByteWriter w;
    w.put(t.head);
    w.put(t.section);
    w.put(whole);
    w.put(t.pieces);
    for (int i = 0; i < 2; i++) {
      for (int64_t v : {t.offset[i], t.size[i], t.at[i]}) w.put(v);
      w.put(false);
    }
    const std::string table = w.take();
    const Hash128 check = hashBytes(table);
    w.put(check.lo);
    w.put(check.hi);
    w.put<uint64_t>(table.size());
    std::string file = "RUTSPLIT" + w.take() + table;
    file.resize(3 * page, '\0');
    writeFileAtomically(path, file);
    try {
      const EngineFiles e = openEngineFiles(path);
      EXPECT_EQ(wholeEngine(e).size(), 100u + 18025u);
      return "";
    } catch (const UserError& e) {
      return e.what();
    }
  };
  const Table good;
  EXPECT_EQ(error(good), "");
  int refused = 0;
  const auto refuse = [&](auto change) {
    Table t = good;
    change(t);
    EXPECT_NE(error(t), "") << refused;
    refused++;
  };
  for (uint64_t v : {page * 3, far, ~uint64_t(0), ~uint64_t(0) - page, uint64_t(0) - 2 * page}) {
    refuse([&](Table& t) { t.head = v; });
    refuse([&](Table& t) { t.section = v; });
    refuse([&](Table& t) { t.pieces = v; });
    for (int i = 0; i < 2; i++) {
      refuse([&](Table& t) { t.offset[i] = int64_t(v); });
      refuse([&](Table& t) { t.size[i] = int64_t(v); });
      if (v != page * 3) refuse([&](Table& t) { t.at[i] = int64_t(v); });
    }
  }
  refuse([](Table& t) { t.pieces = 1; });
  refuse([](Table& t) { t.offset[1] = 64; });  // into the first
}

}  // namespace
}  // namespace rutter::runtime
