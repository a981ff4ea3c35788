#pragma once
// Canonical serialisation for hashing and messages: fixed-width little-endian integers, length-prefixed strings.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace rutter {

class ByteWriter {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void put(T v) {
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void put(std::string_view s) {
    put<uint64_t>(s.size());
    out_.append(s);
  }
  void put(const std::string& s) { put(std::string_view(s)); }
  template <typename T>
  void put(const std::vector<T>& v) {
    put<uint64_t>(v.size());
    for (const auto& x : v) put(x);
  }
  const std::string& bytes() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what ByteWriter wrote; running off the end is a UserError (the bytes come from outside).
class ByteReader {
 public:
  explicit ByteReader(std::string_view s) : s_(s) {}
  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  T get() {
    T v;
    const std::string_view bytes = take(sizeof v);
    std::memcpy(&v, bytes.data(), bytes.size());
    return v;
  }
  std::string_view getString() { return take(get<uint64_t>()); }
  bool atEnd() const { return s_.empty(); }

 private:
  std::string_view take(uint64_t n) {
    if (n > s_.size()) throw UserError("truncated record: {} bytes wanted, {} left", n, s_.size());
    auto r = s_.substr(0, n);
    s_.remove_prefix(n);
    return r;
  }
  std::string_view s_;
};

}  // namespace rutter
