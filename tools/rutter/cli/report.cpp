#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace rutter::cli {
namespace {

double mean(std::span<const double> v) {
  return v.empty() ? 0 : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

template <typename F>
std::vector<double> each(std::span<const RunTimes> runs, F f) {
  std::vector<double> out;
  for (const auto& r : runs) out.push_back(f(r));
  return out;
}

// At most this many lines at the start and at the end of the trace.
constexpr size_t kTraceLines = 200;

void traceDetails(std::span<const RunTimes> runs, size_t avgRuns, std::vector<std::string>& lines) {
  lines.push_back("=== Trace details ===");
  lines.push_back(fmt::format("Trace averages of {} runs:", avgRuns));
  const size_t count = (runs.size() + avgRuns - 1) / avgRuns;
  for (size_t i = 0; i < count; i++) {
    if (count > 2 * kTraceLines && i == kTraceLines) {
      lines.push_back(fmt::format("... {} lines are left out ...", count - 2 * kTraceLines));
      i = count - kTraceLines;
    }
    auto part = runs.subspan(i * avgRuns, std::min(avgRuns, runs.size() - i * avgRuns));
    lines.push_back(fmt::format(
        "Average on {} runs - Compute latency: {:g} ms - Host latency: {:g} ms (enqueue {:g} ms)", part.size(),
        mean(each(part, [](auto& r) { return r.compute(); })), mean(each(part, [](auto& r) { return r.latency(); })),
        mean(each(part, [](auto& r) { return r.enqueue(); }))));
  }
}

std::string summaryLine(std::string_view name, const Summary& s, std::span<const double> percentiles) {
  auto out = fmt::format("{}: min = {:g} ms, max = {:g} ms, mean = {:g} ms, median = {:g} ms", name, s.min, s.max,
                         s.mean, s.median);
  for (size_t i = 0; i < percentiles.size(); i++)
    out += fmt::format(", percentile({:g}%) = {:g} ms", percentiles[i], s.percentiles[i]);
  return out;
}

}  // namespace

double percentile(std::span<const double> ascending, double p) {
  RUTTER_CHECK(!ascending.empty(), "percentile of nothing");
  const auto n = static_cast<int64_t>(ascending.size());
  // Multiplied before dividing: (1 - 0.9) * 10 is just below 1 in doubles.
  const auto excluded = static_cast<int64_t>(std::floor((100 - p) * static_cast<double>(n) / 100));
  return ascending[static_cast<size_t>(std::max<int64_t>(n - 1 - excluded, 0))];
}

double median(std::span<const double> ascending) {
  RUTTER_CHECK(!ascending.empty(), "median of nothing");
  const size_t n = ascending.size();
  return n % 2 ? ascending[n / 2] : (ascending[n / 2 - 1] + ascending[n / 2]) / 2;
}

Summary summarize(std::vector<double> times, std::span<const double> percentiles) {
  std::sort(times.begin(), times.end());
  Summary s;
  s.min = times.front();
  s.max = times.back();
  s.mean = mean(times);
  s.median = median(times);
  double squares = 0;
  for (double t : times) squares += (t - s.mean) * (t - s.mean);
  s.variation = s.mean > 0 ? std::sqrt(squares / static_cast<double>(times.size())) / s.mean : 0;
  for (double p : percentiles) s.percentiles.push_back(percentile(times, p));
  return s;
}

Trace cutWarmUp(std::vector<RunTimes> runs, double warmUpMs) {
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.startCompute < b.startCompute; });
  auto first = std::find_if(runs.begin(), runs.end(), [&](const auto& r) { return r.startCompute >= warmUpMs; });
  Trace t;
  t.warmUpRuns = static_cast<size_t>(first - runs.begin());
  t.measured.assign(first, runs.end());
  if (t.measured.empty())
    throw UserError("no run is left after a warm-up of {:g} ms ({} runs); lower --warmUp or raise --duration", warmUpMs,
                    t.warmUpRuns);
  t.warmUpMs = t.measured.front().startH2d;
  double end = 0;
  for (const auto& r : t.measured) end = std::max(end, r.endD2h);
  t.wallSeconds = (end - t.measured.front().startH2d) / 1e3;
  return t;
}

