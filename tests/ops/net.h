#pragma once
// A graph of a few nodes for tests of operators: nodes are inferred as they are added and evaluated on literals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace rutter::ops::test {

using ir::Dim;
using ir::Dims;
using ir::DType;
using ir::Tensor;
using Attrs = std::map<std::string, ir::Attr>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

inline Tensor f32(Ints shape, Floats v) {
  return Tensor::ofFloats(std::move(shape), v);
}
inline Tensor make(DType t, Ints shape, const std::vector<double>& v) {
  Tensor r(t, std::move(shape));
  for (size_t i = 0; i < v.size(); i++) r.setDouble(int64_t(i), v[i]);
  return r;
}
inline Tensor i64(const Ints& v) {
  return Tensor::ofInts(v);
}
inline Tensor i64(Ints shape, const Ints& v) {
  return Tensor::ofInts(v).reshaped(std::move(shape));
}
inline Tensor scalar(int64_t v) {
  return Tensor::ofInts({v}).reshaped({});
}
inline std::vector<double> numbers(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.size(); i++) v.push_back(t.getDouble(i));
  return v;
}

struct Net {
  ir::Graph g;
  ir::Value* input(const std::string& name, DType t, Dims dims) {
    ir::Value* v = g.makeValue(name, ir::Type::tensor(t, std::move(dims)));
    g.top().inputs.push_back(v);
    return v;
  }
  ir::Value* constant(Tensor t) { return g.makeConstant("c", std::move(t)); }
  ir::Node* add(const std::string& op, std::vector<ir::Value*> in, Attrs attrs = {}, size_t outputs = 1,
                const std::string& domain = "") {
    std::vector<ir::Value*> out;
    for (size_t i = 0; i < outputs; i++) out.push_back(g.makeValue(op));
    ir::Node* n = g.makeNode(g.top(), op, std::move(in), std::move(out));
    n->attrs = std::move(attrs);
    n->domain = domain;
    inferNode(g, *n);
    return n;
  }
  ir::Value* node(const std::string& op, std::vector<ir::Value*> in, Attrs attrs = {}) {
    return add(op, std::move(in), std::move(attrs))->output();
  }
};

/// Oracle of one node; the inferred types of its outputs must be those that the oracle makes. `known` lists inputs
/// whose contents the shape rule sees (all by default); an input of no dtype, made by `none()`, is left out.
inline Tensor none() {
  return Tensor();
}
inline std::vector<Tensor> evalAll(const std::string& op, const std::vector<Tensor>& in, Attrs attrs = {},
                                   size_t outputs = 1, const std::string& domain = "") {
  Net net;
  std::vector<ir::Value*> values;
  std::vector<const Tensor*> given;
  for (const Tensor& t : in) {
    bool left = t.data() == nullptr && t.dtype() == DType::kF32;
    values.push_back(left ? nullptr : net.constant(t));
    given.push_back(left ? nullptr : &t);
  }
  ir::Node* n = net.add(op, values, std::move(attrs), outputs, domain);
  auto out = evalNode(*n, given);
  for (size_t i = 0; i < out.size(); i++) {
    EXPECT_EQ(n->outputs[i]->type.dtype, out[i].dtype()) << op << " output " << i;
    EXPECT_EQ(ir::toString(n->outputs[i]->type.dims), ir::toString(ir::toDims(out[i].shape())))
        << op << " output " << i;
    if (n->outputs[i]->symbolic && out[i].rank() <= 1) {
      EXPECT_EQ(ir::toString(*n->outputs[i]->symbolic), ir::toString(ir::toDims(out[i].toInts())))
          << op << ": contents by the shape rule";
    }
  }
  return out;
}
inline Tensor eval(const std::string& op, const std::vector<Tensor>& in, Attrs attrs = {}) {
  return evalAll(op, in, std::move(attrs))[0];
}

inline void expectTensor(const Tensor& t, const Ints& shape, const std::vector<double>& values,
                         double tolerance = 1e-6) {
  EXPECT_EQ(t.shape(), shape);
  EXPECT_THAT(numbers(t), Pointwise(testing::NanSensitiveDoubleNear(tolerance), values));
}
/// The message of the UserError that f throws; "" if it throws none.
template <typename F>
std::string userError(F f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

}  // namespace rutter::ops::test
