#include "engine/comm/channel_shares.h"

#include "partitioner/base/errors.h"

namespace tessera::engine {

ChannelShares::ChannelShares(const Communicator& communicator,
                             const OwnChannels& own,
                             const std::vector<partitioner::Message>& messages,
                             Index fields,
                             int tag)
    : communicator_(&communicator), own_(own), fields_(fields), tag_(tag) {
  for (const partitioner::Message& message : messages) {
    const Range& channels = message.payload.channels();
    if (message.to == communicator.rank()) {
      received_.push_back({message.from, channels, Array<double>(channels.size() * fields)});
    } else if (message.from == communicator.rank()) {
      sent_.push_back({message.to, channels});
    }
  }
}

const double* ChannelShares::own_values(const Range& channels) const {
  return mine_ + (channels.begin - own_.contributes.begin) * fields_;
}

void ChannelShares::set_own(const std::vector<double>& mine) {
  expects(static_cast<Index>(mine.size()) == own_.contributes.size() * fields_,
          "a share for each channel that the rank contributes");
  mine_ = mine.data();
  shares_.clear();
}

void ChannelShares::add_own() {
  const Range channels = intersect(own_.contributes, own_.needs);
  if (!channels.empty()) {
    shares_.push_back({channels, own_values(channels)});
  }
}

void ChannelShares::start(const std::vector<double>& mine) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  set_own(mine);
  for (Received& received : received_) {
    communicator_->post_receive(
        requests_, received.from, tag_, bytes_of(received.values.data(), received.values.size()));
  }
  for (const Sent& sent : sent_) {
    communicator_->post_send(requests_,
                             sent.to,
                             tag_,
                             bytes_of(own_values(sent.channels), sent.channels.size() * fields_));
  }
}

void ChannelShares::finish() {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  requests_.wait_all();
  auto received = received_.cbegin();
  for (; received != received_.cend() && received->from < communicator_->rank(); ++received) {
    shares_.push_back({received->channels, received->values.data()});
  }
  add_own();
  for (; received != received_.cend(); ++received) {
    shares_.push_back({received->channels, received->values.data()});
  }
}

void ChannelShares::keep(const std::vector<double>& mine) {
  set_own(mine);
  add_own();
}

Index ChannelShares::bytes() const {
  Index bytes = 0;
  for (const Received& received : received_) {
    bytes += received.values.bytes();
  }
  return bytes;
}

}  // namespace tessera::engine
