#include "engine/data/batch/data_shares.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "engine/base/random.h"
#include "engine/data/batch/shuffle.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kMark = 1024;  // places
constexpr Index kMostItems = Index{1} << 31;
constexpr std::size_t kMostParts = 1U << 16U;

// The next item of a part, and when it is due: at (2 item + 1) / (2 size) of an epoch.
struct Due {
  Index item = 0;
  Index size = 1;
  std::size_t part = 0;
};

bool operator<(const Due& a, const Due& b) {
  const auto earlier =
      static_cast<std::uint64_t>(2 * a.item + 1) * static_cast<std::uint64_t>(b.size);
  const auto later =
      static_cast<std::uint64_t>(2 * b.item + 1) * static_cast<std::uint64_t>(a.size);
  return earlier != later ? earlier > later : a.part > b.part;  // a queue gives the greatest first
}

}  // namespace

DataShares::DataShares(std::vector<Index> sizes, bool training)
    : sizes_(std::move(sizes)), training_(training) {
  expects(sizes_.size() < kMostParts, "parts are numbered by 16 bits");
}

DataShares DataShares::for_training(std::vector<Index> sizes, Index batch, EarlyItems early) {
  DataShares shares(std::move(sizes), true);
  shares.early_ = std::move(early);
  shares.size_ = std::accumulate(shares.sizes_.begin(), shares.sizes_.end(), Index{0});
  shares.batch_ = batch;
  expects(shares.size_ > 0 && shares.size_ < kMostItems && batch > 0, "items, in batches");
  shares.share_places();
  shares.find_most_and_fewest();
  shares.find_early_passes();
  return shares;
}

DataShares DataShares::for_testing(std::vector<Index> sizes, std::vector<Index> most) {
  DataShares shares(std::move(sizes), false);
  expects(shares.sizes_.size() == most.size(), "room for each part");
  shares.most_ = std::move(most);
  for (std::size_t part = 0; part < shares.most_.size(); ++part) {
    shares.size_ += shares.most_[part] > 0 ? shares.sizes_[part] : 0;
  }
  return shares;
}

void DataShares::share_places() {
  std::priority_queue<Due> due;
  for (std::size_t part = 0; part < sizes_.size(); ++part) {
    if (sizes_[part] > 0) {
      due.push({0, sizes_[part], part});
    }
  }
  std::vector<Index> given(sizes_.size());
  part_of_.reserve(static_cast<std::size_t>(size_));
  for (Index place = 0; place < size_; ++place) {
    if (place % kMark == 0) {
      marks_.push_back(given);
    }
    Due next = due.top();
    due.pop();
    part_of_.push_back(static_cast<std::uint16_t>(next.part));
    ++given[next.part];
    if (++next.item < next.size) {
      due.push(next);
    }
  }
}

// Looks at all windows of a batch that passes begin at.
void DataShares::find_most_and_fewest() {
  const Index step = std::gcd(size_, batch_);
  std::vector<Index> images = this->images(0);
  most_ = images;
  fewest_ = images;
  for (Index begin = 0; begin < size_; ++begin) {
    --images[part_of_[static_cast<std::size_t>(begin)]];
    ++images[part_of_[static_cast<std::size_t>((begin + batch_) % size_)]];
    for (std::size_t part = 0; (begin + 1) % step == 0 && part < images.size(); ++part) {
      most_[part] = std::max(most_[part], images[part]);
      fewest_[part] = std::min(fewest_[part], images[part]);
    }
  }
}

// As many as the share says and the early items of each part suffice for.
void DataShares::find_early_passes() {
  if (early_.share <= 0 || early_.sizes.empty()) {
    return;
  }
  expects(early_.sizes.size() == sizes_.size() && early_.share < 1, "a size of each part");
  early_images_.assign(sizes_.size(), 0);
  const auto most = static_cast<Index>(early_.share * static_cast<double>(size_)) / batch_;
  while (early_passes_ < most) {
    std::vector<Index> images = items_before((early_passes_ + 1) * batch_);
    for (std::size_t part = 0; part < images.size(); ++part) {
      if (images[part] > early_.sizes[part]) {
        return;
      }
    }
    early_images_ = std::move(images);
    ++early_passes_;
  }
}

Index DataShares::early_size(int part) const {
  const auto at = static_cast<std::size_t>(part);
  return early_.sizes.empty() ? sizes_[at] : early_.sizes[at];
}

Index DataShares::passes() const {
  if (training_) {
    return (size_ + batch_ - 1) / batch_;
  }
  Index passes = 0;
  for (std::size_t part = 0; part < sizes_.size(); ++part) {
    if (most_[part] > 0) {
      passes = std::max(passes, (sizes_[part] + most_[part] - 1) / most_[part]);
    }
  }
  return passes;
}

std::vector<Index> DataShares::items_before(Index place) const {
  const Index within = place % size_;
  std::vector<Index> items = marks_[static_cast<std::size_t>(within / kMark)];
  for (Index at = within / kMark * kMark; at < within; ++at) {
    ++items[part_of_[static_cast<std::size_t>(at)]];
  }
  for (std::size_t part = 0; part < items.size(); ++part) {
    items[part] += place / size_ * sizes_[part];
  }
  return items;
}

std::vector<Index> DataShares::images(Index pass) const {
  std::vector<Index> images(sizes_.size());
  if (training_) {
    images = items_before((pass + 1) * batch_);
    const std::vector<Index> before = items_before(pass * batch_);
    std::transform(images.begin(), images.end(), before.begin(), images.begin(), std::minus<>());
    return images;
  }
  for (std::size_t part = 0; part < images.size(); ++part) {
    images[part] = std::clamp<Index>(sizes_[part] - pass * most_[part], 0, most_[part]);
  }
  return images;
}

Index DataShares::training_item(std::size_t part,
                                std::uint64_t own_seed,
                                Index epoch,
                                Index place) const {
  const Index size = sizes_[part];
  if (epoch > 0 || early_passes_ == 0) {
    return shuffled_item(size, own_seed, epoch, place);
  }
  constexpr std::uint64_t kEarly = 0x6561726CU;
  const auto early_item = [&](Index at) {
    return shuffled_item(early_.sizes[part], random_bits(own_seed, kEarly), 0, at);
  };
  const Index seen = early_images_[part];
  if (place < seen) {
    return early_item(place);
  }
  const Index other = seen + shuffled_item(size - seen, own_seed, 0, place - seen);
  return other < early_.sizes[part] ? early_item(other) : other;
}

std::vector<Index> DataShares::items(Index pass, int part, std::uint64_t seed) const {
  constexpr std::uint64_t kPart = 0x70617274U;  // draws of other things have other keys
  const auto at = static_cast<std::size_t>(part);
  const Index count = images(pass)[at];
  const Index first = training_ ? items_before(pass * batch_)[at] : pass * most_[at];
  const std::uint64_t own_seed = random_bits(seed, kPart, static_cast<std::uint64_t>(part));
  std::vector<Index> items;
  for (Index item = first; item < first + count; ++item) {
    items.push_back(training_ ? training_item(at, own_seed, item / sizes_[at], item % sizes_[at])
                              : item);
  }
  return items;
}

}  // namespace tessera::engine
