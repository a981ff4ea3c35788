#pragma once
// Reports of measured runs (spec section 8): pure functions from recorded times to lines.
#include <span>
#include <string>
#include <vector>

namespace rutter::cli {

/// One run, in ms since the start of the measurement. On a CPU nothing is copied: the H2D interval is empty and lies
/// at the start of the computation, the D2H interval at its end.
struct RunTimes {
  double startEnq = 0, endEnq = 0, startH2d = 0, endH2d = 0, startCompute = 0, endCompute = 0, startD2h = 0, endD2h = 0;

  double enqueue() const { return endEnq - startEnq; }
  double h2d() const { return endH2d - startH2d; }
  double compute() const { return endCompute - startCompute; }
  double d2h() const { return endD2h - startD2h; }
  double latency() const { return h2d() + compute() + d2h(); }
};

/// Percentile p in [0, 100] of ascending `times` (not empty): index max(n - 1 - floor((1 - p/100) n), 0).
double percentile(std::span<const double> ascending, double p);
/// Mean of the middle two for an even count. Not empty.
double median(std::span<const double> ascending);

struct Summary {
  double min = 0, max = 0, mean = 0, median = 0, variation = 0;  ///< variation: standard deviation / mean
  std::vector<double> percentiles;                               ///< as asked
};
Summary summarize(std::vector<double> times, std::span<const double> percentiles);

/// The warm-up runs come first: those whose computation starts before `warmUpMs` are not counted.
/// UserError if no run is left.
struct Trace {
  std::vector<RunTimes> measured;
  size_t warmUpRuns = 0;
  double warmUpMs = 0;     ///< when the first measured run starts
  double wallSeconds = 0;  ///< first measured input copy to last output copy
};
Trace cutWarmUp(std::vector<RunTimes> runs, double warmUpMs);

struct Report {
  std::vector<std::string> lines;     ///< without prefix, severity info
  std::vector<std::string> warnings;  ///< each says what to do
};
/// "Warmup completed …", "Timing trace has …", "=== Trace details ===", "=== Performance summary ===".
Report performanceReport(const Trace& trace, int avgRuns, std::span<const double> percentiles, int streams);

/// A layer's times over the profiled runs, ms.
struct LayerTimes {
  std::string name;
  std::vector<double> ms;
};
/// "=== Profile (N iterations ) ===" and its table; layers that took no time are left out.
std::vector<std::string> profileTable(std::span<const LayerTimes> layers);

}  // namespace rutter::cli
