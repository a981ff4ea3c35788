#pragma once
// What a tuned engine was tuned on: facts by name, compared one by one so that a difference can be named. The tuner
// writes it into journal and engine; who loads the engine elsewhere is warned.
#include <map>
#include <string>
#include <vector>

namespace rutter {

struct Fingerprint {
  /// "cpu" (vendor and family), "features", "l1d", "l2", "l3" (bytes), "cores" (usable threads); the tuner adds
  /// "rutter", "llvm", "model", "shapes" and "threads".
  std::map<std::string, std::string> facts;

  static Fingerprint ofMachine();                     ///< the first six, as they are here and now
  std::string text() const;                           ///< JSON object, keys sorted
  static Fingerprint parse(const std::string& json);  ///< UserError if it is no object of strings
  /// "cores: 8 there, 2 here" for each fact of `here` that this one has with another value.
  std::vector<std::string> differences(const Fingerprint& here) const;
};

}  // namespace rutter
