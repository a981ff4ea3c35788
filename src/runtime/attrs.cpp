#include "runtime/attrs.h"

#include <cstring>

#include "base/bytes.h"

namespace rutter::runtime {
namespace {

// The index of an alternative of ir::Attr is its tag in the file.
enum class Tag : uint8_t { kInt = 0, kFloat, kString, kTensor, kInts, kFloats, kStrings };
template <Tag tag, typename T>
constexpr bool kTagMatches = std::is_same_v<std::variant_alternative_t<size_t(tag), ir::Attr>, T>;
static_assert(kTagMatches<Tag::kInt, int64_t> && kTagMatches<Tag::kFloat, float> &&
              kTagMatches<Tag::kString, std::string>);
static_assert(kTagMatches<Tag::kTensor, ir::Tensor> && kTagMatches<Tag::kInts, std::vector<int64_t>>);
static_assert(kTagMatches<Tag::kFloats, std::vector<float>> && kTagMatches<Tag::kStrings, std::vector<std::string>>);

void putTensor(ByteWriter& w, const ir::Tensor& t) {
  w.put(t.dtype());
  w.put(t.shape());
  if (t.dtype() == ir::DType::kString) {
    for (int64_t i = 0; i < t.size(); i++) w.put(t.getString(i));
  } else {
    w.put(std::string_view(static_cast<const char*>(t.data()), size_t(t.bytes())));
  }
}

// Counts come from outside: one that the rest of the bytes cannot hold must not allocate.
template <typename T>
std::vector<T> getNumbers(ByteReader& r, size_t limit) {
  auto n = r.get<uint64_t>();
  if (n > limit / sizeof(T)) throw UserError("truncated attribute: {} values announced", n);
  std::vector<T> v(n);
  for (auto& x : v) x = r.get<T>();
  return v;
}
std::vector<std::string> getStrings(ByteReader& r, uint64_t n, size_t limit) {
  if (n > limit / sizeof(uint64_t)) throw UserError("truncated attribute: {} strings announced", n);
  std::vector<std::string> v(n);
  for (auto& s : v) s = r.getString();
  return v;
}
ir::Tensor getTensor(ByteReader& r, size_t limit) {
  auto type = r.get<uint8_t>();
  if (type > uint8_t(ir::DType::kString)) throw UserError("attribute tensor of unknown type {}", type);
  auto dtype = ir::DType(type);
  auto shape = getNumbers<int64_t>(r, limit);
  int64_t count = ir::elementCount(shape);
  if (dtype == ir::DType::kString) return ir::Tensor::ofStrings(shape, getStrings(r, uint64_t(count), limit));
  std::string_view data = r.getString();
  if (count > int64_t(limit) * 8 || size_t(ir::bytesOf(dtype, count)) != data.size())
    throw UserError("attribute tensor of {} elements has {} bytes", count, data.size());
  ir::Tensor t(dtype, shape);
  if (!data.empty()) std::memcpy(t.mutableData(), data.data(), data.size());
  return t;
}

}  // namespace

std::vector<uint8_t> encodeAttrs(const Attrs& attrs) {
  ByteWriter w;
  w.put<uint64_t>(attrs.size());
  for (const auto& [name, a] : attrs) {
    w.put(name);
    w.put(uint8_t(a.index()));
    if (auto* t = std::get_if<ir::Tensor>(&a))
      putTensor(w, *t);
    else
      std::visit(
          [&](const auto& v) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(v)>, ir::Tensor>) w.put(v);
          },
          a);
  }
  const std::string& s = w.bytes();
  return {s.begin(), s.end()};
}

Attrs decodeAttrs(std::span<const uint8_t> bytes) {
  ByteReader r({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const size_t limit = bytes.size();
  Attrs out;
  auto n = r.get<uint64_t>();
  for (uint64_t i = 0; i < n; i++) {
    std::string name(r.getString());
    auto tag = r.get<uint8_t>();
    ir::Attr a;
    switch (Tag(tag)) {
      case Tag::kInt:
        a = r.get<int64_t>();
        break;
      case Tag::kFloat:
        a = r.get<float>();
        break;
      case Tag::kString:
        a = std::string(r.getString());
        break;
      case Tag::kTensor:
        a = getTensor(r, limit);
        break;
      case Tag::kInts:
        a = getNumbers<int64_t>(r, limit);
        break;
      case Tag::kFloats:
        a = getNumbers<float>(r, limit);
        break;
      case Tag::kStrings:
        a = getStrings(r, r.get<uint64_t>(), limit);
        break;
      default:
        throw UserError("attribute '{}' has unknown kind {}", name, tag);
    }
    if (!out.emplace(std::move(name), std::move(a)).second) throw UserError("an attribute occurs twice");
  }
  if (!r.atEnd()) throw UserError("bytes after the last attribute");
  return out;
}

}  // namespace rutter::runtime
