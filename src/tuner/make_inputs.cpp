#include "tuner/make_inputs.h"

#include <algorithm>
#include <set>

#include "base/hash.h"

namespace rutter::tuner {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere, unlike std::uniform_*_distribution.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// [0, 1)
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// [low, high]
  int64_t between(int64_t low, int64_t high) {
    __extension__ using Wide = unsigned __int128;
    const auto span = static_cast<uint64_t>(high - low) + 1;
    return low + static_cast<int64_t>((static_cast<Wide>(next()) * span) >> 64);
  }

 private:
  uint64_t state_;
};

// Operators through which the elements of input 0 go on unchanged.
bool passesOn(const ir::Node& n) {
  static const std::set<std::string> kOps = {"Identity",  "Reshape",    "Unsqueeze", "Squeeze", "Flatten",
                                             "Transpose", "Slice",      "Split",     "Expand",  "Tile",
                                             "Concat",    "LayoutCast", "Dropout"};
  return kOps.count(n.op) > 0;
}
bool isMaskUse(const ir::Node& n) {
  static const std::set<std::string> kOps = {
      "Cast", "Sub", "Mul", "Where",  "Equal",     "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Not",
      "And",  "Or",  "Xor", "CumSum", "ReduceSum", "Min",     "Max"};
  return kOps.count(n.op) > 0;
}

// Everything that one input's elements meet on their way.
struct Uses {
  std::optional<int64_t> indexLimit;
  bool mask = false, other = false, extent = false;
};

void follow(const ir::Value* v, Uses& uses, std::set<const ir::Value*>& seen) {
  if (!seen.insert(v).second) return;
  for (const ir::Node* n : v->users) {
    const bool first = n->input(0) == v;
    const bool gather = n->op == "Gather" || n->op == "GatherElements" || n->op == "GatherND";
    if (gather && n->input(1) == v && !first && n->input(0)) {
      const auto& table = n->input(0)->type.dims;
      int64_t axis = n->op == "GatherND" ? n->getInt("batch_dims", 0) : n->getInt("axis", 0);
      if (axis < 0) axis += static_cast<int64_t>(table.size());
      if (axis >= 0 && axis < static_cast<int64_t>(table.size()) && table[axis].isConstant()) {
        const int64_t limit = table[axis].value();
        uses.indexLimit = std::min(uses.indexLimit.value_or(limit), limit);
      } else {
        uses.indexLimit = std::min<int64_t>(uses.indexLimit.value_or(1), 1);  // only 0 is surely inside
      }
    } else if (gather && first) {
      for (const ir::Value* o : n->outputs)
        if (o) follow(o, uses, seen);
    } else if (!first && (n->op == "Reshape" || n->op == "Expand" || n->op == "Tile" || n->op == "Slice" ||
                          n->op == "Pad" || n->op == "Resize" || n->op == "Range" || n->op == "TopK")) {
      uses.extent = true;
    } else if (n->op == "ConstantOfShape" || n->op == "Range") {
      uses.extent = true;
    } else if (n->op == "OneHot" && first) {
      uses.other = true;
    } else if (passesOn(*n) || (n->op == "Cast" && ir::isInteger(n->output(0)->type.dtype))) {
      for (const ir::Value* o : n->outputs)
        if (o) follow(o, uses, seen);
    } else if (isMaskUse(*n)) {
      uses.mask = true;
    } else if (n->op != "Shape" && n->op != "Size") {
      uses.other = true;
    }
  }
}

int64_t low(ir::DType t) {
  switch (t) {
    case ir::DType::kU8:
    case ir::DType::kU16:
    case ir::DType::kU32:
    case ir::DType::kU64:
    case ir::DType::kBool:
      return 0;
    case ir::DType::kI4:
      return -8;
    default:
      return -128;
  }
}
int64_t high(ir::DType t) {
  switch (t) {
    case ir::DType::kU8:
    case ir::DType::kU16:
    case ir::DType::kU32:
    case ir::DType::kU64:
      return 255;
    case ir::DType::kBool:
      return 1;
    case ir::DType::kI4:
      return 7;
    default:
      return 127;
  }
}

