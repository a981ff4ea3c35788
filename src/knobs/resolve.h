#pragma once
// What a route says to one layer: scopes resolved, reads typed and recorded, refusals noted.
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knobs/route.h"

namespace rutter::knobs {

/// A wish that a layer could not take.
struct Refusal {
  KnobId knob{};
  std::string value;
  std::string reason;
};

/// The knobs as one layer sees them. Scoped assignments win over unscoped ones, later ones over earlier; in a fused
/// layer the anchor's own match decides, else that of the last origin that matches. Reads are recorded for layer
/// information. Not for several threads at once. The route must outlive it.
class LayerKnobs {
 public:
  /// `origins`: names of the ONNX nodes that the layer came from; `anchor` indexes the one with most work.
  LayerKnobs(const Route& route, std::vector<std::string> origins, size_t anchor = 0);
  /// For decisions about the whole model: only unscoped assignments apply.
  static LayerKnobs modelWide(const Route& route) { return LayerKnobs(route, {}, 0); }

  /// nullopt: auto.
  std::optional<int64_t> get(IntKnob k) const;
  std::optional<bool> get(BoolKnob k) const;
  std::string_view get(EnumKnob k) const;  ///< "auto" included
  int64_t getOr(IntKnob k, int64_t heuristic) const { return get(k).value_or(heuristic); }
  bool getOr(BoolKnob k, bool heuristic) const { return get(k).value_or(heuristic); }

  /// True if the route gives this layer a value other than auto: a wish. Not a read.
  template <typename Knob>
  bool explicitly(Knob k) const {
    return explicitly(k.id);
  }
  bool explicitly(KnobId k) const;
  /// The route's assignment that gives the value in force, null if none does. Not a read.
  const Assignment* assignment(KnobId k) const { return resolve(k); }
  /// The value in force as text. Not a read.
  const std::string& valueText(KnobId k) const;

  /// Notes that the layer cannot take its wish for `k`; ignored if there is no wish.
  template <typename Knob>
  void refuse(Knob k, std::string reason) {
    refuse(k.id, std::move(reason));
  }
  void refuse(KnobId k, std::string reason);

  const std::set<KnobId>& reads() const { return reads_; }  ///< in declaration order
  const std::vector<Refusal>& refusals() const { return refusals_; }
  const std::vector<std::string>& origins() const { return origins_; }
  const Route& route() const { return *route_; }

 private:
  const Assignment* resolve(KnobId k) const;
  const std::string& read(KnobId k, Domain domain, Domain other) const;

  const Route* route_;
  std::vector<std::string> origins_;
  size_t anchor_;
  mutable std::set<KnobId> reads_;
  std::vector<Refusal> refusals_;
};

/// A scope of a route that matches no layer.
struct UnmatchedScope {
  Assignment assignment;
  std::vector<std::string> closest;  ///< up to three names
};
std::vector<UnmatchedScope> unmatchedScopes(const Route& route, std::span<const std::string> originNames);
/// One line for a warning or error.
std::string describe(const UnmatchedScope& s, const Registry& registry);

}  // namespace rutter::knobs