Report performanceReport(const Trace& trace, int avgRuns, std::span<const double> percentiles, int streams) {
  Report out;
  const auto& runs = trace.measured;
  const double n = static_cast<double>(runs.size());
  out.lines.push_back(fmt::format("Warmup completed {} queries over {:g} ms", trace.warmUpRuns, trace.warmUpMs));
  out.lines.push_back(fmt::format("Timing trace has {} queries over {:g} s", runs.size(), trace.wallSeconds));
  traceDetails(runs, static_cast<size_t>(avgRuns), out.lines);

  auto summary = [&](auto f) { return summarize(each(runs, f), percentiles); };
  const auto latency = summary([](auto& r) { return r.latency(); }),
             enqueue = summary([](auto& r) { return r.enqueue(); }), h2d = summary([](auto& r) { return r.h2d(); }),
             compute = summary([](auto& r) { return r.compute(); }), d2h = summary([](auto& r) { return r.d2h(); });
  out.lines.push_back("=== Performance summary ===");
  out.lines.push_back(fmt::format("Throughput: {:g} qps", trace.wallSeconds > 0 ? n / trace.wallSeconds : 0));
  out.lines.push_back(summaryLine("Latency", latency, percentiles));
  out.lines.push_back(summaryLine("Enqueue Time", enqueue, percentiles));
  out.lines.push_back(summaryLine("H2D Latency", h2d, percentiles));
  out.lines.push_back(summaryLine("Compute Time", compute, percentiles));
  out.lines.push_back(summaryLine("D2H Latency", d2h, percentiles));
  out.lines.push_back(fmt::format("Total Host Walltime: {:g} s", trace.wallSeconds));
  out.lines.push_back(fmt::format("Total Compute Time: {:g} s", compute.mean * n / 1e3));

  // On a CPU the call returns when the run is done, so enqueueing always takes as long as computing: no warning there.
  const bool synchronous = h2d.max == 0 && d2h.max == 0;
  if (!synchronous && enqueue.median > 0.8 * compute.median)
    out.warnings.push_back(
        "enqueueing takes most of the time of a run: the host limits throughput; use more streams (--infStreams)");
  if (!synchronous && (h2d.median >= compute.median || d2h.median >= compute.median))
    out.warnings.push_back("copies take as long as the computation; keep inputs and outputs on the device");
  if (compute.variation > 0.025)
    out.warnings.push_back(
        fmt::format("compute times vary by {:.1f} % (standard deviation over mean): the machine is disturbed or the "
                    "run too short; stop other programs, or raise --warmUp and --duration",
                    compute.variation * 100));
  if (streams > 1)
    out.warnings.push_back(
        "several streams run at once: their latencies overlap; judge by throughput, or use --infStreams=1");
  if (runs.size() < 10 || trace.wallSeconds < 0.1)
    out.warnings.push_back(
        fmt::format("only {} runs over {:g} s were measured: too few for percentiles; raise --duration or --iterations",
                    runs.size(), trace.wallSeconds));
  return out;
}

std::vector<std::string> profileTable(std::span<const LayerTimes> layers) {
  struct Row {
    std::string_view name;
    double total, average, median;
  };
  std::vector<Row> rows;
  size_t iterations = 0;
  double total = 0, average = 0, medians = 0;
  for (const auto& l : layers) {
    iterations = std::max(iterations, l.ms.size());
    auto ms = l.ms;
    std::sort(ms.begin(), ms.end());
    double sum = std::accumulate(ms.begin(), ms.end(), 0.0);
    if (!(sum > 0)) continue;
    rows.push_back({l.name, sum, mean(ms), median(ms)});
    total += sum;
    average += rows.back().average;
    medians += rows.back().median;
  }
  std::vector<std::string> out;
  out.push_back(fmt::format("=== Profile ({} iterations ) ===", iterations));
  out.push_back(
      fmt::format("{:>12} {:>12} {:>12} {:>9}   {}", "Time(ms)", "Avg.(ms)", "Median(ms)", "Time(%)", "Layer"));
  auto line = [&](const Row& r) {
    return fmt::format("{:>12.2f} {:>12.4f} {:>12.4f} {:>9.1f}   {}", r.total, r.average, r.median,
                       total > 0 ? r.total / total * 100 : 0, r.name);
  };
  for (const auto& r : rows) out.push_back(line(r));
  out.push_back(line({"Total", total, average, medians}));
  return out;
}

}  // namespace rutter::cli
