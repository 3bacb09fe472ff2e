#include "engine/comm/gathering.h"

#include <utility>

#include "engine/comm/tags.h"

namespace tessera::engine {

Gathering::Gathering(const Communicator& communicator)
    : Gathering(communicator, 0, communicator.size()) {}

Gathering::Gathering(const Communicator& communicator, int first, int count)
    : communicator_(&communicator),
      first_(static_cast<std::size_t>(first)),
      end_(first_ + static_cast<std::size_t>(count)),
      sizes_(static_cast<std::size_t>(communicator.size())),
      all_(static_cast<std::size_t>(communicator.size())) {}

void Gathering::set(std::span<const std::byte> mine) {
  const auto own = static_cast<std::size_t>(communicator_->rank());
  sizes_[own] = mine.size();
  all_[own].assign(mine.begin(), mine.end());
}

void Gathering::start(int round) {
  const auto own = static_cast<std::size_t>(communicator_->rank());
  const auto is_there = [&](std::size_t other) {
    return other != own && communicator_->takes_part(static_cast<int>(other));
  };
  for (std::size_t other = first_; other < end_; ++other) {
    if (!is_there(other)) {
      continue;
    }
    if (round > 0) {
      all_[other].resize(static_cast<std::size_t>(sizes_[other]));
    }
    communicator_->post_receive(
        requests_,
        static_cast<int>(other),
        kGatherTag,
        round == 0 ? bytes_of(&sizes_[other], 1) : std::span<std::byte>(all_[other]));
  }
  for (std::size_t other = first_; other < end_; ++other) {
    if (is_there(other)) {
      communicator_->post_send(requests_,
                               static_cast<int>(other),
                               kGatherTag,
                               round == 0 ? bytes_of(std::as_const(sizes_).data() + own, 1)
                                          : std::span<const std::byte>(all_[own]));
    }
  }
}

}  // namespace tessera::engine
