#include "ir/type.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rutter::ir {

bool Layout::isRowMajor() const {
  for (size_t i = 0; i < order.size(); i++)
    if (order[i] != i) return false;
  return block == 1;
}
bool Layout::operator==(const Layout& o) const {
  if (isRowMajor() && o.isRowMajor()) return true;
  return order == o.order && block == o.block && (block == 1 || blockAxis == o.blockAxis);
}
std::string Layout::text() const {
  if (isRowMajor()) return "row-major";
  std::string s = "order=";
  for (auto a : order) s += char('0' + a);
  return block == 1 ? s : fmt::format("{},block={}x{}", s, int(blockAxis), block);
}
Layout Layout::channelsLast(size_t rank) {
  Layout l;
  if (rank < 3) return l;
  l.order.push_back(0);
  for (size_t i = 2; i < rank; i++) l.order.push_back(uint8_t(i));
  l.order.push_back(1);
  return l;
}
Dims Type::strides() const {
  RUTTER_CHECK(layout.block == 1, "strides of a blocked layout");
  Dims s(dims.size(), Dim(1));
  Dim n(1);
  for (size_t i = dims.size(); i-- > 0;) {
    size_t axis = layout.isRowMajor() ? i : layout.order[i];
    s[axis] = n;
    n = n * dims[axis];
  }
  return s;
}
std::string Type::text() const {
  if (kind != TypeKind::kTensor)
    return kind == TypeKind::kSequence ? "sequence" : kind == TypeKind::kOptional ? "optional" : "map";
  std::string s = fmt::format("{}[{}]", dtypeName(dtype), known ? toString(dims) : "?");
  return layout.isRowMajor() ? s : s + " " + layout.text();
}

}  // namespace rutter::ir
