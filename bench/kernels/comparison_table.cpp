#include "bench/kernels/comparison_table.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace tessera::bench {

namespace {

constexpr Method kMethods[] = {Method::Direct, Method::Winograd};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Both libraries at one pass of one layer by one method; 0 where nothing was measured.
struct Pair {
  double tessera_s = 0;
  double onednn_s = 0;

  void add(Library library, double seconds) {
    double& best = library == Library::Tessera ? tessera_s : onednn_s;
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  [[nodiscard]] bool complete() const { return tessera_s > 0 && onednn_s > 0; }
  [[nodiscard]] double ratio() const { return onednn_s / tessera_s; }
};

struct Row {
  const ConvolutionCase* convolution = nullptr;
  Pass pass = Pass::Forward;
  Pair pairs[2];  // by method
};

std::vector<Row> rows_of(const std::vector<Candidate>& candidates,
                         const GatheringReporter& measured) {
  std::vector<Row> rows;
  for (const Candidate& candidate : candidates) {
    const double seconds = measured.seconds(candidate);
    if (seconds == 0) {
      continue;
    }
    if (rows.empty() || rows.back().convolution != candidate.convolution ||
        rows.back().pass != candidate.pass) {
      rows.push_back({candidate.convolution, candidate.pass, {}});
    }
    rows.back().pairs[static_cast<int>(candidate.method)].add(candidate.library, seconds);
  }
  return rows;
}

std::string rate(const ConvolutionCase& convolution, double seconds) {
  return seconds == 0 ? "" : fmt::format("{:.1f}", 1e-9 * convolution.flops() / seconds);
}

std::string mean_ratio(const std::vector<Row>& rows, Method method) {
  double logarithms = 0;
  int count = 0;
  for (const Row& row : rows) {
    const Pair& pair = row.pairs[static_cast<int>(method)];
    if (pair.complete()) {
      logarithms += std::log(pair.ratio());
      ++count;
    }
  }
  return count == 0 ? "" : fmt::format("{:.2f}", std::exp(logarithms / count));
}

std::string line_of(const Row& row) {
  std::string line = fmt::format("| {} | {} | {} |",
                                 row.convolution->layer,
                                 row.convolution->description(),
                                 name_of(row.pass));
  for (const Method method : kMethods) {
    const Pair& pair = row.pairs[static_cast<int>(method)];
    line += fmt::format(" {} | {} | {} |",
                        rate(*row.convolution, pair.tessera_s),
                        rate(*row.convolution, pair.onednn_s),
                        pair.complete() ? fmt::format("{:.2f}", pair.ratio()) : "");
  }
  return line + "\n";
}

// Of all rows, or of those of one pass.
std::string means_line(const std::string& title, const std::vector<Row>& rows) {
  return fmt::format("| | geometric mean | {} | | | {} | | | {} |\n",
                     title,
                     mean_ratio(rows, Method::Direct),
                     mean_ratio(rows, Method::Winograd));
}

}  // namespace

void GatheringReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (const Run& run : runs) {
    const bool repetition = run.run_type == Run::RT_Iteration;
    if (repetition) {
      seconds_[run.run_name.function_name].push_back(run.real_accumulated_time /
                                                     static_cast<double>(run.iterations));
    }
    if (repetition ? run.repetitions == 1
                   : run.aggregate_name == "median" || run.aggregate_name == "cv") {
      shown.push_back(run);
    }
  }
  if (!shown.empty()) {
    ConsoleReporter::ReportRuns(shown);
  }
}

double GatheringReporter::seconds(const Candidate& candidate) const {
  const auto found = seconds_.find(candidate.name());
  return found == seconds_.end() ? 0 : median(found->second);
}

std::string comparison_table(const std::vector<Candidate>& candidates,
                             const GatheringReporter& measured) {
  const std::vector<Row> rows = rows_of(candidates, measured);
  std::string table =
      "| layer | convolution | pass | direct, GFLOP/s | oneDNN direct | ratio | "
      "Winograd, GFLOP/s | oneDNN Winograd | ratio |\n"
      "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Row& row : rows) {
    table += line_of(row);
  }
  for (const Pass pass : kPasses) {
    std::vector<Row> of_pass;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(of_pass), [&](const Row& row) {
      return row.pass == pass;
    });
    table += means_line(std::string(name_of(pass)), of_pass);
  }
  return table + means_line("all passes", rows);
}

}  // namespace tessera::bench
