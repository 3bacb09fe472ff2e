#include "engine/run_log/epoch_end.h"

#include "engine/run_files/names.h"
#include "engine/run_log/epoch_table.h"
#include "engine/run_log/event_log.h"
#include "engine/run_log/metrics_file.h"
#include "engine/train/metrics/make_metric.h"

namespace tessera::engine {

bool has_epoch_end(const std::filesystem::path& folder,
                   const partitioner::Network& network,
                   Index step,
                   bool tests) {
  if (!has_epoch_row(folder / run_file::kEpochs, step)) {
    return false;
  }
  if (!tests) {
    return true;
  }
  const std::filesystem::path metrics = folder / run_file::kMetrics;
  if (!has_evaluation(metrics, step) || !has_test_event(folder / run_file::kEvents, step)) {
    return false;
  }
  const auto best = best_evaluation(metrics, score_of(network), step);
  if (!best || best->step < step) {
    return true;
  }
  const auto saved = best_so_far(folder / run_file::kBest, network);
  return saved && saved->step >= step;
}

BestFound best_in_folder(const std::filesystem::path& folder,
                         const partitioner::Network& network,
                         Index step) {
  const auto logged = best_evaluation(folder / run_file::kMetrics, score_of(network), step);
  const auto best = best_by_files(logged, best_so_far(folder / run_file::kBest, network), step);
  const bool is_lost = logged && (!best || best->step < logged->step);
  return {best, is_lost ? std::optional(logged->step) : std::nullopt};
}

std::optional<BestSoFar> best_by_files(const std::optional<BestSoFar>& logged,
                                       const std::optional<BestSoFar>& saved,
                                       Index step) {
  const bool counts = saved && saved->step <= step;
  const bool replaced = logged && saved && saved->step >= logged->step;
  if (replaced && !(counts && saved->tested.better_than(logged->tested))) {
    return logged;
  }
  return counts ? saved : std::nullopt;
}

}  // namespace tessera::engine
