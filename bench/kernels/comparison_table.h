// Gathers what was measured while Google Benchmark prints it, and makes of it a table that compares
// this project's kernels with oneDNN's.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/kernels/candidate.h"

namespace tessera::bench {

// Prints median and spread of each candidate, or its single run.
class GatheringReporter : public benchmark::ConsoleReporter {
 public:
  GatheringReporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override;

  // Seconds of a pass, the median of the repetitions; 0 for what was not measured.
  [[nodiscard]] double seconds(const Candidate& candidate) const;

 private:
  std::map<std::string, std::vector<double>> seconds_;  // of each repetition, by candidate's name
};

// Markdown: GFLOP/s of each pass of each layer, the best of each library by each method, how many
// times faster this project's is, and the geometric means of that.
[[nodiscard]] std::string comparison_table(const std::vector<Candidate>& candidates,
                                           const GatheringReporter& measured);

}  // namespace tessera::bench
