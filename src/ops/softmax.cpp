// Softmax, LogSoftmax, Hardmax and LpNormalization: one axis at a time.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  c.axis(c.node.getInt("axis", -1), c.in(0).rank());
  c.out(0, c.in(0).dtype, c.in(0).dims);
}
// f(row) changes the elements of one line along the axis.
template <typename F>
void eval(EvalContext& c, F f) {
  const Tensor& x = c.in(0);
  size_t axis = size_t(c.axis(c.node.getInt("axis", -1), x.rank()));
  auto v = load<double>(x);
  int64_t n = x.shape()[axis], inner = ir::rowMajorStrides(x.shape())[axis];
  std::vector<double> row(size_t(n), 0);
  for (int64_t line = 0; n && line < x.size() / n; line++) {
    double* p = v.data() + line / inner * n * inner + line % inner;
    for (int64_t i = 0; i < n; i++) row[size_t(i)] = p[i * inner];
    f(row);
    for (int64_t i = 0; i < n; i++) p[i * inner] = row[size_t(i)];
  }
  store(c.out(0, x.dtype(), x.shape()), v);
}
double highest(const std::vector<double>& row) {
  double m = -INFINITY;
  for (double x : row)
    if (x > m || std::isnan(x)) m = x;
  return m;
}
void softmax(std::vector<double>& row) {
  double m = highest(row), sum = 0;
  for (double& x : row) sum += x = std::exp(x - m);
  for (double& x : row) x /= sum;
}
void logSoftmax(std::vector<double>& row) {
  double m = highest(row), sum = 0;
  for (double x : row) sum += std::exp(x - m);
  for (double& x : row) x = x - m - std::log(sum);
}
void hardmax(std::vector<double>& row) {
  size_t best = size_t(std::max_element(row.begin(), row.end()) - row.begin());
  for (size_t i = 0; i < row.size(); i++) row[i] = i == best;
}
int64_t normOrder(const ir::Node& n) {
  int64_t p = n.getInt("p", 2);
  if (p != 1 && p != 2) throw UserError("attribute p is {}; supported: 1, 2", p);
  return p;
}
}  // namespace
const OpDef op_Softmax = {"Softmax", "", 13, infer, [](EvalContext& c) { eval(c, softmax); }};
const OpDef op_LogSoftmax = {"LogSoftmax", "", 13, infer, [](EvalContext& c) { eval(c, logSoftmax); }};
const OpDef op_Hardmax = {"Hardmax", "", 13, infer, [](EvalContext& c) { eval(c, hardmax); }};
const OpDef op_LpNormalization = {"LpNormalization", "", 22,
                                  [](InferContext& c) {
                                    normOrder(c.node);
                                    infer(c);
                                  },
                                  [](EvalContext& c) {
                                    eval(c, [p = normOrder(c.node)](std::vector<double>& row) {
                                      double sum = 0;
                                      for (double x : row) sum += p == 1 ? std::abs(x) : x * x;
                                      double norm = p == 1 ? sum : std::sqrt(sum);
                                      for (double& x : row) x = norm == 0 ? 0 : x / norm;
                                    });
                                  }};
}  // namespace rutter::ops
