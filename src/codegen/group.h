#pragma once
// Fusion groups: the nodes that one kernel problem computes. A group has at most one anchor (GEMM, convolution,
// reduction …); pointwise nodes before a reduction or row form its prologue, those after an anchor its epilogue.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/storage.h"
#include "ir/graph.h"
#include "knobs/resolve.h"

namespace rutter::codegen {

enum class GroupKind : uint8_t {
  kCompute,    ///< anchor (or none) with pointwise nodes around it
  kCopyPart,   ///< one part of a Concat that could not be written in place
  kCopy,       ///< a view that has to be materialised
  kReference,  ///< a node run by its oracle
};
struct Group {
  GroupKind kind = GroupKind::kCompute;
  ir::Node* anchor = nullptr;             ///< null: pointwise only
  std::vector<ir::Node*> prologue;        ///< in order, before the anchor
  std::vector<ir::Node*> nodes;           ///< pointwise ones after the anchor (all of them, if there is none), in order
  size_t part = 0;                        ///< kCopyPart: input of the Concat
  std::vector<const ir::Value*> outputs;  ///< values that others read, in node order
  std::string name, type;                 ///< "Conv.12", "Conv+Add+Relu"
  std::vector<std::string> origins;
  size_t anchorOrigin = 0;        ///< index in origins that decides scoped knobs
  std::set<knobs::KnobId> reads;  ///< fusion knobs read while forming it
  std::vector<ir::Node*> all() const;
};

/// Groups in execution order. Storage says which nodes are free (they get no group). alone: anchors that take no other
/// node in.
std::vector<Group> formGroups(const ir::Graph& g, const Storage& storage, const knobs::Route& route,
                              const std::set<const ir::Node*>& reference, const std::set<const ir::Node*>& alone = {});

}  // namespace rutter::codegen
