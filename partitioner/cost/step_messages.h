// Messages of a step other than those between maps: batch statistics, and gradients and values of
// parameters. One group's, as the engine sends them.

#pragma once

#include <array>
#include <vector>

#include "partitioner/cost/transfer_model.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/parameter_runs.h"
#include "partitioner/plan/plan.h"
#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

inline constexpr double kScalarBytes = 4;

[[nodiscard]] inline double region_bytes(const Region& region) {
  return kScalarBytes * static_cast<double>(region.volume());
}

// Of a message of batch statistics: so many numbers per channel.
[[nodiscard]] inline double statistics_bytes(Index numbers, Index channels) {
  return static_cast<double>(numbers * kStatisticsNumberBytes * channels);
}

// Adds the messages of one synchronisation of `tiles`, of so many numbers per channel, as
// for_each_statistics_message() has them.
void add_statistics(const std::vector<Tile>& tiles,
                    Region Tile::*contributes,
                    Index numbers,
                    TransferLoad& load);

struct SharedParameter {
  ParameterKind kind = ParameterKind::Weight;
  Index row = 1;  // elements of an output channel
  std::vector<SharedRun> runs;
  bool gradient_sent = true;  // false: normalising has summed it already
};

// What is learnt in a layer.
[[nodiscard]] std::vector<SharedParameter> shared_parameters(const Network& network,
                                                             int layer,
                                                             const std::vector<Tile>& tiles);

// Calls visit(owner, holder, elements) for each message of values; gradients run the other way.
template <class Visit>
void for_each_message(const SharedParameter& parameter, Visit visit) {
  for (const SharedRun& run : parameter.runs) {
    for (std::size_t owner = 0; owner < run.ranks.size(); ++owner) {
      for (std::size_t holder = 0; holder < run.ranks.size(); ++holder) {
        if (owner != holder && run.shares[owner] > 0) {
          visit(run.ranks[owner], run.ranks[holder], run.shares[owner]);
        }
      }
    }
  }
}

// Calls visit(owner, elements) for each share.
template <class Visit>
void for_each_share(const SharedParameter& parameter, Visit visit) {
  for (const SharedRun& run : parameter.runs) {
    for (std::size_t i = 0; i < run.ranks.size(); ++i) {
      visit(run.ranks[i], run.shares[i]);
    }
  }
}

}  // namespace tessera::partitioner
