#pragma once
// Witnesses: for every knob a small model and two values, compiled for a named instruction set, that show that the knob
// is live. See DESIGN section 3.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "net.h"
#include "runtime/engine.h"

namespace rutter::test {

/// A model under one route: what was decided, and the engine.
struct Built {
  compiler::Decided decided;
  compiler::BuildResult result;
  std::shared_ptr<const runtime::Engine> engine;

  const runtime::fb::PlanT& plan() const { return result.parts.plan; }
  /// The first layer whose type holds the operator as one of its parts ("Conv" of "Conv+Relu"); InternalError if none.
  const codegen::Layer& layer(const std::string& op) const;
  /// The launches of that layer.
  std::vector<const runtime::fb::LaunchT*> launches(const std::string& op) const;
};
/// "" of isa: the best of this machine.
Built build(const ir::Graph& g, const std::string& route, const std::string& isa, compiler::KernelCache& cache,
            int threads = 2);
/// Outputs of a run on two threads; output memory is poisoned before.
std::vector<ir::Tensor> runBuilt(const Built& b, const std::vector<ir::Tensor>& inputs);
/// All that is executed, without names and descriptions: machine code and its constants, launches, memory, weights.
std::string executedContent(const Built& b);
/// |x - want| / |want|, the largest of all outputs; infinite if shapes differ or one side only is not finite.
double relativeError(const std::vector<ir::Tensor>& x, const std::vector<ir::Tensor>& want);

struct Witness {
  std::string knob;  ///< with its dash
  std::string value, other;
  std::function<void(Net&)> model;
  /// The knob's own effect, in words or numbers, and what it is under both values.
  std::function<std::string(const Built&)> effect;
  std::string expected, expectedOther;
  std::string base = "";     ///< a route that both builds share
  std::string isa = "avx2";  ///< skipped on machines without it
};
void PrintTo(const Witness& w, std::ostream* os);
/// The table, by area.
std::vector<Witness> codegenWitnesses();  ///< codegen, pointwise
std::vector<Witness> tileWitnesses();     ///< gemm, conv
std::vector<Witness> fuseWitnesses();     ///< fusion of groups, memory, threads
/// Graph passes: the effect is a number measured on the graph, checked in passes_witness.cpp.
struct GraphWitness {
  const char* knob;
  const char *value, *other;  ///< the first is the default
  std::function<void(Net&)> build;
  std::function<int(const ir::Graph&)> measure;  ///< the knob's own effect, a number
  int expected, expectedOther;
  const char* base = "";  ///< a route that both builds share, where a kernel would be the same without it
};
std::vector<GraphWitness> graphWitnesses();
/// All of these, one for each knob.
std::vector<Witness> allWitnesses();

}  // namespace rutter::test
