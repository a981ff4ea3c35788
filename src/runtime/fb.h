#pragma once
// FlatBuffers leaves out what is empty: lists and texts of a plan that may be null.
#include <string_view>

#include "runtime/plan_generated.h"

namespace rutter::runtime {

template <typename V>
uint32_t count(const V* v) {
  return v ? v->size() : 0;
}
inline std::string_view view(const flatbuffers::String* s) {
  return s ? std::string_view(s->c_str(), s->size()) : std::string_view();
}

}  // namespace rutter::runtime
