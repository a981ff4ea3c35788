#pragma once
// Reading protobuf fields with their wire types checked (protozero itself only asserts them).
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace rutter::frontend {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

inline pbf_reader reader(std::string_view s) {
  return pbf_reader(s.data(), s.size());
}

inline void expect(const pbf_reader& r, pbf_wire_type t) {
  if (r.wire_type() != t)
    throw UserError("not an ONNX model, or a damaged one: field {} has wire type {}, not {}", uint32_t(r.tag()),
                    uint32_t(r.wire_type()), uint32_t(t));
}
inline std::string_view readView(pbf_reader& r) {
  expect(r, pbf_wire_type::length_delimited);
  auto v = r.get_view();
  return {v.data(), v.size()};
}
inline int64_t readInt(pbf_reader& r) {
  expect(r, pbf_wire_type::varint);
  return r.get_int64();
}
inline float readFloat(pbf_reader& r) {
  expect(r, pbf_wire_type::fixed32);
  return r.get_float();
}
/// One element, or a packed run of them: writers may use either form.
inline void readInts(pbf_reader& r, std::vector<int64_t>& out) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    for (int64_t v : r.get_packed_int64()) out.push_back(v);
  } else {
    out.push_back(readInt(r));
  }
}
template <typename T>
void readFixed(pbf_reader& r, std::vector<T>& out) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    std::string_view v = readView(r);
    if (v.size() % sizeof(T))
      throw UserError("a packed field of {} bytes does not hold whole elements of {}", v.size(), sizeof(T));
    size_t n = out.size();
    out.resize(n + v.size() / sizeof(T));
    if (!v.empty()) std::memcpy(out.data() + n, v.data(), v.size());
  } else if constexpr (sizeof(T) == 4) {
    out.push_back(readFloat(r));
  } else {
    expect(r, pbf_wire_type::fixed64);
    out.push_back(r.get_double());
  }
}

}  // namespace rutter::frontend
