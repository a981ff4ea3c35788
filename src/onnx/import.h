#pragma once
// The ONNX front end: a file or bytes in, a graph of newest-version operators out. Weights stay where they are: the
// graph's constants are views into the mapped files.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "ir/graph.h"

namespace rutter::frontend {

/// A parsed model. The graph keeps the mapped files alive; dims are as declared (symbols where the model leaves them
/// open), types of inner values are a first inference and not binding: `passes::specialise` settles them.
struct Model {
  std::unique_ptr<ir::Graph> graph;
  Hash128 hash;  ///< of the model's bytes and of each external data file's name, size and bytes
  int64_t irVersion = 0;
  int64_t opset = 0;     ///< of the default domain; 0 if not imported
  std::string producer;  ///< "pytorch 2.1", "" if not stated
  int64_t nodes = 0;     ///< nodes of the top graph as the file has them
};

struct ImportOptions {
  std::string directory;  ///< where external data is looked for; empty: external data is an error
  std::string name;       ///< prefix of error messages; empty: none
};

/// One node that cannot be imported, for the parser API.
struct UnsupportedNode {
  std::string name, op, domain;
  int64_t index = 0;  ///< position in its graph
  std::string why;
};
/// Operators without a rule and oracle, all of them in one error.
class UnsupportedOperators : public UserError {
 public:
  UnsupportedOperators(const std::string& text, std::vector<UnsupportedNode> n)
      : UserError(text), nodes(std::move(n)) {}
  std::vector<UnsupportedNode> nodes;
};

/// Maps and parses a model. UserError (one line, with the path) on anything wrong with it.
Model importFile(const std::string& path);
/// Parses bytes. With an owner, constants are views that keep it alive; without one, the bytes are copied first.
Model importBytes(std::span<const std::byte> bytes, const ImportOptions& options,
                  std::shared_ptr<const void> owner = nullptr);

/// Nodes of the top graph that follow each other and whose operators are all supported, or all not.
struct NodesBySupport {
  bool supported = true;
  std::vector<int64_t> nodes;  ///< indices in the file
};
/// The model's top graph in an order in which it can run, cut where support changes. A node is supported if all
/// operators of the function that it calls and of its subgraphs are. UserError if the bytes are no model.
std::vector<NodesBySupport> nodesBySupport(std::span<const std::byte> bytes);

/// Name of a node as routes and layer information know it: its own, or OpType_<index in its graph>.
std::string nodeName(std::string_view name, std::string_view op, int64_t index);

}  // namespace rutter::frontend
