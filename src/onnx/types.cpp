#include "onnx/types.h"

#include <cctype>

#include "onnx/file.h"
#include "onnx/model.h"
#include "onnx/wire.h"

namespace rutter::frontend {
namespace {

std::string sanitised(std::string_view text) {
  std::string s;
  for (char c : text.substr(0, 200)) s += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
  if (s.empty() || !(std::isalpha(static_cast<unsigned char>(s[0])) || s[0] == '_')) s = "_" + s;
  return s;
}
bool saysSomething(std::string_view text) {
  for (char c : text)
    if (std::isalpha(static_cast<unsigned char>(c))) return true;
  return false;
}

ir::Dims decodeShape(std::string_view bytes, std::string_view input, SymbolNames& symbols, const std::string& what) {
  ir::Dims dims;
  pbf_reader r = reader(bytes);
  while (r.next()) {
    if (r.tag() != 1) {
      r.skip();
      continue;
    }
    pbf_reader d = reader(readView(r));
    int64_t value = -1;
    bool hasValue = false;
    std::string_view param;
    while (d.next()) {
      switch (d.tag()) {
        case 1:
          value = readInt(d), hasValue = true;
          break;
        case 2:
          param = readView(d);
          break;
        default:
          d.skip();
      }
    }
    if (hasValue && value < -1) throw UserError("{}: dim {} is {}", what, dims.size(), value);
    if (hasValue && value >= 0) {
      dims.push_back(value);
    } else {
      dims.push_back(ir::Dim::symbol(saysSomething(param) ? symbols.named(param) : symbols.fresh(input, dims.size())));
    }
  }
  return dims;
}

ir::Type decode(std::string_view bytes, std::string_view input, SymbolNames& symbols, const std::string& what,
                int depth) {
  if (depth > kMaxNesting) throw UserError("{}: its type is nested more than {} deep", what, kMaxNesting);
  ir::Type type;
  bool seen = false;
  pbf_reader r = reader(bytes);
  while (r.next()) {
    const uint32_t tag = r.tag();
    if (tag == 8) throw UserError("{}: sparse tensors are not supported", what);
    if (tag != 1 && tag != 4 && tag != 5 && tag != 9) {
      r.skip();
      continue;
    }
    seen = true;
    type = ir::Type();
    pbf_reader t = reader(readView(r));
    int elem = 0;
    while (t.next()) {
      if (tag == 1 && t.tag() == 1) {
        elem = static_cast<int>(readInt(t));
      } else if (tag == 1 && t.tag() == 2) {
        type.dims = decodeShape(readView(t), input, symbols, what);
        type.known = true;
      } else if (tag == 5 && t.tag() == 1) {  // the key of a map
        auto key = ir::dtypeFromOnnx(static_cast<int>(readInt(t)));
        if (!key) throw UserError("{}: a map with keys of an unsupported type", what);
        type.dtype = *key;
      } else if ((tag == 5 && t.tag() == 2) || ((tag == 4 || tag == 9) && t.tag() == 1)) {
        type.elements.push_back(decode(readView(t), input, symbols, what, depth + 1));
      } else {
        t.skip();
      }
    }
    if (tag == 1) {
      auto dtype = ir::dtypeFromOnnx(elem);
      if (!dtype) throw UserError("{}: element type {} is not supported", what, elem);
      type.dtype = *dtype;
    } else {
      type.kind = tag == 4 ? ir::TypeKind::kSequence : tag == 5 ? ir::TypeKind::kMap : ir::TypeKind::kOptional;
      type.known = !type.elements.empty();
    }
  }
  if (!seen) throw UserError("{}: no type is given", what);
  return type;
}

}  // namespace

std::string SymbolNames::unique(std::string base) {
  std::string s = base;
  for (int i = 1; !taken_.insert(s).second; i++) s = base + "." + std::to_string(i);
  return s;
}
std::string SymbolNames::named(std::string_view text) {
  auto it = byText_.find(text);
  if (it == byText_.end()) it = byText_.emplace(std::string(text), unique(sanitised(text))).first;
  return it->second;
}
std::string SymbolNames::fresh(std::string_view input, size_t axis) {
  return unique(sanitised(input) + "_" + std::to_string(axis));
}

ir::Type decodeType(std::string_view bytes, std::string_view input, SymbolNames& symbols, const std::string& what) {
  return decode(bytes, input, symbols, what, 0);
}

}  // namespace rutter::frontend
