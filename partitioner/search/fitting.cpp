#include "partitioner/search/fitting.h"

#include <fmt/format.h>

#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/search/search_space.h"

namespace tessera::partitioner {

namespace {

constexpr int kMostBatches = 4;  // that are tried

bool fits(const Network& network, const ClusterProfile& cluster, const SearchOptions& options) {
  return !search_partition(network, cluster, options).candidates.empty();
}

std::optional<Index> fitting_passes(const Network& network,
                                    const ClusterProfile& cluster,
                                    SearchOptions options) {
  const Index images = options.batch * options.cost.passes;
  int tried = 0;
  for (Index passes = options.cost.passes + 1; passes <= images && tried < kMostBatches; ++passes) {
    // Twice as many at least, or one image: each try is a search.
    if (images % passes != 0 || (passes < 2 * options.cost.passes && passes != images)) {
      continue;
    }
    options.cost.passes = passes;
    options.batch = images / passes;
    if (fits(network, cluster, options)) {
      return passes;
    }
    ++tried;
  }
  return std::nullopt;
}

std::string remedies_in_words(const Remedies& remedies, Index images) {
  std::string words;
  if (remedies.passes) {
    words = fmt::format("with --subdivisions {} ({} per pass)",
                        *remedies.passes,
                        counted(images / *remedies.passes, "image"));
  }
  if (remedies.devices) {
    words +=
        fmt::format("{}on {}", words.empty() ? "" : ", or ", counted(*remedies.devices, "device"));
  }
  return words.empty() ? "neither fewer images per pass nor one more device is enough"
                       : "it would fit " + words;
}

}  // namespace

Shortage largest_shortage(const std::vector<MemoryUse>& memory, const std::vector<Index>& limits) {
  expects(memory.size() == limits.size(), "every device has a limit");
  Shortage worst;
  double worst_share = -1;
  for (std::size_t rank = 0; rank < limits.size(); ++rank) {
    const Index needed = memory[rank].total();
    const double share = static_cast<double>(needed) / static_cast<double>(limits[rank]);
    if (share > worst_share) {
      worst_share = share;
      worst = {static_cast<int>(rank), needed, limits[rank]};
    }
  }
  return worst;
}

ClusterProfile with_one_more(const Network& network, const ClusterProfile& cluster) {
  const int slowest = by_speed(device_speeds(network, {}, cluster)).back();
  ClusterProfile larger = cluster;
  larger.devices.push_back(cluster.device(slowest));
  larger.devices.back().name += "+";
  return larger;
}

Remedies find_remedies(const Network& network,
                       const ClusterProfile& cluster,
                       const SearchOptions& options) {
  SearchOptions quick = options;
  quick.objective = Objective::Time;
  quick.candidates = 1;
  Remedies remedies;
  remedies.passes = fitting_passes(network, cluster, quick);
  if (fits(network, with_one_more(network, cluster), quick)) {
    remedies.devices = cluster.size() + 1;
  }
  return remedies;
}

std::string why_nothing_fits(const Network& network,
                             const ClusterProfile& cluster,
                             const SearchOptions& options,
                             const Candidate& smallest) {
  const Shortage shortage = largest_shortage(smallest.memory, memory_limits(cluster, options));
  const Remedies remedies = find_remedies(network, cluster, options);
  return fmt::format(
      "no partition was found that fits into the memory of {}: the smallest needs {} on rank {}, "
      "{} "
      "more than its limit of {}; {}",
      counted(cluster.size(), "device"),
      readable_bytes(shortage.needed_bytes),
      shortage.rank,
      readable_bytes(shortage.missing_bytes()),
      readable_bytes(shortage.limit_bytes),
      remedies_in_words(remedies, options.batch * options.cost.passes));
}

}  // namespace tessera::partitioner
