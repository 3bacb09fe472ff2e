// Measures the links between ranks as training uses them: non-blocking messages, the same way of
// waiting, both directions of a link at once.
//
// What is measured of a message: the sender's processor posts it (message_s), its bytes cross the
// wire (at the rate of a link, and no more than the network interfaces at both ends carry for all
// links together), the last byte arrives (latency_s), the receiver's processor takes it in
// (message_s). Handing bytes to the network's software and taking them from it is processor time,
// too (byte_s).

#pragma once

#include <vector>

#include "engine/comm/communicator.h"
#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

// What one rank found out.
struct LinkMeasurements {
  double message_s = 0;                      // processor time of a message, at either end
  double first_message_s = 0;                // to send one after computing
  double byte_s = 0;                         // at either end, of each byte, packing apart
  double send_bytes_per_s = 0;               // to all others at once
  double receive_bytes_per_s = 0;            // from all others at once
  std::vector<double> half_round_trip_s;     // [other rank], of the smallest message; 0 for its own
  std::vector<double> received_bytes_per_s;  // [sender], while as much goes the other way
};

// One link at a time for each rank, then each rank with all others. Takes about `seconds`, at least
// a few messages of each kind. Requires two ranks or more. All ranks call this together.
[[nodiscard]] LinkMeasurements measure_links(const Communicator& communicator, double seconds);

// Seconds to add up vectors over the first 2, 4, ... ranks and over all, as gradients are added up
// and new values sent back: of as many sizes, from small ones on, as can be measured in `seconds`.
// The same on all ranks. All ranks call this together.
[[nodiscard]] std::vector<partitioner::AllReducePoint> measure_all_reduces(
    const Communicator& communicator, double seconds);

// What each rank found out, [rank], on all. All ranks call this together.
[[nodiscard]] std::vector<LinkMeasurements> links_of_ranks(const LinkMeasurements& mine,
                                                           const Communicator& communicator);

// Puts into the profile what each rank found out: [rank], as many as there are devices. The link of
// most pairs becomes that of all; pairs that differ noticeably from it are listed.
void describe_links(const std::vector<LinkMeasurements>& ranks,
                    partitioner::ClusterProfile& cluster);

}  // namespace tessera::engine
