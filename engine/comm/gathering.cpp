#include "engine/comm/gathering.h"

#include <utility>

namespace tessera::engine {

namespace {

constexpr int kGatherTag = 1;  // exchanges number theirs from 16 on

}  // namespace

Gathering::Gathering(const Communicator& communicator)
    : communicator_(&communicator),
      sizes_(static_cast<std::size_t>(communicator.size())),
      all_(static_cast<std::size_t>(communicator.size())) {}

void Gathering::set(std::span<const std::byte> mine) {
  const auto own = static_cast<std::size_t>(communicator_->rank());
  sizes_[own] = mine.size();
  all_[own].assign(mine.begin(), mine.end());
}

void Gathering::start(int round) {
  const auto own = static_cast<std::size_t>(communicator_->rank());
  for (std::size_t other = 0; other < all_.size(); ++other) {
    if (other == own) {
      continue;
    }
    if (round > 0) {
      all_[other].resize(sizes_[other]);
    }
    communicator_->post_receive(
        requests_,
        static_cast<int>(other),
        kGatherTag,
        round == 0 ? bytes_of(&sizes_[other], 1) : std::span<std::byte>(all_[other]));
  }
  for (std::size_t other = 0; other < all_.size(); ++other) {
    if (other != own) {
      communicator_->post_send(requests_,
                               static_cast<int>(other),
                               kGatherTag,
                               round == 0 ? bytes_of(std::as_const(sizes_).data() + own, 1)
                                          : std::span<const std::byte>(all_[own]));
    }
  }
}

}  // namespace tessera::engine
