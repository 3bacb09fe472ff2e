#include "engine/comm/channel_sums.h"

#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

ChannelSums::ChannelSums(const Communicator& communicator,
                         ChannelRoles roles,
                         Index fields,
                         int tag)
    : communicator_(&communicator), roles_(std::move(roles)), fields_(fields), tag_(tag) {
  const Range& needs = roles_.needs[static_cast<std::size_t>(communicator.rank())];
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Range shared = intersect(roles_.contributes[static_cast<std::size_t>(rank)], needs);
    received_.emplace_back(rank == communicator.rank() ? 0 : shared.size() * fields);
  }
}

void ChannelSums::gather(const std::vector<double>& mine,
                         const Take& take,
                         const std::function<void()>& meanwhile) {
  const auto own = static_cast<std::size_t>(communicator_->rank());
  partitioner::expects(static_cast<Index>(mine.size()) == roles_.contributes[own].size() * fields_,
                       "a share for each channel that the rank contributes");
  Requests requests;
  post(mine.data(), requests);
  if (meanwhile) {
    meanwhile();
  }
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  requests.wait_all();
  for (std::size_t rank = 0; rank < received_.size(); ++rank) {
    const Range shared = intersect(roles_.contributes[rank], roles_.needs[own]);
    if (!shared.empty()) {
      take(static_cast<int>(rank),
           shared,
           rank == own ? share(mine.data(), shared) : std::as_const(received_[rank]).data());
    }
  }
}

void ChannelSums::post(const double* mine, Requests& requests) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  const auto own = static_cast<std::size_t>(communicator_->rank());
  for (std::size_t rank = 0; rank < received_.size(); ++rank) {
    if (received_[rank].size() > 0) {
      communicator_->post_receive(requests,
                                  static_cast<int>(rank),
                                  tag_,
                                  bytes_of(received_[rank].data(), received_[rank].size()));
    }
  }
  for (std::size_t rank = 0; rank < received_.size(); ++rank) {
    const Range shared = intersect(roles_.contributes[own], roles_.needs[rank]);
    if (rank != own && !shared.empty()) {
      communicator_->post_send(requests,
                               static_cast<int>(rank),
                               tag_,
                               bytes_of(share(mine, shared), shared.size() * fields_));
    }
  }
}

const double* ChannelSums::share(const double* mine, const Range& channels) const {
  const Range& contributes = roles_.contributes[static_cast<std::size_t>(communicator_->rank())];
  return mine + (channels.begin - contributes.begin) * fields_;
}

Index ChannelSums::bytes() const {
  Index bytes = 0;
  for (const auto& array : received_) {
    bytes += array.bytes();
  }
  return bytes;
}

}  // namespace tessera::engine
