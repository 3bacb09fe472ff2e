// What ranks contribute channel by channel to the statistics of batch normalisation, or to their
// gradients: each rank that contributes to a channel sends its share to each rank that needs the
// channel. Whoever gets shares puts them together in rank order, so all ranks have the same bits.

#pragma once

#include <vector>

#include "engine/base/channel_share.h"
#include "engine/base/tensor.h"
#include "engine/comm/communicator.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

// Empty where this rank has none.
struct OwnChannels {
  Range contributes;
  Range needs;
};

class ChannelShares {
 public:
  // Keeps what concerns the communicator's own rank of `messages`, which are sorted by receiver,
  // then sender, none from a rank to itself. `fields` numbers per channel; tag as for Exchange.
  ChannelShares(const Communicator& communicator,
                const OwnChannels& own,
                const std::vector<partitioner::Message>& messages,
                Index fields,
                int tag);

  // `mine` is (channels that this rank contributes, fields), and stays where it is for as long as
  // shares() are looked at. All ranks call start(), and finish() after it.
  void start(const std::vector<double>& mine);
  void finish();
  // Instead of both: the share of this rank alone, without messages.
  void keep(const std::vector<double>& mine);

  // The shares of each contributing rank, in rank order, of the channels that this rank needs.
  [[nodiscard]] const std::vector<ChannelShare>& all() const { return shares_; }

  [[nodiscard]] Index bytes() const;

 private:
  struct Sent {
    int to = 0;
    Range channels;
  };
  struct Received {
    int from = 0;
    Range channels;
    Array<double> values;
  };

  // Numbers that this rank contributes.
  [[nodiscard]] const double* own_values(const Range& channels) const;
  void set_own(const std::vector<double>& mine);
  void add_own();

  const Communicator* communicator_;
  OwnChannels own_;
  Index fields_;
  int tag_;
  const double* mine_ = nullptr;
  Requests requests_;  // between start and finish
  std::vector<Sent> sent_;
  std::vector<Received> received_;  // by rank
  std::vector<ChannelShare> shares_;
};

}  // namespace tessera::engine
