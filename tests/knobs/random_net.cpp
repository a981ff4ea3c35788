#include "knobs/random_net.h"

#include <algorithm>
#include <numeric>

namespace rutter::test {
namespace {
using V = ir::Value*;
using Ints = std::vector<int64_t>;

class Maker {
 public:
  Maker(Net& n, unsigned seed) : n_(n), rng_(seed) {}
  void run(int steps) {
    static const int64_t channels[] = {3, 8, 12, 16};
    if (pick(3))
      values_.push_back(n_.input("image", {1 + pick(2), channels[pick(4)], 5 + pick(6), 5 + pick(6)}));
    else
      values_.push_back(n_.input("rows", {1 + pick(3), 3 + pick(9), 4 + pick(30)}));
    while (int(values_.size()) <= steps) {
      // Mostly deep: the newest values are the likeliest.
      size_t back = std::min<size_t>(size_t(pick(2) ? 0 : pick(3)), values_.size() - 1);
      if (V y = step(values_[values_.size() - 1 - back])) values_.push_back(y);
    }
    n_.output(values_.back());
    for (size_t i = 1; i + 1 < values_.size(); i++)
      if (values_[i]->users.empty()) n_.output(values_[i]);
    V inner = values_[1 + size_t(pick(steps - 1))];
    const auto& outs = n_.graph->top().outputs;
    if (std::find(outs.begin(), outs.end(), inner) == outs.end()) n_.output(inner);
  }

 private:
  int64_t pick(int64_t n) { return int64_t(rng_() % uint64_t(n)); }
  static Ints dims(V v) { return *ir::constants(v->type.dims); }
  static int64_t size(V v) {
    Ints d = dims(v);
    return std::accumulate(d.begin(), d.end(), int64_t(1), std::multiplies<>());
  }
  V unary(V x) {
    static const char* ops[] = {"Tanh", "Relu", "Sigmoid", "Neg", "Abs", "Erf", "Softplus", "HardSwish"};
    return n_.op(ops[pick(8)], {x});
  }
  V binary(V x) {
    static const char* ops[] = {"Add", "Mul", "Sub", "Max", "Min"};
    Ints d = dims(x);
    V y = nullptr;
    switch (pick(4)) {
      case 0:
        y = n_.scalar(0.5);
        break;
      case 1:  // along one axis
        for (size_t i = 0, keep = size_t(pick(int64_t(d.size()))); i < d.size(); i++)
          if (i != keep) d[i] = 1;
        y = n_.random(d);
        break;
      default:
        for (V v : values_)
          if (dims(v) == d && (v != x || pick(4) == 0)) y = v;
        if (!y) y = n_.random(d);
    }
    return pick(2) ? n_.op(ops[pick(5)], {x, y}) : n_.op(ops[pick(5)], {y, x});
  }
  V conv(V x) {
    Ints d = dims(x);
    int64_t k = 1 + 2 * pick(2), s = 1 + pick(3) / 2, in = d[1], out = 4 * (1 + pick(5));
    int64_t groups = pick(4) == 0 ? in : 1;
    if (groups > 1) out = in;
    if (d[2] < k || d[3] < k || in > 64) return nullptr;
    double scale = 1.0 / std::sqrt(double(in / groups * k * k));
    std::vector<V> args = {x, n_.random({out, in / groups, k, k}, -scale, scale)};
    if (pick(2)) args.push_back(n_.random({out}));
    return n_.op("Conv", args, {{"pads", Ints(4, pick(3) ? k / 2 : 0)}, {"strides", Ints(2, s)}, {"group", groups}});
  }
  V matmul(V x) {
    Ints d = dims(x);
    if (d.size() < 2) return nullptr;
    int64_t k = d.back();
    double scale = 1.0 / std::sqrt(double(k));
    if (pick(3)) return n_.op("MatMul", {x, n_.random({k, 1 + pick(40)}, -scale, scale)});
    // Scores of attention: a product with itself.
    Ints perm(d.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[d.size() - 1], perm[d.size() - 2]);
    return n_.op("Mul", {n_.op("MatMul", {x, n_.op("Transpose", {x}, {{"perm", perm}})}), n_.scalar(scale)});
  }
  V move(V x) {
    Ints d = dims(x);
    int64_t r = int64_t(d.size()), axis = pick(r), n = d[size_t(axis)];
    switch (pick(6)) {
      case 0: {
        Ints perm(d.size());
        std::iota(perm.begin(), perm.end(), 0);
        std::shuffle(perm.begin(), perm.end(), rng_);
        return n_.op("Transpose", {x}, {{"perm", perm}});
      }
      case 1: {
        if (n < 3) return nullptr;
        int64_t step = 1 + pick(2);
        return n_.op("Slice", {x, n_.ints({pick(2)}), n_.ints({n - pick(2)}), n_.ints({axis}), n_.ints({step})});
      }
      case 2: {
        V other = pick(2) ? unary(x) : x;
        for (V v : values_) {  // sometimes a value that only differs along the axis
          Ints e = dims(v);
          if (e.size() != d.size() || v == x) continue;
          e[size_t(axis)] = n;
          if (e == d) other = v;
        }
        return size(x) > 20000 ? nullptr : n_.op("Concat", {x, other}, {{"axis", axis}});
      }
      case 3: {
        if (axis + 1 >= r || r < 3) return nullptr;
        d[size_t(axis)] *= d[size_t(axis) + 1];
        d.erase(d.begin() + axis + 1);
        return n_.op("Reshape", {x, n_.ints(d)});
      }
      case 4: {
        if (n < 2) return nullptr;
        auto parts = n_.many("Split", {x, n_.ints({n / 2, n - n / 2})}, 2, {{"axis", axis}});
        values_.push_back(parts[0]);
        return parts[1];
      }
      default: {
        Ints pads(2 * d.size(), 0);
        pads[size_t(axis)] = pick(2);
        pads[d.size() + size_t(axis)] = 1 + pick(2);
        return n_.op("Pad", {x, n_.ints(pads), n_.scalar(0.25)});
      }
    }
  }
  V step(V x) {
    size_t rank = dims(x).size();
    if (size(x) < 2 || size(x) > 60000) return nullptr;
    switch (pick(11)) {
      case 0:
      case 1:
        return unary(x);
      case 2:
      case 3:
        return binary(x);
      case 4:
      case 5:
        return rank == 4 ? conv(x) : matmul(x);
      case 6: {
        static const char* ops[] = {"ReduceMean", "ReduceMax", "ReduceSum"};
        if (rank < 2) return nullptr;
        return n_.op(ops[pick(3)], {x, n_.ints({pick(int64_t(rank))})},
                     {{"keepdims", pick(4) ? int64_t(1) : int64_t(0)}});
      }
      case 7:
        return n_.op("Softmax", {x}, {{"axis", pick(int64_t(rank))}});
      case 8:
        if (rank == 4 && dims(x)[2] >= 2 && dims(x)[3] >= 2)
          return n_.op(pick(2) ? "MaxPool" : "AveragePool", {x},
                       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints(2, 1 + pick(2))}});
        return rank >= 2 ? matmul(x) : nullptr;
      default:
        return move(x);
    }
  }
  Net& n_;
  std::mt19937 rng_;
  std::vector<V> values_;
};
}  // namespace

void randomNet(Net& n, unsigned seed, int steps) {
  Maker(n, seed).run(steps);
}

}  // namespace rutter::test
