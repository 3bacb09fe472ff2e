#include "partitioner/search/shortlist.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "partitioner/cost/simulation.h"
#include "partitioner/search/search_space.h"

namespace tessera::partitioner {

namespace {

// A few of the fastest 1, 2, 4, ... devices, which arrangements use: the first, and one at five
// sixths of them, which is inside most grids; and whoever reads the image.
std::vector<int> ranks_to_look_at(const Network& network,
                                  const ClusterProfile& cluster,
                                  const SearchOptions& options) {
  const std::vector<int> order = by_speed(device_speeds(network, options.kernels, cluster));
  std::set<int> ranks{order.front(), order.back(), options.reader.single_rank().value_or(0)};
  for (std::size_t count = 1; count <= order.size(); count *= 2) {
    ranks.insert(order[count * 5 / 6]);
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace

Shortlists::Shortlists(const Network& network,
                       const ClusterProfile& cluster,
                       const SearchOptions& options,
                       PartitionFigures& figures) {
  if (is_simulable(network, cluster.size()) || is_of_energy(options.objective)) {
    return;
  }
  ChoiceScope scope;
  scope.looked_at = ranks_to_look_at(network, cluster, options);
  rough_ = std::make_unique<PartitionSearch>(
      network, cluster, options, std::vector<Index>{}, std::move(scope));
  for (const Partition& partition :
       rough_->cheapest({}, static_cast<std::size_t>(options.candidates))) {
    least_s_ = std::min(least_s_, figures.seconds_of(partition));
  }
}

ChoiceScope Shortlists::within(double factor) {
  ChoiceScope scope;
  if (!have_all()) {
    scope.shortlist = rough_->choices_within(factor * least_s_);
  }
  return scope;
}

}  // namespace tessera::partitioner
