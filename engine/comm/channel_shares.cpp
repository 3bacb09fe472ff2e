#include "engine/comm/channel_shares.h"

#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

ChannelShares::ChannelShares(const Communicator& communicator,
                             ChannelRoles roles,
                             Index fields,
                             int tag)
    : communicator_(&communicator), roles_(std::move(roles)), fields_(fields), tag_(tag) {
  const int own = communicator.rank();
  for (int rank = 0; rank < communicator.size(); ++rank) {
    received_.emplace_back(rank == own ? 0 : shared(rank, own).size() * fields);
  }
}

Range ChannelShares::shared(int from, int to) const {
  return intersect(roles_.contributes[static_cast<std::size_t>(from)],
                   roles_.needs[static_cast<std::size_t>(to)]);
}

const double* ChannelShares::own_values(const Range& channels) const {
  const Range& contributes = roles_.contributes[static_cast<std::size_t>(communicator_->rank())];
  return mine_ + (channels.begin - contributes.begin) * fields_;
}

void ChannelShares::set_own(const std::vector<double>& mine) {
  const auto own = static_cast<std::size_t>(communicator_->rank());
  partitioner::expects(static_cast<Index>(mine.size()) == roles_.contributes[own].size() * fields_,
                       "a share for each channel that the rank contributes");
  mine_ = mine.data();
  shares_.clear();
}

void ChannelShares::start(const std::vector<double>& mine) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  set_own(mine);
  const int own = communicator_->rank();
  for (int rank = 0; rank < communicator_->size(); ++rank) {
    Array<double>& received = received_[static_cast<std::size_t>(rank)];
    if (received.size() > 0) {
      communicator_->post_receive(
          requests_, rank, tag_, bytes_of(received.data(), received.size()));
    }
  }
  for (int rank = 0; rank < communicator_->size(); ++rank) {
    const Range channels = shared(own, rank);
    if (rank != own && !channels.empty()) {
      communicator_->post_send(
          requests_, rank, tag_, bytes_of(own_values(channels), channels.size() * fields_));
    }
  }
}

void ChannelShares::finish() {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  requests_.wait_all();
  const int own = communicator_->rank();
  for (int rank = 0; rank < communicator_->size(); ++rank) {
    const Range channels = shared(rank, own);
    if (!channels.empty()) {
      shares_.push_back({channels,
                         rank == own
                             ? own_values(channels)
                             : std::as_const(received_[static_cast<std::size_t>(rank)]).data()});
    }
  }
}

void ChannelShares::keep(const std::vector<double>& mine) {
  set_own(mine);
  const Range channels = shared(communicator_->rank(), communicator_->rank());
  if (!channels.empty()) {
    shares_.push_back({channels, own_values(channels)});
  }
}

Index ChannelShares::bytes() const {
  Index bytes = 0;
  for (const auto& array : received_) {
    bytes += array.bytes();
  }
  return bytes;
}

}  // namespace tessera::engine
