#include "partitioner/search/exchange_prices.h"

#include <algorithm>
#include <utility>

#include "partitioner/search/group_memory.h"

namespace tessera::partitioner {

namespace {

// Forward alone: what any device lacks has to come through its interface.
double least_exchange_s(const RegionsOfRanks& owners,
                        const RegionsOfRanks& readers,
                        const ClusterProfile& cluster) {
  double least_s = 0;
  for (std::size_t rank = 0; rank < readers.size(); ++rank) {
    const double lacking =
        region_bytes(readers[rank]) - region_bytes(intersect(owners[rank], readers[rank]));
    least_s = std::max(least_s, lacking / cluster.devices[rank].receive_bytes_per_s);
  }
  return least_s;
}

}  // namespace

ExchangePrices::ExchangePrices(const Network& network,
                               const ClusterProfile& cluster,
                               const SearchOptions& options,
                               const RegionTable& regions,
                               std::vector<Index> limits)
    : network_(network),
      cluster_(cluster),
      options_(options),
      regions_(regions),
      limits_(std::move(limits)),
      load_(cluster) {}

ExchangePrices::Exchange ExchangePrices::priced(
    int map, int owned, int required, const SearchPrices& prices, double budget) {
  if (owned == kNoRegions || !options_.reader.is_sent(map)) {
    return {};
  }
  const bool comes_from_pre_activations =
      map != kImage && takes_batch_statistics(network_.layer(map));
  const auto key = static_cast<std::uint64_t>(comes_from_pre_activations) << 63U |
                   static_cast<std::uint64_t>(owned) << 32U | static_cast<std::uint32_t>(required);
  const auto [found, is_new] = known_.try_emplace(key);
  Known& known = found->second;
  const RegionsOfRanks& owners = regions_.at(owned);
  const RegionsOfRanks& readers = regions_.at(required);
  if (is_new) {
    known.least_s = least_exchange_s(owners, readers, cluster_);
  }
  const double least_s = static_cast<double>(options_.cost.passes) * known.least_s;
  const double per_second = prices.energy.per_second;
  if (!known.exact && per_second * least_s > budget * (1 + kRounding)) {
    return {per_second * least_s, 0};
  }
  if (!known.exact) {
    known.exact = true;
    const auto index = owners_.try_emplace(owned, owners).first;
    known.seconds = exchange_seconds(index->second, readers, load_);
    known.load =
        exchange_load(owners, readers, comes_from_pre_activations, options_.memory, limits_);
  }
  const bool comes_back = map != kImage && network_.takes_gradient(map);
  const double backward_s = comes_back ? (1 - prices.hidden) * known.seconds.backward_s : 0;
  const double seconds =
      static_cast<double>(options_.cost.passes) * (known.seconds.forward_s + backward_s);
  return {per_second * seconds + prices.memory.seconds * known.load, known.load};
}

}  // namespace tessera::partitioner
