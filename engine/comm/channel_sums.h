// Per-channel sums over all ranks, as batch normalisation needs them: each rank that has a share of
// a channel sends it to each rank that needs the channel. The shares come back in rank order, for
// the caller to put together, so all ranks get the same bits.

#pragma once

#include <functional>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/comm/communicator.h"

namespace tessera::engine {

// The channels of each rank; an empty range where it has none.
struct ChannelRoles {
  std::vector<Range> contributes;
  std::vector<Range> needs;
};

class ChannelSums {
 public:
  // `fields` numbers a channel; tag as for Exchange.
  ChannelSums(const Communicator& communicator, ChannelRoles roles, Index fields, int tag);

  // `mine` is (channels that this rank contributes, fields). Calls take(rank, channels, values)
  // with the share of each contributing rank, in rank order, of the channels that this rank needs;
  // `values` is (channels, fields). `meanwhile`, where there is one, is called once while shares
  // are under way.
  using Take = std::function<void(int rank, const Range& channels, const double* values)>;
  void gather(const std::vector<double>& mine,
              const Take& take,
              const std::function<void()>& meanwhile = {});

  [[nodiscard]] Index bytes() const;

 private:
  void post(const double* mine, Requests& requests);
  // Of what this rank contributes.
  [[nodiscard]] const double* share(const double* mine, const Range& channels) const;

  const Communicator* communicator_;
  ChannelRoles roles_;
  Index fields_;
  int tag_;
  std::vector<Array<double>> received_;  // by rank
};

}  // namespace tessera::engine