double drawFloat(Random& random, Draw draw, int set) {
  const double u = random.unit();
  switch (draw) {
    case Draw::kUsual:
      return 2 * u - 1;
    case Draw::kSmall:
      return 0.1 * (2 * u - 1);
    case Draw::kPositive:
      return 0.1 + 0.9 * u;
    case Draw::kOnes:
      break;
  }
  return 1 + set / 8.0;
}

int64_t drawInt(Random& random, Draw draw, int set, int64_t low, int64_t high) {
  switch (draw) {
    case Draw::kUsual:
      return random.between(low, high);
    case Draw::kSmall:
      return random.between(low / 10, high > 1 ? high / 10 : high);
    case Draw::kPositive:
      return random.between(1, high);
    case Draw::kOnes:
      break;
  }
  return std::min<int64_t>(1 + set, high);
}

}  // namespace

const char* drawText(Draw d) {
  constexpr const char* kTexts[kDraws] = {"the usual random numbers", "numbers near zero", "positive numbers", "ones"};
  return kTexts[int(d)];
}

std::map<std::string, InputRule> inputRules(const ir::Graph& g) {
  std::map<std::string, InputRule> out;
  for (const ir::Value* v : g.top().inputs) {
    InputRule rule;
    if (ir::isInteger(v->type.dtype)) {
      Uses uses;
      std::set<const ir::Value*> seen;
      follow(v, uses, seen);
      if (uses.indexLimit)
        rule = {InputRule::Kind::kIndices, std::max<int64_t>(*uses.indexLimit, 1)};
      else if (uses.extent)
        rule = {InputRule::Kind::kExtent, 4};
      else if (uses.mask && !uses.other)
        rule = {InputRule::Kind::kMask, 2};
    }
    out[v->name] = rule;
  }
  return out;
}

ir::Tensor makeInput(const std::string& name, ir::DType dtype, const std::vector<int64_t>& dims, const InputRule& rule,
                     uint64_t seed, int set, Draw draw) {
  if (dtype == ir::DType::kString)
    throw UserError("input '{}' holds strings, which cannot be made up; give it by --loadInputs", name);
  Random random(hashBytes(name).lo ^ (seed * 0x9e3779b97f4a7c15u) ^ (static_cast<uint64_t>(set) << 56));
  ir::Tensor t(dtype, dims);
  const int64_t n = t.size();
  if (rule.kind == InputRule::Kind::kMask) {
    // Whole rows in set 0, then shorter ones: padding is what masks are for.
    const int64_t row = dims.empty() ? 1 : std::max<int64_t>(dims.back(), 1);
    for (int64_t begin = 0; begin < n; begin += row) {
      const int64_t ones = set == 0 ? row : random.between((row + 1) / 2, row);
      for (int64_t i = 0; i < row; i++) t.setInt(begin + i, i < ones);
    }
    return t;
  }
  for (int64_t i = 0; i < n; i++) {
    if (rule.kind == InputRule::Kind::kIndices)
      t.setInt(i, random.between(0, rule.limit - 1));
    else if (rule.kind == InputRule::Kind::kExtent)
      t.setInt(i, random.between(1, std::max<int64_t>(rule.limit - 1, 1)));
    else if (ir::isFloat(dtype))
      t.setDouble(i, drawFloat(random, draw, set));
    else
      t.setInt(i, drawInt(random, draw, set, low(dtype), high(dtype)));
  }
  return t;
}

ir::Tensor variedInput(const std::string& name, const ir::Tensor& given, const InputRule& rule, uint64_t seed) {
  if (rule.kind == InputRule::Kind::kIndices || rule.kind == InputRule::Kind::kMask)
    return makeInput(name, given.dtype(), given.shape(), rule, seed, 1);
  if (!ir::isFloat(given.dtype())) return given;
  Random random(hashBytes(name).lo ^ (seed * 0x9e3779b97f4a7c15u) ^ (uint64_t(1) << 56));
  ir::Tensor t(given.dtype(), given.shape());
  for (int64_t i = 0; i < t.size(); i++) t.setDouble(i, given.getDouble(i) * (0.5 + 0.5 * random.unit()));
  return t;
}

}  // namespace rutter::tuner
