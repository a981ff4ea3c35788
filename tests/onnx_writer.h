#pragma once
// Writes small ONNX models for tests, message by message, right or wrong as the test wants it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "onnx/import.h"

namespace rutter::onnxwriter {

enum ElemType {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kHalf = 10,
  kDouble = 11
};
using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

inline std::string message(const std::function<void(protozero::pbf_writer&)>& fill) {
  std::string s;
  protozero::pbf_writer w(s);
  fill(w);
  return s;
}
template <typename T>
std::string rawBytes(const std::vector<T>& v) {
  return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
}
/// TensorProto with raw_data.
inline std::string rawTensor(const std::string& name, int type, const Ints& dims, const std::string& raw) {
  return message([&](auto& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, type);
    w.add_string(8, name);
    w.add_bytes(9, raw);
  });
}
inline std::string floats(const std::string& name, const Ints& dims, const std::vector<float>& v) {
  return rawTensor(name, kFloat, dims, rawBytes(v));
}
inline std::string ints(const std::string& name, const Ints& dims, const Ints& v) {
  return rawTensor(name, kInt64, dims, rawBytes(v));
}
inline std::string externalTensor(const std::string& name, int type, const Ints& dims,
                                  const std::map<std::string, std::string>& entries) {
  return message([&](auto& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, type);
    w.add_string(8, name);
    for (const auto& [k, v] : entries)
      w.add_message(13, message([&, k = k, v = v](auto& e) {
                      e.add_string(1, k);
                      e.add_string(2, v);
                    }));
    w.add_int32(14, 1);
  });
}

/// AttributeProto.
inline std::string attr(const std::string& name, int64_t v) {
  return message([&](auto& w) { w.add_string(1, name), w.add_int64(3, v), w.add_int32(20, 2); });
}
inline std::string attr(const std::string& name, float v) {
  return message([&](auto& w) { w.add_string(1, name), w.add_float(2, v), w.add_int32(20, 1); });
}
inline std::string attr(const std::string& name, const char* v) {
  return message([&](auto& w) { w.add_string(1, name), w.add_string(4, v), w.add_int32(20, 3); });
}
inline std::string attr(const std::string& name, const Ints& v) {
  return message([&](auto& w) {
    w.add_string(1, name);
    for (int64_t i : v) w.add_int64(8, i);
    w.add_int32(20, 7);
  });
}
inline std::string attr(const std::string& name, const std::vector<float>& v) {
  return message([&](auto& w) {
    w.add_string(1, name);
    for (float f : v) w.add_float(7, f);
    w.add_int32(20, 6);
  });
}
inline std::string attrTensor(const std::string& name, const std::string& tensor) {
  return message([&](auto& w) { w.add_string(1, name), w.add_message(5, tensor), w.add_int32(20, 4); });
}
inline std::string attrGraph(const std::string& name, const std::string& graph) {
  return message([&](auto& w) { w.add_string(1, name), w.add_message(6, graph), w.add_int32(20, 5); });
}
/// An attribute of a function's node that takes the value of the call's attribute.
inline std::string attrRef(const std::string& name, int type, const std::string& ref) {
  return message([&](auto& w) { w.add_string(1, name), w.add_int32(20, type), w.add_string(21, ref); });
}

