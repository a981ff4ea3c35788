#include "codegen/pointwise.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ops/pointwise.h"

namespace rutter::codegen {
namespace {
using ir::DType;
using ir::Node;

struct Ctx {
  PwLowering& low;
  const Node& n;
  const std::vector<int>& a;
  DType in, out;  // types of input 0 and output 0
  PwProgram& p = low.p;

  int c(double v) const { return p.constant(out, v); }
  int un(PwOp op, int x) const { return p.unary(op, out, x); }
  int bi(PwOp op, int x, int y) const { return p.binary(op, out, x, y); }
  float attr(const char* name, float fallback) const { return n.getFloat(name, fallback); }
};
using Rule = int (*)(Ctx&);

int clampTo(const Ctx& c, int x, double lo, double hi) {
  return c.bi(PwOp::kMin, c.bi(PwOp::kMax, x, c.c(lo)), c.c(hi));
}
int hardSigmoid(const Ctx& c, int x, double alpha, double beta) {
  return clampTo(c, c.bi(PwOp::kAdd, c.bi(PwOp::kMul, x, c.c(alpha)), c.c(beta)), 0, 1);
}
int positive(const Ctx& c, int x) {
  return c.p.binary(PwOp::kGt, DType::kBool, x, c.c(0));
}
template <PwOp op>
int unary(Ctx& c) {
  return c.un(op, c.a[0]);
}
template <PwOp op>
int variadic(Ctx& c) {
  int r = c.a[0];
  for (size_t i = 1; i < c.a.size(); i++) r = c.bi(op, r, c.a[i]);
  return r;
}
template <PwOp op>
int compare(Ctx& c) {
  return c.p.binary(op, DType::kBool, c.a[0], c.a[1]);
}
int geluRule(Ctx& c) {
  int x = c.a[0], half = c.bi(PwOp::kMul, x, c.c(0.5));
  if (c.n.getString("approximate", "none") == "tanh") {
    int cube = c.bi(PwOp::kMul, c.bi(PwOp::kMul, x, x), x);
    int inner = c.bi(PwOp::kMul, c.bi(PwOp::kAdd, x, c.bi(PwOp::kMul, cube, c.c(0.044715))), c.c(0.7978845608028654));
    return c.bi(PwOp::kMul, half, c.bi(PwOp::kAdd, c.un(PwOp::kTanh, inner), c.c(1)));
  }
  return c.bi(PwOp::kMul, half,
              c.bi(PwOp::kAdd, c.un(PwOp::kErf, c.bi(PwOp::kMul, x, c.c(0.7071067811865476))), c.c(1)));
}
// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): never overflows.
int softplus(const Ctx& c, int x) {
  int e = c.un(PwOp::kExp, c.un(PwOp::kNeg, c.un(PwOp::kAbs, x)));
  return c.bi(PwOp::kAdd, c.bi(PwOp::kMax, x, c.c(0)), c.un(PwOp::kLog, c.bi(PwOp::kAdd, e, c.c(1))));
}
int elu(const Ctx& c, int x, double alpha, double gamma) {
  // e^min(x,0): the branch not taken must not overflow into the select's arithmetic
  int neg =
      c.bi(PwOp::kMul, c.bi(PwOp::kSub, c.un(PwOp::kExp, c.bi(PwOp::kMin, x, c.c(0))), c.c(1)), c.c(alpha * gamma));
  int pos = gamma == 1 ? x : c.bi(PwOp::kMul, x, c.c(gamma));
  return c.p.select(c.out, positive(c, x), pos, neg);
}
int clipRule(Ctx& c) {
  int x = c.a[0];
  if (c.a.size() > 1 && c.a[1] >= 0) x = c.bi(PwOp::kMax, x, c.a[1]);
  if (c.a.size() > 2 && c.a[2] >= 0) x = c.bi(PwOp::kMin, x, c.a[2]);
  return x;
}
int celuRule(Ctx& c) {
  const int x = c.a[0], alpha = c.c(c.attr("alpha", 1)), zero = c.c(0);
  // e^(min(x,0)/alpha): as in elu
  const int e = c.un(PwOp::kExp, c.bi(PwOp::kDiv, c.bi(PwOp::kMin, x, zero), alpha));
  const int below = c.p.binary(PwOp::kLt, DType::kBool, x, zero);
  return c.p.select(c.out, below, c.bi(PwOp::kMul, alpha, c.bi(PwOp::kSub, e, c.c(1))), x);
}
int thresholdedReluRule(Ctx& c) {
  const int low = c.p.binary(PwOp::kLe, DType::kBool, c.a[0], c.c(c.attr("alpha", 1)));
  return c.p.select(c.out, low, c.c(0), c.a[0]);
}
int castRule(Ctx& c) {
  return c.in == c.out ? c.a[0] : c.un(PwOp::kCast, c.a[0]);
}
int modRule(Ctx& c) {
  return c.bi(c.n.getInt("fmod", 0) ? PwOp::kFmod : PwOp::kMod, c.a[0], c.a[1]);
}
int rangeRule(Ctx& c) {
  const ir::Value *s = c.n.inputs[0], *d = c.n.inputs[2];
  auto value = [&](const ir::Value* v) { return v->symbolic ? (*v->symbolic)[0] : ir::Dim(v->constant->getInt(0)); };
  int i = c.low.index(0);
  int r = c.p.binary(PwOp::kAdd, DType::kI64, c.low.integer(value(s)),
                     c.p.binary(PwOp::kMul, DType::kI64, i, c.low.integer(value(d))));
  return c.out == DType::kI64 ? r : c.un(PwOp::kCast, r);
}
int constantOfShapeRule(Ctx& c) {
  auto it = c.n.attrs.find("value");
  if (it == c.n.attrs.end()) return c.c(0);
  const auto& t = std::get<ir::Tensor>(it->second);
  int r = c.c(t.getDouble(0));
  if (!ir::isFloat(c.out)) c.p.code[r].immInt = t.getInt(0);
  return r;
}
int shapeValueRule(Ctx& c) {
  const ir::Dims& v = *c.n.outputs[0]->symbolic;
  int r = -1;
  for (size_t i = v.size(); i-- > 0;) {
    int x = c.low.integer(v[i]);
    if (r < 0) {
      r = x;
    } else {
      int at = c.p.add({PwOp::kConst, DType::kI64, {-1, -1, -1}, double(i), int64_t(i)});
      r = c.p.select(DType::kI64, c.p.binary(PwOp::kEq, DType::kBool, c.low.index(0), at), x, r);
    }
  }
  return c.out == DType::kI64 ? r : c.un(PwOp::kCast, r);
}

// The programs of ops::allPointwise() and of what codegen itself computes element by element.
const std::unordered_map<std::string, Rule>& rules() {
  static const std::unordered_map<std::string, Rule> t = {
      {"Add", variadic<PwOp::kAdd>},
      {"Sub", variadic<PwOp::kSub>},
      {"Mul", variadic<PwOp::kMul>},
      {"Div", variadic<PwOp::kDiv>},
      {"Min", variadic<PwOp::kMin>},
      {"Max", variadic<PwOp::kMax>},
      {"Sum", variadic<PwOp::kAdd>},
      {"Pow", variadic<PwOp::kPow>},
      {"And", variadic<PwOp::kAnd>},
      {"Or", variadic<PwOp::kOr>},
      {"Xor", variadic<PwOp::kXor>},
      {"Mod", modRule},
      {"Mean", [](Ctx& c) { return c.bi(PwOp::kDiv, variadic<PwOp::kAdd>(c), c.c(double(c.a.size()))); }},
      {"Equal", compare<PwOp::kEq>},
      {"Less", compare<PwOp::kLt>},
      {"LessOrEqual", compare<PwOp::kLe>},
      {"Greater", compare<PwOp::kGt>},
      {"GreaterOrEqual", compare<PwOp::kGe>},
      {"Neg", unary<PwOp::kNeg>},
      {"Abs", unary<PwOp::kAbs>},
      {"Sign", unary<PwOp::kSign>},
      {"Sqrt", unary<PwOp::kSqrt>},
      {"Reciprocal", unary<PwOp::kReciprocal>},
      {"Exp", unary<PwOp::kExp>},
      {"Log", unary<PwOp::kLog>},
      {"Sin", unary<PwOp::kSin>},
      {"Cos", unary<PwOp::kCos>},
      {"Tanh", unary<PwOp::kTanh>},
      {"Erf", unary<PwOp::kErf>},
      {"Sigmoid", unary<PwOp::kSigmoid>},
      {"Floor", unary<PwOp::kFloor>},
      {"Ceil", unary<PwOp::kCeil>},
      {"Round", unary<PwOp::kRound>},
      {"Not", unary<PwOp::kNot>},
      {"IsNaN", unary<PwOp::kIsNan>},
      {"IsInf", unary<PwOp::kIsInf>},
      {"Relu", [](Ctx& c) { return c.bi(PwOp::kMax, c.a[0], c.c(0)); }},
      {"LeakyRelu",
       [](Ctx& c) {
         return c.p.select(c.out, positive(c, c.a[0]), c.a[0], c.bi(PwOp::kMul, c.a[0], c.c(c.attr("alpha", 0.01f))));
       }},
      {"PRelu",
       [](Ctx& c) {  // by x < 0: zero times a slope that is infinite would be NaN
         const int negative = c.p.binary(PwOp::kLt, DType::kBool, c.a[0], c.c(0));
         return c.p.select(c.out, negative, c.bi(PwOp::kMul, c.a[0], c.a[1]), c.a[0]);
       }},
      {"Elu", [](Ctx& c) { return elu(c, c.a[0], c.attr("alpha", 1), 1); }},
      {"Selu",
       [](Ctx& c) {
         return elu(c, c.a[0], c.attr("alpha", 1.67326319217681884765625f),
                    c.attr("gamma", 1.05070102214813232421875f));
       }},
      {"HardSigmoid", [](Ctx& c) { return hardSigmoid(c, c.a[0], c.attr("alpha", 0.2f), c.attr("beta", 0.5f)); }},
      {"HardSwish", [](Ctx& c) { return c.bi(PwOp::kMul, c.a[0], hardSigmoid(c, c.a[0], 1.0 / 6, 0.5)); }},
      {"Silu", [](Ctx& c) { return c.bi(PwOp::kMul, c.a[0], c.un(PwOp::kSigmoid, c.a[0])); }},
      {"Celu", celuRule},
      {"ThresholdedRelu", thresholdedReluRule},
      {"Gelu", geluRule},
      {"Softplus", [](Ctx& c) { return softplus(c, c.a[0]); }},
      {"Mish", [](Ctx& c) { return c.bi(PwOp::kMul, c.a[0], c.un(PwOp::kTanh, softplus(c, c.a[0]))); }},
      {"Softsign", [](Ctx& c) { return c.bi(PwOp::kDiv, c.a[0], c.bi(PwOp::kAdd, c.un(PwOp::kAbs, c.a[0]), c.c(1))); }},
      {"Clip", clipRule},
      {"Where", [](Ctx& c) { return c.p.select(c.out, c.a[0], c.a[1], c.a[2]); }},
      {"Cast", castRule},
      {"CastLike", castRule},
      {"LayoutCast", [](Ctx& c) { return c.a[0]; }},
      {"Range", rangeRule},
      {"ConstantOfShape", constantOfShapeRule},
      {"ShapeValue", shapeValueRule},
  };
  return t;
}
bool compiledType(DType t) {
  switch (t) {
    case DType::kF32:
    case DType::kF64:
    case DType::kF16:
    case DType::kBF16:
    case DType::kI64:
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
    case DType::kU64:
    case DType::kU32:
    case DType::kU16:
    case DType::kU8:
    case DType::kBool:
      return true;
    default:
      return false;
  }
}
}  // namespace

bool isViewOp(const Node& n) {
  static const std::unordered_set<std::string> t = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
                                                    "Expand",  "Slice",   "Split",   "Identity"};
  return n.domain.empty() && t.count(n.op);
}
bool isCopy(const Node& n) {
  return n.op == "LayoutCast";
}
bool isPointwise(const Node& n) {
  if (!n.domain.empty() && n.domain != "rutter") return false;
  if (n.op ==
      "Range")  // compiled where its extent is known as an expression; data-dependent ranges are refused earlier
    for (const ir::Value* v : n.inputs)
      if (!v->symbolic && !v->constant) return false;
  if (n.op == "IsInf" && (n.getInt("detect_negative", 1) != 1 || n.getInt("detect_positive", 1) != 1)) return false;
  static const std::unordered_set<std::string> own = {"CastLike", "LayoutCast", "Range", "ConstantOfShape",
                                                      "ShapeValue"};
  if (ops::findPointwise(n.domain, n.op)) return n.op != "Identity";
  return own.count(n.op) > 0;
}
bool isCompilable(const Node& n) {
  for (const ir::Value* v : n.outputs)
    if (v && (v->type.kind != ir::TypeKind::kTensor || !compiledType(v->type.dtype))) return false;
  for (const ir::Value* v : n.inputs)
    if (v && !compiledType(v->type.dtype)) return false;
  if (isPointwise(n) || isViewOp(n)) return true;
  static const std::unordered_set<std::string> t = {"MatMul",
                                                    "Gemm",
                                                    "Conv",
                                                    "ConvTranspose",
                                                    "MaxPool",
                                                    "AveragePool",
                                                    "GlobalAveragePool",
                                                    "GlobalMaxPool",
                                                    "ReduceSum",
                                                    "ReduceMean",
                                                    "ReduceMax",
                                                    "ReduceMin",
                                                    "ReduceProd",
                                                    "ReduceSumSquare",
                                                    "ReduceL1",
                                                    "ReduceL2",
                                                    "ReduceLogSumExp",
                                                    "ArgMax",
                                                    "ArgMin",
                                                    "Softmax",
                                                    "LogSoftmax",
                                                    "LayerNormalization",
                                                    "RMSNormalization",
                                                    "Resize",
                                                    "Gather",
                                                    "Concat",
                                                    "Pad",
                                                    "Tile"};
  return n.domain.empty() && t.count(n.op);
}
int lowerPointwise(PwLowering& low, const Node& n, const std::vector<int>& args) {
  auto it = rules().find(n.op);
  RUTTER_CHECK(it != rules().end(), "no scalar program for {}", n.op);
  DType out = n.outputs[0]->type.dtype;
  Ctx c{low, n, args, n.inputs.empty() || !n.inputs[0] ? out : n.inputs[0]->type.dtype, out};
  return it->second(c);
}

}  // namespace rutter::codegen
