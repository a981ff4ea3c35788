#pragma once
// Losses of spec 5.1 with the "better" rules, and the threshold-free guard of DESIGN section 8. Sums are in double,
// differences of 64-bit integers are exact. No loss is ever NaN: a NaN or infinity that the reference does not have at
// the same place (or the reverse) is an infinite loss, equal ones match.
#include <map>
#include <optional>
#include <string>

#include "ir/tensor.h"
#include "tuner/tune.h"

namespace rutter::tuner {

/// "l0" "l1" "l2" "lInf" "cos", case-sensitive; UserError names them.
LossKind parseLoss(const std::string& word);
const char* lossFlag(LossKind k);    ///< as above
const char* lossHeader(LossKind k);  ///< "L0" "L1" "L2" "LInf" "Cosine", as in the cache's header

/// Can outputs of this type be compared under a threshold? (Bool and all numbers of at least a byte; strings
/// only by the guard.)
bool comparable(ir::DType t);
/// Loss of `actual` against `reference`. Other shape: infinite. Both empty: 0. Other dtype, or one that is not
/// comparable: InternalError (checked before the first build).
double loss(const AccuracyOptions& how, const ir::Tensor& actual, const ir::Tensor& reference);

/// Distance of y from o: Euclidean norm and maximum of the difference, and both of o.
struct Distance {
  double norm = 0, max = 0, refNorm = 0, refMax = 0;
};
Distance distance(const ir::Tensor& y, const ir::Tensor& o);

struct GuardVerdict {
  bool ok = true;
  double relative = 0;  ///< norm of the difference to the oracle over the oracle's norm (0 if both are 0)
  std::string reason;   ///< "" if ok
};
/// A candidate's output y against default d and oracle o.
GuardVerdict guard(const ir::Tensor& y, const ir::Tensor& d, const ir::Tensor& o);
/// The default itself against the oracle: norm at most 1e-4 of the oracle's in fp32 (fp64 too; a few units of the last
/// place for shorter types).
GuardVerdict guardDefault(const ir::Tensor& d, const ir::Tensor& o);
/// True if every element is finite (or not a float).
bool allFinite(const ir::Tensor& t);
/// True if dtype, shape and every byte agree.
bool bitEqual(const ir::Tensor& a, const ir::Tensor& b);

/// The largest loss of each output over all input sets.
class LossTable {
 public:
  void add(const std::string& output, double loss);
  const std::map<std::string, double>& losses() const { return losses_; }
  /// The first output whose loss is at or above `threshold`.
  std::optional<std::string> rejectedBy(double threshold) const;

 private:
  std::map<std::string, double> losses_;
};

}  // namespace rutter::tuner
