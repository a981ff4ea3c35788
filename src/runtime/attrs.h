#pragma once
// Attributes of a node as bytes, for reference nodes in a plan.
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace rutter::runtime {

using Attrs = std::map<std::string, ir::Attr>;

/// Deterministic (attributes are ordered by name). Tensors are stored whole.
std::vector<uint8_t> encodeAttrs(const Attrs& attrs);
/// Inverse of encodeAttrs. UserError if the bytes are not what encodeAttrs writes.
Attrs decodeAttrs(std::span<const uint8_t> bytes);

}  // namespace rutter::runtime
