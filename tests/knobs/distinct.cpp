// No two knobs are one: no value of another knob decides, on every witness model, what a knob's value decides. And
// every knob is read where it matters: by a model of the list.
#include <fmt/format.h>

#include <set>

#include "base/cpu.h"
#include "knobs/registry.h"
#include "knobs/witness.h"
#include "models.h"

namespace rutter::test {
namespace {
struct WitnessModel {
  const Witness* witness;
  frontend::Model model;
  std::map<std::string, Hash128> known;

  Hash128 hash(const std::string& assignment) {
    auto [at, fresh] = known.try_emplace(assignment);
    if (fresh) {
      compiler::BuildOptions o;
      o.route = knobs::Route::parse(witness->base + (witness->base.empty() ? "" : " ") + assignment);
      o.profiles = {{}};
      o.isa = witness->isa;
      o.threads = 2;
      at->second = compiler::decideModel(model, o).decision.hash;
    }
    return at->second;
  }
  bool baseSets(const std::string& knob) const {
    return (" " + witness->base).find(" " + knob + "=") != std::string::npos;
  }
};
}  // namespace

TEST(KnobWitnesses, NoTwoKnobsAreOne) {
  const std::vector<Witness> all = allWitnesses();
  std::vector<WitnessModel> models;
  for (const Witness& w : all) {
    if (!cpuInfo().features.covers(featuresOf(parseIsa(w.isa)))) continue;
    Net n;
    w.model(n);
    models.push_back({&w, {}, {}});
    models.back().model.graph = n.graph->clone();
  }
  ASSERT_GT(models.size(), 60u);
  int compared = 0;
  for (WitnessModel& m : models) {
    const Witness& w = *m.witness;
    // Of the two values the one that is not the default's decision.
    const bool second = m.hash(w.knob + "=" + w.value) == m.hash("");
    const std::string own = w.knob + "=" + (second ? w.other : w.value);
    const Hash128 mine = m.hash(own);
    for (const knobs::KnobInfo& k : knobs::Registry::builtin().knobs()) {
      if (k.name == w.knob || k.target == knobs::Target::kCuda || m.baseSets(k.name)) continue;
      for (const std::string& v : k.values) {
        if (v == k.defaultValue) continue;
        const std::string other = k.name + "=" + v;
        compared++;
        if (m.hash(other) != mine) continue;
        // Alike here; somewhere they must differ.
        bool alike = true;
        for (WitnessModel& elsewhere : models) {
          if (elsewhere.baseSets(w.knob) || elsewhere.baseSets(k.name)) continue;
          alike &= elsewhere.hash(own) == elsewhere.hash(other);
          if (!alike) break;
        }
        EXPECT_FALSE(alike) << own << " and " << other << " decide the same on every witness model";
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

// What the models of the list read, together, is every knob.
TEST(KnobWitnesses, TheModelsReadEveryKnob) {
  const std::map<std::string, passes::Profile> list = {
      {"ppocrv4_det", {{"x", passes::ShapeRange::fixed({1, 3, 320, 320})}}},
      {"ppocrv2_cls", {{"x", passes::ShapeRange::fixed({1, 3, 48, 192})}}},
      {"ppocrv4_rec", {{"x", passes::ShapeRange::fixed({1, 3, 48, 320})}}},
      {"ddddocr_det", {}},
      {"opennsfw", {{"input:0", passes::ShapeRange::fixed({1, 224, 224, 3})}}},
      {"minilm_l3_paraphrase",
       {{"input_ids", passes::ShapeRange::fixed({1, 128})}, {"attention_mask", passes::ShapeRange::fixed({1, 128})}}},
      {"magika_v3_3", {{"bytes", passes::ShapeRange::fixed({1, 2048})}}},
      {"mobilenet_v3_large_seeded", {}},
      {"bert_base_layers", {}}};
  std::set<knobs::KnobId> read;
  for (const auto& [name, profile] : list) {
    RUTTER_NEED_MODEL(name);
    const frontend::Model model = frontend::importFile(testmodels::modelPath(name));
    for (const char* route : {"", "-conv:tactic=conv_direct -gemm:tactic=gemm_tile"}) {
      compiler::BuildOptions o;
      o.route = knobs::Route::parse(route);
      o.profiles = {profile};
      const compiler::Decided d = compiler::decideModel(model, o);
      read.insert(d.reads.begin(), d.reads.end());
    }
  }
  std::string unread;
  for (const knobs::KnobInfo& k : knobs::Registry::builtin().knobs())
    if (k.target != knobs::Target::kCuda && !read.count(k.id)) unread += " " + k.name;
  EXPECT_EQ(unread, "") << "knobs that no model of the list reads";
}

}  // namespace rutter::test
