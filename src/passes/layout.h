#pragma once
#include "passes/pass.h"

namespace rutter::passes {

/// Chooses the memory order of every value (Type::layout). Convolutions take channels last (layout:conv), operators
/// that do not care keep their input's order, all else is row-major; rutter.LayoutCast nodes stand where an order has
/// to change and nobody can write or read it otherwise. Layouts never change results: values are logical, and every
/// kernel reads and writes by strides.
struct AssignLayouts {
  std::string name() const { return "layout"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

}  // namespace rutter::passes
