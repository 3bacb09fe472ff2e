// From what each rank found out about its links to a profile that a person can read.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/median.h"
#include "engine/probe/link_probe.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

using partitioner::LinkException;
using partitioner::LinkProfile;

// The latency is what the processors at both ends do not account for.
LinkProfile link_between(const std::vector<LinkMeasurements>& ranks, int from, int to) {
  const LinkMeasurements& sender = ranks[static_cast<std::size_t>(from)];
  const LinkMeasurements& receiver = ranks[static_cast<std::size_t>(to)];
  const double half = receiver.half_round_trip_s[static_cast<std::size_t>(from)];
  return {std::max(0.0, half - sender.message_s - receiver.message_s),
          receiver.received_bytes_per_s[static_cast<std::size_t>(from)]};
}

bool differs(double a, double b) {
  constexpr double kNoticeable = 0.2;  // less is what repeated measurements differ by
  return std::abs(a - b) > kNoticeable * std::max(a, b);
}

// What the 1 to 2 messages of a pair and step take is then another.
bool noticeably_different(const LinkProfile& a, const LinkProfile& b) {
  constexpr double kNegligible = 50e-6;  // s: less than waiting for a message is exact to
  return differs(a.bytes_per_s, b.bytes_per_s) ||
         (differs(a.latency_s, b.latency_s) && std::abs(a.latency_s - b.latency_s) > kNegligible);
}

}  // namespace

std::vector<LinkMeasurements> links_of_ranks(const LinkMeasurements& mine,
                                             const Communicator& communicator) {
  struct Numbers {
    double message_s;
    double first_message_s;
    double byte_s;
    double send_bytes_per_s;
    double receive_bytes_per_s;
  };
  std::vector<LinkMeasurements> ranks;
  for (const Numbers& numbers : communicator.of_ranks(Numbers{mine.message_s,
                                                              mine.first_message_s,
                                                              mine.byte_s,
                                                              mine.send_bytes_per_s,
                                                              mine.receive_bytes_per_s})) {
    ranks.push_back({numbers.message_s,
                     numbers.first_message_s,
                     numbers.byte_s,
                     numbers.send_bytes_per_s,
                     numbers.receive_bytes_per_s,
                     {},
                     {}});
  }
  for (std::size_t peer = 0; peer < ranks.size(); ++peer) {
    const auto halves = communicator.of_ranks(mine.half_round_trip_s[peer]);
    const auto rates = communicator.of_ranks(mine.received_bytes_per_s[peer]);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].half_round_trip_s.push_back(halves[rank]);
      ranks[rank].received_bytes_per_s.push_back(rates[rank]);
    }
  }
  return ranks;
}

void describe_links(const std::vector<LinkMeasurements>& ranks,
                    partitioner::ClusterProfile& cluster) {
  expects(ranks.size() > 1 && ranks.size() == cluster.devices.size(),
          "each device has measured its links to others");
  std::vector<LinkException> links;
  std::vector<double> latencies;
  std::vector<double> rates;
  for (int from = 0; from < cluster.size(); ++from) {
    const LinkMeasurements& mine = ranks[static_cast<std::size_t>(from)];
    partitioner::DeviceProfile& device = cluster.devices[static_cast<std::size_t>(from)];
    device.message_s = mine.message_s;
    device.first_message_s = mine.first_message_s;
    device.copied_bytes_per_s = 1 / (1 / device.copied_bytes_per_s + mine.byte_s);
    device.send_bytes_per_s = mine.send_bytes_per_s;
    device.receive_bytes_per_s = mine.receive_bytes_per_s;
    for (int to = 0; to < cluster.size(); ++to) {
      if (from != to) {
        links.push_back({from, to, link_between(ranks, from, to)});
        latencies.push_back(links.back().link.latency_s);
        rates.push_back(links.back().link.bytes_per_s);
      }
    }
  }
  cluster.link = {median(latencies), median(rates)};
  std::erase_if(links, [&cluster](const LinkException& link) {
    return !noticeably_different(link.link, cluster.link);
  });
  cluster.exceptions = std::move(links);
}

}  // namespace tessera::engine
