// The lists of messages of a plan: who sends what to whom, whichever way a transfer runs.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// Numbers in double precision of each channel of a normalised layer.
inline constexpr Index kStatisticsNumbers = 3;          // count, mean, squared deviation
inline constexpr Index kStatisticsGradientNumbers = 2;  // gradients of shift and scale
inline constexpr Index kStatisticsNumberBytes = 8;

// None where the region is empty.
[[nodiscard]] inline Range channels_of(const Region& region) {
  return region.empty() ? Range{} : region.channels;
}

// The tiles of a layer, those of other copies of the parameters left empty.
[[nodiscard]] std::vector<Tile> tiles_of_copy(const Plan& plan, int layer, int copy);

// Calls visit(sender, receiver, channels) for each message of a synchronisation of one layer's
// tiles, by receivers, then senders: each rank sends each other the channels that it contributes to
// and the other computes.
template <class Visit>
void for_each_statistics_message(const std::vector<Tile>& tiles,
                                 Region Tile::*contributes,
                                 Visit visit) {
  for (std::size_t to = 0; to < tiles.size(); ++to) {
    const Range wanted = channels_of(tiles[to].computed);
    for (std::size_t from = 0; from < tiles.size() && !wanted.empty(); ++from) {
      const Range shared = intersect(channels_of(tiles[from].*contributes), wanted);
      if (from != to && !shared.empty()) {
        visit(static_cast<int>(from), static_cast<int>(to), shared);
      }
    }
  }
}

// The messages of a transfer, its own or those it shares with another.
[[nodiscard]] inline const std::vector<Message>& messages_of(const Plan& plan,
                                                             const Transfer& transfer) {
  return transfer.list_of == kNoTransfer ? transfer.messages
                                         : plan.transfers[transfer.list_of].messages;
}

// Calls visit(sender, receiver, payload) for each, messages from a rank to itself included. Each
// rank's own come in the order of receivers, and of senders where it receives.
template <class Visit>
void for_each_message(const Plan& plan, const Transfer& transfer, Visit visit) {
  for (const Message& message : messages_of(plan, transfer)) {
    if (transfer.reversed) {
      visit(message.to, message.from, message.payload);
    } else {
      visit(message.from, message.to, message.payload);
    }
  }
}

// What a message of the transfer takes on the wire. Statistics and losses are in double precision,
// all else is `scalar_bytes` a number, or packed as the plan says.
[[nodiscard]] Index message_bytes(const Plan& plan,
                                  const Transfer& transfer,
                                  const Payload& payload,
                                  Index scalar_bytes);

// Fills plan.buckets, and plan.transfers with all but feature maps. Requires all else but the
// schedule.
void add_transfers(const Network& network, Plan& plan);

// Gives the transfers of batch statistics, and of their gradients, the messages that the tiles of
// the plan call for, after these have changed.
void renew_statistics_messages(Plan& plan);

}  // namespace tessera::partitioner
