#include "partitioner/search/exchange_prices.h"

#include <algorithm>
#include <array>
#include <utility>

#include "partitioner/search/group_memory.h"

namespace tessera::partitioner {

namespace {

// What a part of a dimension meets of others: cells, and how many parts.
struct Meeting {
  double cells = 0;
  double parts = 0;
};

std::vector<Meeting> meetings(const std::vector<Range>& parts, const std::vector<Range>& others) {
  std::vector<Meeting> result;
  result.reserve(parts.size());
  for (const Range& part : parts) {
    Meeting& meeting = result.emplace_back();
    for (const Range& other : others) {
      const Index shared = intersect(part, other).size();
      meeting.cells += static_cast<double>(shared);
      meeting.parts += shared > 0 ? 1 : 0;
    }
  }
  return result;
}

// Of a rank at this place, less the bytes that it has itself.
Flow flow_at(const std::array<std::vector<Meeting>, 4>& dimensions,
             const std::array<int, 4>& place,
             double own_bytes) {
  if (place.front() < 0) {
    return {};
  }
  Flow flow{kScalarBytes, 1};
  for (std::size_t d = 0; d < place.size(); ++d) {
    const Meeting& meeting = dimensions[d][static_cast<std::size_t>(place[d])];
    flow.bytes *= meeting.cells;
    flow.messages *= meeting.parts;
  }
  return {flow.bytes - own_bytes, flow.messages - (own_bytes > 0 ? 1 : 0)};
}

}  // namespace

ExchangePrices::ExchangePrices(const Network& network,
                               const ClusterProfile& cluster,
                               const SearchOptions& options,
                               const ChoiceScope& scope,
                               const RegionTable& regions,
                               std::vector<Index> limits)
    : network_(network),
      cluster_(cluster),
      options_(options),
      scope_(scope),
      regions_(regions),
      limits_(std::move(limits)),
      load_(cluster) {}

// What any device lacks has to come through its interface, and its gradient has to go back.
ExchangeSeconds ExchangePrices::least_seconds(const RegionsOfRanks& owners,
                                              const RegionsOfRanks& readers) const {
  ExchangeSeconds least;
  for (std::size_t at = 0; at < readers.size(); ++at) {
    const double lacking =
        region_bytes(readers[at]) - region_bytes(intersect(owners[at], readers[at]));
    const DeviceProfile& reader = cluster_.devices[device(at)];
    least.forward_s = std::max(least.forward_s, lacking / reader.receive_bytes_per_s);
    least.backward_s = std::max(least.backward_s, lacking / reader.send_bytes_per_s);
  }
  return least;
}

// Of regions that are products what a rank sends is one, too, less what it has itself: nothing
// depends on pairs of ranks. Exact where all ranks are looked at.
ExchangeSeconds ExchangePrices::product_seconds(int owned, int required) const {
  const RegionProduct& owner = regions_.product(owned).value();
  const RegionProduct& reader = regions_.product(required).value();
  std::array<std::vector<Meeting>, 4> sent;
  std::array<std::vector<Meeting>, 4> received;
  for (std::size_t d = 0; d < kDimensions.size(); ++d) {
    sent[d] = meetings(owner.parts[d], reader.parts[d]);
    received[d] = meetings(reader.parts[d], owner.parts[d]);
  }
  TransferSeconds forward;
  TransferSeconds backward;
  double latency_s = 0;
  for (std::size_t at = 0; at < owner.places.size(); ++at) {
    const double own = region_bytes(intersect(regions_.at(owned)[at], regions_.at(required)[at]));
    const Flow out = flow_at(sent, owner.places[at], own);
    const Flow in = flow_at(received, reader.places[at], own);
    const DeviceProfile& here = cluster_.devices[device(at)];
    forward.add(here, out, in);
    backward.add(here, in, out);
    latency_s = out.messages + in.messages > 0 ? cluster_.link.latency_s : latency_s;
  }
  return {forward.total(0, latency_s), backward.total(0, latency_s)};
}

// At least, where only some ranks are looked at.
ExchangeSeconds ExchangePrices::seconds_between(int owned, int required) {
  if (!load_.has_pairs() && regions_.product(owned) && regions_.product(required)) {
    return product_seconds(owned, required);
  }
  const RegionsOfRanks& owners = regions_.at(owned);
  const RegionsOfRanks& readers = regions_.at(required);
  if (!scope_.looked_at.empty()) {
    return least_seconds(owners, readers);
  }
  return exchange_seconds(owners_.try_emplace(owned, owners).first->second, readers, load_);
}

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
  const auto price_of = [&](const ExchangeSeconds& seconds) {
    const bool comes_back = map != kImage && network_.takes_gradient(map);
    const double backward_s = comes_back ? (1 - prices.hidden) * seconds.backward_s : 0;
    return prices.energy.per_second * static_cast<double>(options_.cost.passes) *
           (seconds.forward_s + backward_s);
  };
  if (is_new) {
    known.least = least_seconds(owners, readers);
  }
  if (!known.exact && price_of(known.least) > budget * (1 + kRounding)) {
    return {price_of(known.least), 0};
  }
  if (!known.exact) {
    known.exact = true;
    known.seconds = seconds_between(owned, required);
    known.load =
        exchange_load(owners, readers, comes_from_pre_activations, options_.memory, limits_);
  }
  return {price_of(known.seconds) + prices.memory.seconds * known.load, known.load};
}

}  // namespace tessera::partitioner
