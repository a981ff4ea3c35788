// Operators of one input, element by element. They share a shape rule; each is a name, a version and a formula.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferSame(InferContext& c, Accept set) {
  accept(c, 0, set);
  c.out(0, c.in(0).dtype, c.in(0).dims);
}
void inferFloat(InferContext& c) {
  inferSame(c, Accept::kFloat);
}
void inferNumber(InferContext& c) {
  inferSame(c, Accept::kNumber);
}
void inferRounding(InferContext& c) {
  inferFloat(c);
  symbolicCopy(c);  // expressions are whole numbers already
}
void inferNeg(InferContext& c) {
  inferNumber(c);
  symbolicUnary(c, [](const Dim& d) { return std::optional(Dim(0) - d); });
}
void inferAbs(InferContext& c) {
  inferNumber(c);
  symbolicUnary(c, [&](const Dim& d) { return atLeast(c, d, 0) ? std::optional(d) : std::nullopt; });
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double softplus(double x) {
  return std::log1p(std::exp(-std::abs(x))) + (x < 0 ? 0 : x);
}
bool geluIsTanh(const ir::Node& n) {
  std::string a = n.getString("approximate", "none");
  if (a != "none" && a != "tanh") throw UserError("attribute approximate is '{}'; supported: none, tanh", a);
  return a == "tanh";
}
double gelu(double x, bool tanhForm) {
  if (tanhForm) return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
}
struct Line {
  double alpha, beta;
  explicit Line(const ir::Node& n) : alpha(n.getFloat("alpha", 0.2f)), beta(n.getFloat("beta", 0.5f)) {}
  double operator()(double x) const {
    double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
  }
};
}  // namespace

// The formula may use c (EvalContext) in its captures, for attributes.
#define UNARY(Name, domain, since, infer, ...) \
  const OpDef op_##Name = {#Name, domain, since, infer, [](EvalContext& c) { evalFloatUnary(c, __VA_ARGS__); }};
#define FLOAT_UNARY(Name, since, ...) UNARY(Name, "", since, inferFloat, __VA_ARGS__)

FLOAT_UNARY(Exp, 13, [](double x) { return std::exp(x); })
FLOAT_UNARY(Log, 13, [](double x) { return std::log(x); })
FLOAT_UNARY(Sqrt, 13, [](double x) { return std::sqrt(x); })
FLOAT_UNARY(Reciprocal, 13, [](double x) { return 1 / x; })
FLOAT_UNARY(Erf, 13, [](double x) { return std::erf(x); })
FLOAT_UNARY(Sin, 22, [](double x) { return std::sin(x); })
FLOAT_UNARY(Cos, 22, [](double x) { return std::cos(x); })
FLOAT_UNARY(Tan, 22, [](double x) { return std::tan(x); })
FLOAT_UNARY(Asin, 22, [](double x) { return std::asin(x); })
FLOAT_UNARY(Acos, 22, [](double x) { return std::acos(x); })
FLOAT_UNARY(Atan, 22, [](double x) { return std::atan(x); })
FLOAT_UNARY(Sinh, 22, [](double x) { return std::sinh(x); })
FLOAT_UNARY(Cosh, 22, [](double x) { return std::cosh(x); })
FLOAT_UNARY(Tanh, 13, [](double x) { return std::tanh(x); })
FLOAT_UNARY(Asinh, 22, [](double x) { return std::asinh(x); })
FLOAT_UNARY(Acosh, 22, [](double x) { return std::acosh(x); })
FLOAT_UNARY(Atanh, 22, [](double x) { return std::atanh(x); })
FLOAT_UNARY(Sigmoid, 13, sigmoid)
FLOAT_UNARY(HardSigmoid, 22, Line(c.node))
FLOAT_UNARY(HardSwish, 22, [](double x) { return x * (x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6); })
FLOAT_UNARY(LeakyRelu, 16, [a = double(c.node.getFloat("alpha", 0.01f))](double x) { return x < 0 ? a * x : x; })
FLOAT_UNARY(ThresholdedRelu, 22, [a = double(c.node.getFloat("alpha", 1.0f))](double x) { return x <= a ? 0 : x; })
FLOAT_UNARY(Elu, 22, [a = double(c.node.getFloat("alpha", 1.0f))](double x) { return x < 0 ? a * std::expm1(x) : x; })
FLOAT_UNARY(Celu, 28,
            [a = double(c.node.getFloat("alpha", 1.0f))](double x) { return x < 0 ? a * std::expm1(x / a) : x; })
