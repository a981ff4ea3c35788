#pragma once
// TypeProto -> ir::Type, and names of symbolic dims.
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/type.h"

namespace rutter::frontend {

/// Gives each dim_param of a model a name that a Dim may carry (letters, digits, _ and .; no digit first). Equal texts
/// get the same symbol; texts that say nothing ("?", "-1") and nameless dims get one of their own: `<input>_<axis>`.
class SymbolNames {
 public:
  std::string named(std::string_view dimParam);
  std::string fresh(std::string_view input, size_t axis);

 private:
  std::string unique(std::string base);
  std::map<std::string, std::string, std::less<>> byText_;
  std::set<std::string> taken_;
};

/// Declared type of a graph input. Without a shape the type stays unknown (dtype set). `what` starts error messages.
ir::Type decodeType(std::string_view typeProto, std::string_view input, SymbolNames& symbols, const std::string& what);

}  // namespace rutter::frontend
