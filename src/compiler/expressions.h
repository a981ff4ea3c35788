#pragma once
// Dims into the shape program of a plan.
#include <map>
#include <string>

#include "ir/graph.h"
#include "runtime/plan_generated.h"

namespace rutter::compiler {

/// Appends expressions to a plan, each once. Symbols are read from the input axis that carries them bare.
class Expressions {
 public:
  Expressions(const ir::Graph& g, runtime::fb::PlanT& plan);
  /// Index of the expression; UserError if a symbol appears in no input's shape by itself.
  int operator()(const ir::Dim& d);
  /// Requires that each input's extents are what the graph says (a symbol used twice, a compound extent).
  void checkInputs();

 private:
  int add(runtime::fb::DimOp op, int a, int b, int64_t value);
  const ir::Graph& graph_;
  runtime::fb::PlanT& plan_;
  std::map<std::string, std::pair<int, int>> sources_;  ///< symbol -> (input, axis)
  std::map<std::string, int> known_;                    ///< canonical text -> index
  std::map<std::tuple<int, int, int, int64_t>, int> unique_;
};

}  // namespace rutter::compiler