FLOAT_UNARY(Selu, 22,
            [a = double(c.node.getFloat("alpha", 1.67326319217681884765625f)),
             g = double(c.node.getFloat("gamma", 1.05070102214813232421875f))](double x) {
              return g * (x <= 0 ? a * std::expm1(x) : x);
            })
FLOAT_UNARY(Shrink, 9, [b = double(c.node.getFloat("bias", 0)), l = double(c.node.getFloat("lambd", 0.5f))](double x) {
  return x < -l ? x + b : x > l ? x - b : 0;
})
FLOAT_UNARY(Softplus, 22, softplus)
FLOAT_UNARY(Softsign, 22, [](double x) { return x / (1 + std::abs(x)); })
FLOAT_UNARY(Mish, 22, [](double x) { return x * std::tanh(softplus(x)); })
FLOAT_UNARY(Swish, 24, [a = double(c.node.getFloat("alpha", 1.0f))](double x) { return x * sigmoid(a * x); })
UNARY(Silu, "rutter", 1, inferFloat, [](double x) { return x * sigmoid(x); })
UNARY(Floor, "", 13, inferRounding, [](double x) { return std::floor(x); })
UNARY(Ceil, "", 13, inferRounding, [](double x) { return std::ceil(x); })
UNARY(Round, "", 22, inferRounding, [](double x) { return std::nearbyint(x); })  // half to even
UNARY(
    Gelu, "", 20,
    [](InferContext& c) {
      geluIsTanh(c.node);
      inferFloat(c);
    },
    [t = geluIsTanh(c.node)](double x) { return gelu(x, t); })

// Those that integers have too.
const OpDef op_Relu = {"Relu", "", 14, inferNumber,
                       [](EvalContext& c) { evalUnary(c, [](auto x) { return x < 0 ? 0 : x; }); }};
const OpDef op_Neg = {"Neg", "", 13, inferNeg, [](EvalContext& c) {
                        evalUnary(c, [](auto x) {
                          if constexpr (std::is_same_v<decltype(x), double>)
                            return -x;
                          else
                            return int64_t(0 - uint64_t(x));
                        });
                      }};
const OpDef op_Abs = {"Abs", "", 13, inferAbs, [](EvalContext& c) {
                        evalUnary(c, [](auto x) {
                          if constexpr (std::is_same_v<decltype(x), double>)
                            return std::abs(x);
                          else
                            return x < 0 ? int64_t(0 - uint64_t(x)) : int64_t(x);
                        });
                      }};
const OpDef op_Sign = {"Sign", "", 13, inferNumber, [](EvalContext& c) {
                         evalUnary(c, [](auto x) { return x > 0 ? 1 : x < 0 ? -1 : x; });
                       }};

namespace {
void inferTest(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  c.out(0, DType::kBool, c.in(0).dims);
}
template <typename F>
void evalTest(EvalContext& c, F f) {
  auto v = load<double>(c.in(0));
  Tensor& y = c.out(0, DType::kBool, c.in(0).shape());
  for (size_t i = 0; i < v.size(); i++) y.as<uint8_t>()[i] = f(v[i]);
}
}  // namespace
const OpDef op_IsNaN = {"IsNaN", "", 20, inferTest,
                        [](EvalContext& c) { evalTest(c, [](double x) { return std::isnan(x); }); }};
const OpDef op_IsInf = {"IsInf", "", 20, inferTest, [](EvalContext& c) {
                          bool up = c.node.getInt("detect_positive", 1), down = c.node.getInt("detect_negative", 1);
                          evalTest(c, [=](double x) { return std::isinf(x) && (x > 0 ? up : down); });
                        }};
const OpDef op_Not = {
    "Not", "", 1,
    [](InferContext& c) {
      inferSame(c, Accept::kBool);
      symbolicUnary(c, [](const Dim& d) { return d.isConstant() ? std::optional(Dim(d.is(0))) : std::nullopt; });
    },
    [](EvalContext& c) { evalUnary(c, [](auto x) { return x == 0 ? 1 : 0; }); }};

}  // namespace rutter::ops