/// NodeProto.
inline std::string node(const std::string& op, const Strings& inputs, const Strings& outputs,
                        const Strings& attributes = {}, const std::string& name = "", const std::string& domain = "") {
  return message([&](auto& w) {
    for (const auto& s : inputs) w.add_string(1, s);
    for (const auto& s : outputs) w.add_string(2, s);
    if (!name.empty()) w.add_string(3, name);
    w.add_string(4, op);
    for (const auto& s : attributes) w.add_message(5, s);
    if (!domain.empty()) w.add_string(7, domain);
  });
}
/// ValueInfoProto. Dims as text: "3", "-1", a name, or "" for a dim that says nothing.
inline std::string value(const std::string& name, int type, const Strings& dims) {
  return message([&](auto& v) {
    v.add_string(1, name);
    v.add_message(2, message([&](auto& t) {
                    t.add_message(1, message([&](auto& x) {
                                    x.add_int32(1, type);
                                    x.add_message(2, message([&](auto& s) {
                                                    for (const auto& d : dims)
                                                      s.add_message(1, message([&](auto& e) {
                                                                      if (d.empty()) return;
                                                                      bool number = std::isdigit(d[0]) ||
                                                                                    (d[0] == '-' && d.size() > 1);
                                                                      if (number)
                                                                        e.add_int64(1, std::stoll(d));
                                                                      else
                                                                        e.add_string(2, d);
                                                                    }));
                                                  }));
                                  }));
                  }));
  });
}
/// ValueInfoProto of a tensor without a shape.
inline std::string shapeless(const std::string& name, int type) {
  return message([&](auto& v) {
    v.add_string(1, name);
    v.add_message(2, message([&](auto& t) { t.add_message(1, message([&](auto& x) { x.add_int32(1, type); })); }));
  });
}

/// GraphProto and, around it, ModelProto.
struct Model {
  Strings nodes, initialisers, inputs, outputs, functions, sparse;
  std::map<std::string, int64_t> opsets = {{"", 17}};
  int64_t irVersion = 8;

  std::string graph() const {
    return message([&](auto& w) {
      for (const auto& s : nodes) w.add_message(1, s);
      w.add_string(2, "g");
      for (const auto& s : initialisers) w.add_message(5, s);
      for (const auto& s : inputs) w.add_message(11, s);
      for (const auto& s : outputs) w.add_message(12, s);
      for (const auto& s : sparse) w.add_message(15, s);
    });
  }
  std::string bytes() const {
    return message([&](auto& w) {
      w.add_int64(1, irVersion);
      w.add_string(2, "writer");
      w.add_message(7, graph());
      for (const auto& [domain, version] : opsets) w.add_message(8, opset(domain, version));
      for (const auto& s : functions) w.add_message(25, s);
    });
  }
  static std::string opset(const std::string& domain, int64_t version) {
    return message([&, version = version](auto& o) {
      if (!domain.empty()) o.add_string(1, domain);
      o.add_int64(2, version);
    });
  }
};
/// FunctionProto of domain "local".
inline std::string function(const std::string& name, const Strings& inputs, const Strings& outputs,
                            const Strings& nodes, const Strings& attributes = {}, const Strings& defaults = {},
                            int64_t opset = 17) {
  return message([&](auto& w) {
    w.add_string(1, name);
    for (const auto& s : inputs) w.add_string(4, s);
    for (const auto& s : outputs) w.add_string(5, s);
    for (const auto& s : attributes) w.add_string(6, s);
    for (const auto& s : nodes) w.add_message(7, s);
    w.add_message(9, Model::opset("", opset));
    w.add_string(10, "local");
    for (const auto& s : defaults) w.add_message(11, s);
  });
}

/// y = Relu(x), x float[2,3]: to be spoilt or extended.
inline Model reluModel() {
  Model m;
  m.nodes = {node("Relu", {"x"}, {"y"}, {}, "relu")};
  m.inputs = {value("x", kFloat, {"2", "3"})};
  m.outputs = {value("y", kFloat, {"2", "3"})};
  return m;
}

inline frontend::Model importText(const std::string& bytes, const std::string& directory = "") {
  return frontend::importBytes(std::as_bytes(std::span(bytes)), {.directory = directory, .name = ""});
}
/// The message of the UserError that importing gives; a test failure if it imports, or if the message has several
/// lines.
inline std::string importError(const std::string& bytes, const std::string& directory = "") {
  try {
    importText(bytes, directory);
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "imported without an error";
  return "";
}

/// A folder of its own for a test, removed at the end.
class TempFolder {
 public:
  TempFolder() {
    std::string t = (std::filesystem::temp_directory_path() / "rutter-test-XXXXXX").string();
    path_ = mkdtemp(t.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::string path_;
};

}  // namespace rutter::onnxwriter
