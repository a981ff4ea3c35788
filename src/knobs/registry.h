#pragma once
// The database of knobs: what *.def declares, as typed handles for code and as a table for people.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rutter::knobs {

/// Version of the knob database ("tuner_version" of spec 4.1 and 6).
inline constexpr std::string_view kTunerVersion = "0.1.0";

/// Index of a knob in its registry; for the built-in registry also an enumerator, in declaration order.
enum class KnobId : uint16_t {
#define KNOB_BOOL(area, what, ...) area##_##what,
#define KNOB_INTS(area, what, ...) area##_##what,
#define KNOB_ENUM(area, what, ...) area##_##what,
#define KNOB_RANGE(area, what, ...) area##_##what,
#include "knobs/all.def"
  kCount
};

/// Typed handles. A handle can be read only as what it is declared to be.
struct BoolKnob {
  KnobId id;
};
struct IntKnob {
  KnobId id;
};
struct EnumKnob {
  KnobId id;
};

enum class Domain : uint8_t { kBool, kInts, kEnum, kRange };
enum class Target : uint8_t { kCpu, kCuda, kAny };
/// What a value may do to results, relative to the default: nothing; another order of the same operations in the same
/// precision; anything else (DESIGN section 3).
enum class Numerics : uint8_t { kExact, kReorders, kLossy };
std::string_view toString(Domain d);
std::string_view toString(Target t);
std::string_view toString(Numerics n);

struct KnobInfo {
  KnobId id{};
  std::string name;  ///< with its dash: "-gemm:tile_m"
  std::string area;  ///< "gemm"
  Domain domain = Domain::kEnum;
  std::vector<std::string> values;  ///< in declared order; of a range: empty, or just "auto"
  int64_t min = 0, max = 0;         ///< ranges only, inclusive
  std::string defaultValue;
  Target target = Target::kAny;
  std::vector<Numerics> numerics;  ///< beside `values`; of a range: one entry for all
  std::string help;                ///< one sentence

  bool bounded() const { return domain != Domain::kRange; }
  /// The canonical spelling of `text` if it is a value of this knob ("007" of a range is "7").
  std::optional<std::string> canonical(std::string_view text) const;
  /// `value` must be canonical.
  Numerics numericsOf(std::string_view value) const;
  /// "-gemm:tile_m=[auto|4|6]", or "-x:y=int32_t" for a range.
  std::string allowedValues() const;
  /// The domain in words for messages: "auto, 4 or 6", "an integer from 0 to 64".
  std::string domainText() const;
};

/// What a .def entry says, before it is checked.
struct KnobSpec {
  Domain domain;
  std::string area, what;  ///< joined by ":"; without an area the name is just "-what" (tests)
  std::string values;      ///< "a|b|c", empty for a range
  int64_t min = 0, max = 0;
  std::string defaultValue;
  Target target = Target::kAny;
  std::string numerics = "exact";
  std::string help;
};

/// An immutable set of knobs. Declared wrongly (unknown default, a value twice, …): InternalError at construction.
class Registry {
 public:
  explicit Registry(std::vector<KnobSpec> specs);
  /// The knobs of *.def. KnobId's enumerators index it.
  static const Registry& builtin();

  std::span<const KnobInfo> knobs() const { return knobs_; }
  const KnobInfo& operator[](KnobId id) const;
  /// `name` with its dash, case-sensitive; null if there is none.
  const KnobInfo* find(std::string_view name) const;
  /// The names closest to `name`, with their dashes.
  std::vector<std::string> nearest(std::string_view name, size_t n = 3) const;
  /// The knobs that `pattern` names: one name or a glob, the dash optional.
  std::vector<const KnobInfo*> select(std::string_view pattern) const;
  /// Every knob at its default, in declaration order, as the text of a route.
  std::string defaultRouteText() const;

 private:
  std::vector<KnobInfo> knobs_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint16_t> byName_;
};

/// The document of spec section 6; with a pattern only those entries.
/// UserError naming the nearest knobs if nothing matches.
std::string allBuildRoutesJson(const Registry& r = Registry::builtin(), std::string_view pattern = {});
/// docs/knobs.md: one section an area, one table row a knob. `notes` adds a column: text by knob name with dash.
std::string knobsMarkdown(const Registry& r = Registry::builtin(),
                          const std::unordered_map<std::string, std::string>& notes = {});

}  // namespace rutter::knobs

/// The handles: rutter::knob::gemm_tile_m and so on.
namespace rutter::knob {
#define KNOB_BOOL(area, what, ...) inline constexpr knobs::BoolKnob area##_##what{knobs::KnobId::area##_##what};
#define KNOB_INTS(area, what, ...) inline constexpr knobs::IntKnob area##_##what{knobs::KnobId::area##_##what};
#define KNOB_ENUM(area, what, ...) inline constexpr knobs::EnumKnob area##_##what{knobs::KnobId::area##_##what};
#define KNOB_RANGE(area, what, ...) inline constexpr knobs::IntKnob area##_##what{knobs::KnobId::area##_##what};
#include "knobs/all.def"
}  // namespace rutter::knob
