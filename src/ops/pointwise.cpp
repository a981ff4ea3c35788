#include "ops/pointwise.h"

#include <unordered_map>

namespace rutter::ops {
namespace {
using enum Pointwise::Inputs;

constexpr Pointwise kAll[] = {
    {"Abs", kOne},
    {"Neg", kOne},
    {"Exp", kOne},
    {"Log", kOne},
    {"Sqrt", kOne},
    {"Reciprocal", kOne},
    {"Floor", kOne},
    {"Ceil", kOne},
    {"Round", kOne},
    {"Sign", kOne},
    {"Erf", kOne},
    {"Sin", kOne},
    {"Cos", kOne},
    {"Tanh", kOne},
    {"Sigmoid", kOne},
    {"HardSigmoid", kOne},
    {"HardSwish", kOne},
    {"Relu", kOne},
    {"Elu", kOne},
    {"Selu", kOne},
    {"Celu", kOne},
    {"LeakyRelu", kOne},
    {"Softplus", kOne},
    {"Softsign", kOne},
    {"Gelu", kOne},
    {"Mish", kOne},
    {"Not", kOne},
    {"IsNaN", kOne},
    {"IsInf", kOne},
    {"Cast", kOne},
    {"Clip", kOne},
    {"Identity", kOne},
    {"Silu", kOne, "rutter"},
    {"ThresholdedRelu", kOne},
    {"Add", kTwo},
    {"Sub", kTwo},
    {"Mul", kTwo},
    {"Div", kTwo},
    {"Pow", kTwo},
    {"Mod", kTwo},
    {"And", kTwo},
    {"Or", kTwo},
    {"Xor", kTwo},
    {"Less", kTwo},
    {"LessOrEqual", kTwo},
    {"Greater", kTwo},
    {"GreaterOrEqual", kTwo},
    {"Equal", kTwo},
    {"PRelu", kTwo},
    {"Min", kTwoOrMore},
    {"Max", kTwoOrMore},
    {"Where", kOther},
    {"Sum", kOther},
    {"Mean", kOther},
};
}  // namespace

std::span<const Pointwise> allPointwise() {
  return kAll;
}
const Pointwise* findPointwise(std::string_view domain, std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Pointwise*> t;
    for (const Pointwise& p : kAll) t[p.name] = &p;
    return t;
  }();
  auto it = table.find(name);
  return it != table.end() && it->second->domain == domain ? it->second : nullptr;
}

}  // namespace rutter::ops
