#include "engine/comm/peers.h"

#include <algorithm>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// What peer `i` of `count` makes of an array.
std::span<float> share_of(std::span<float> values, std::size_t i, std::size_t count) {
  const std::size_t begin = values.size() * i / count;
  return values.subspan(begin, values.size() * (i + 1) / count - begin);
}

}  // namespace

Peers::Peers(const Communicator& communicator, std::vector<int> ranks, int tag)
    : communicator_(&communicator), ranks_(std::move(ranks)), tag_(tag) {
  const auto own = std::find(ranks_.begin(), ranks_.end(), communicator.rank());
  expects(own != ranks_.end(), "a rank is one of its own peers");
  index_ = static_cast<int>(own - ranks_.begin());
}

void Peers::post_send(Requests& requests, int to, std::span<const std::byte> bytes) const {
  communicator_->post_send(requests, ranks_[static_cast<std::size_t>(to)], tag_, bytes);
}

void Peers::post_receive(Requests& requests, int from, std::span<std::byte> bytes) const {
  communicator_->post_receive(requests, ranks_[static_cast<std::size_t>(from)], tag_, bytes);
}

void Peers::send(int to, std::span<const std::byte> bytes) {
  Requests requests;
  post_send(requests, to, bytes);
  requests.wait_all();
}

void Peers::receive(int from, std::span<std::byte> bytes) {
  Requests requests;
  post_receive(requests, from, bytes);
  requests.wait_all();
}

void Peers::exchange(int other, std::span<const std::byte> sent, std::span<std::byte> received) {
  Requests requests;
  post_receive(requests, other, received);
  post_send(requests, other, sent);
  requests.wait_all();
}

void Peers::gather(std::span<const std::span<std::byte>> all) {
  Requests requests;
  for (int other = 0; other < size(); ++other) {
    if (other != index_) {
      post_receive(requests, other, all[static_cast<std::size_t>(other)]);
    }
  }
  for (int other = 0; other < size(); ++other) {
    if (other != index_) {
      post_send(requests, other, all[static_cast<std::size_t>(index_)]);
    }
  }
  requests.wait_all();
}

void Peers::average(std::span<float> values) {
  const std::size_t count = ranks_.size();
  const auto own = static_cast<std::size_t>(index_);
  const std::span<float> mine = share_of(values, own, count);
  arrived_.resize(mine.size() * count);
  const auto arrived = [&](std::size_t i) {
    return std::span(arrived_).subspan(i * mine.size(), mine.size());
  };
  Requests requests;
  for (std::size_t i = 0; i < count; ++i) {
    if (i != own) {
      post_receive(requests, static_cast<int>(i), std::as_writable_bytes(arrived(i)));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i != own) {
      post_send(requests, static_cast<int>(i), std::as_bytes(share_of(values, i, count)));
    }
  }
  requests.wait_all();
  std::copy(mine.begin(), mine.end(), arrived(own).begin());
  for (std::size_t element = 0; element < mine.size(); ++element) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += arrived_[i * mine.size() + element];
    }
    mine[element] = static_cast<float>(sum / static_cast<double>(count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i != own) {
      post_receive(
          requests, static_cast<int>(i), std::as_writable_bytes(share_of(values, i, count)));
      post_send(requests, static_cast<int>(i), std::as_bytes(mine));
    }
  }
  requests.wait_all();
}

}  // namespace tessera::engine
