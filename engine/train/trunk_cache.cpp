// The header alone: no other machine needs the library.
#define XXH_INLINE_ALL
#include "engine/train/trunk_cache.h"

#include <algorithm>
#include <xxhash.h>

#include "engine/comm/agreement.h"
#include "engine/comm/tags.h"
#include "partitioner/plan/plan_fingerprint.h"

namespace tessera::engine {

using partitioner::TrunkHome;
using partitioner::TrunkPiece;

namespace {

std::uint64_t digest_of(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// Values of one image, map after map, each in (C, H, W) order: where those of a map begin.
Index values_before(const TrunkHome& home, int map, int rank) {
  Index values = 0;
  for (int before = 0; before < map; ++before) {
    values +=
        home.computed[static_cast<std::size_t>(before)][static_cast<std::size_t>(rank)].volume();
  }
  return values;
}

// A map of one image within them.
template <class T>
View<T> map_in(std::span<T> values, const TrunkHome& home, int map, int rank) {
  return {values.data() + values_before(home, map, rank),
          home.computed[static_cast<std::size_t>(map)][static_cast<std::size_t>(rank)],
          1};
}

Region at_image(Region region, Index image) {
  region.images = {image, image + 1};
  return region;
}

}  // namespace

TrunkCache::TrunkCache(Execution<float>& execution, DataLoader& loader, TrunkCacheOptions options)
    : execution_(execution),
      loader_(loader),
      communicator_(execution.communicator()),
      options_(std::move(options)),
      trunk_(frozen_trunk(execution.network())),
      homes_(trunk_homes(execution.network(), execution.plan())) {
  expects(!trunk_.empty(), "a trunk that does not learn");
}

Index TrunkCache::kept_here(int home) const {
  return kept_values(homes_.homes[static_cast<std::size_t>(home)], communicator_.rank());
}

bool TrunkCache::knows(const std::vector<Index>& numbers) const {
  return std::all_of(numbers.begin(), numbers.end(), [this](Index number) {
    return known_[static_cast<std::size_t>(number)] != kUnknown;
  });
}

std::optional<TrunkRecord> TrunkCache::record_of(Index number) const {
  const auto record = store_->find(number);
  const bool fits = record && record->home >= 0 &&
                    record->home < static_cast<int>(homes_.homes.size()) &&
                    std::ssize(record->values) == kept_here(record->home);
  return fits ? record : std::nullopt;
}

// By all that the maps of this rank follow from.
std::uint64_t TrunkCache::key() {
  const std::string text = options_.identity + fingerprint(execution_.plan());
  std::uint64_t key = digest_of(std::as_bytes(std::span(text)), 0);
  for (const Parameter<float>& parameter : execution_.parameters().all()) {
    if (parameter.plan->layer <= trunk_.last) {
      key = digest_of(std::as_bytes(parameter.values.span()), key);
    }
  }
  for (const std::uint64_t theirs : communicator_.of_ranks(key)) {
    key = digest_of(std::as_bytes(std::span(&theirs, 1)), key);
  }
  return communicator_.share(key);
}

void TrunkCache::open() {
  const Index images = loader_.images_to_show();
  expects(images > 1, "no picture is another one in each epoch");
  known_.assign(static_cast<std::size_t>(images), kUnknown);
  if (options_.folder.empty()) {
    store_ = make_memory_store(images);
    return;
  }
  Index most_values = 0;
  for (const TrunkHome& home : homes_.homes) {
    most_values = std::max(most_values, kept_values(home, communicator_.rank()));
  }
  store_ = make_folder_store(options_.folder, key(), communicator_.rank(), most_values);
  find_earlier();
}

// Images of which every rank has what it is to have, in the same home. Ranks that take no part have
// nothing to keep.
void TrunkCache::find_earlier() {
  std::vector<int> mine(known_.size(), kUnknown);
  for (std::size_t number = 0; number < mine.size(); ++number) {
    if (const auto record = record_of(static_cast<Index>(number))) {
      mine[number] = record->home;
    }
  }
  std::vector<std::vector<int>> of_ranks = communicator_.of_ranks(mine);
  for (std::vector<int>& theirs : of_ranks) {
    theirs.resize(mine.size(), kUnknown);
  }
  for (std::size_t number = 0; number < mine.size(); ++number) {
    int home = kUnknown;
    for (const std::vector<int>& theirs : of_ranks) {
      home = std::max(home, theirs[number]);
    }
    const auto has_it = [&, rank = 0](const std::vector<int>& theirs) mutable {
      const TrunkHome& cells = homes_.homes[static_cast<std::size_t>(home)];
      return kept_values(cells, rank++) == 0 || theirs[number] == home;
    };
    if (home != kUnknown && std::all_of(of_ranks.begin(), of_ranks.end(), has_it)) {
      known_[number] = home;
    }
  }
}

void TrunkCache::begin(Index pass) {
  if (store_ == nullptr) {
    open();
  }
  if (store_->is_on_disk()) {
    end_keeping_if_there_is_no_room();
  }
  fresh_.clear();
  numbers_ = loader_.shown_images(pass);
  next_ = loader_.shown_images(pass + 1);
  gives_ = knows(numbers_);
  if (!gives_) {
    return;
  }
  const bool found = fetch();
  if (store_->is_on_disk()) {
    gives_ = on_all_ranks(communicator_, found);
  }
  if (!gives_) {  // all of the pass is computed and kept again
    forget(numbers_);
    return;
  }
  exchange();
  ++passes_given_;
}

bool TrunkCache::will_give() const {
  return std::all_of(next_.begin(), next_.end(), [this](Index number) {
    return known_[static_cast<std::size_t>(number)] != kUnknown ||
           (keeps_ && std::find(numbers_.begin(), numbers_.end(), number) != numbers_.end());
  });
}

void TrunkCache::end_keeping_if_there_is_no_room() {
  if (!communicator_.agree(problem_)) {
    return;
  }
  keeps_ = false;
  forget(fresh_);
  if (problem_ && options_.warn) {
    options_.warn(*problem_);
  }
  problem_.reset();
}

void TrunkCache::forget(const std::vector<Index>& numbers) {
  for (const Index number : numbers) {
    known_[static_cast<std::size_t>(number)] = kUnknown;
  }
}

// What this rank has kept of the images, as it was kept.
bool TrunkCache::fetch() {
  values_.resize(numbers_.size());
  for (std::size_t image = 0; image < numbers_.size(); ++image) {
    const Index number = numbers_[image];
    const int home = known_[static_cast<std::size_t>(number)];
    values_[image].clear();
    if (kept_here(home) == 0) {
      continue;
    }
    const auto record = record_of(number);
    if (!record || record->home != home) {
      return false;
    }
    values_[image].assign(record->values.begin(), record->values.end());
  }
  return true;
}

// Turns it into what this rank computes of images at these places.
void TrunkCache::exchange() {
  const int rank = communicator_.rank();
  struct Parcel {
    std::vector<float> sent;
    std::vector<float> received;
    Index taken = 0;
  };
  struct Wanted {
    std::size_t image = 0;
    std::vector<TrunkPiece> pieces;
  };
  std::vector<Parcel> parcels(static_cast<std::size_t>(communicator_.size()));
  std::vector<Wanted> all;
  for (std::size_t image = 0; image < numbers_.size(); ++image) {
    const int from = known_[static_cast<std::size_t>(numbers_[image])];
    const int to = own_home(image);
    if (from == to) {
      continue;
    }
    const TrunkHome& kept = homes_.homes[static_cast<std::size_t>(from)];
    Wanted wanted{image, trunk_pieces(kept, homes_.homes[static_cast<std::size_t>(to)])};
    for (const TrunkPiece& piece : wanted.pieces) {
      Parcel& parcel =
          parcels[static_cast<std::size_t>(piece.from == rank ? piece.to : piece.from)];
      if (piece.from == rank) {
        const Index before = std::ssize(parcel.sent);
        parcel.sent.resize(static_cast<std::size_t>(before + piece.cells.volume()));
        copy_out(map_in<const float>(values_[image], kept, piece.map, rank),
                 piece.cells,
                 parcel.sent.data() + before);
      } else if (piece.to == rank) {
        parcel.received.resize(parcel.received.size() +
                               static_cast<std::size_t>(piece.cells.volume()));
      }
    }
    all.push_back(std::move(wanted));
  }
  if (all.empty()) {
    return;
  }
  const ExchangeTimer timer(communicator_, &ExchangeTimes::maps_s);
  Requests requests;
  for (int peer = 0; peer < communicator_.size(); ++peer) {
    Parcel& parcel = parcels[static_cast<std::size_t>(peer)];
    if (peer == rank) {
      parcel.received = std::move(parcel.sent);
      continue;
    }
    if (!parcel.received.empty()) {
      communicator_.post_receive(
          requests, peer, kTrunkTag, bytes_of(parcel.received.data(), std::ssize(parcel.received)));
    }
    if (!parcel.sent.empty()) {
      communicator_.post_send(requests,
                              peer,
                              kTrunkTag,
                              bytes_of<const float>(parcel.sent.data(), std::ssize(parcel.sent)));
    }
  }
  requests.wait_all();
  for (const Wanted& wanted : all) {
    const int to = own_home(wanted.image);
    const TrunkHome& home = homes_.homes[static_cast<std::size_t>(to)];
    std::vector<float>& values = values_[wanted.image];
    values.assign(static_cast<std::size_t>(kept_here(to)), 0);
    for (const TrunkPiece& piece : wanted.pieces) {
      if (piece.to != rank) {
        continue;
      }
      Parcel& parcel = parcels[static_cast<std::size_t>(piece.from)];
      copy_in(parcel.received.data() + parcel.taken,
              piece.cells,
              map_in<float>(values, home, piece.map, rank));
      parcel.taken += piece.cells.volume();
    }
  }
}

void TrunkCache::at_trunk(int map) {
  if (gives_) {
    give(map);
    return;
  }
  if (keeps_) {
    take(map);
    if (map == trunk_.maps.back()) {
      keep();
    }
  }
}

// Whether it is to be kept: it is not known, and does not stand at an earlier place, too.
bool TrunkCache::is_new(std::size_t image) const {
  const auto place = numbers_.begin() + static_cast<std::ptrdiff_t>(image);
  return known_[static_cast<std::size_t>(*place)] == kUnknown &&
         std::find(numbers_.begin(), place, *place) == place;
}

View<float> TrunkCache::kept_map(std::size_t image, int map) {
  const auto found = std::find(trunk_.maps.begin(), trunk_.maps.end(), map);
  return map_in<float>(values_[image],
                       homes_.homes[static_cast<std::size_t>(own_home(image))],
                       static_cast<int>(found - trunk_.maps.begin()),
                       communicator_.rank());
}

void TrunkCache::give(int map) {
  for (std::size_t image = 0; image < numbers_.size(); ++image) {
    if (values_[image].empty()) {
      continue;
    }
    const View<float> kept = kept_map(image, map);
    if (!kept.region.empty()) {
      copy_in<float>(
          kept.data, at_image(kept.region, static_cast<Index>(image)), execution_.map(map));
    }
  }
}

void TrunkCache::take(int map) {
  values_.resize(numbers_.size());
  for (std::size_t image = 0; image < numbers_.size(); ++image) {
    values_[image].resize(static_cast<std::size_t>(is_new(image) ? kept_here(own_home(image)) : 0));
    if (values_[image].empty()) {
      continue;
    }
    const View<float> kept = kept_map(image, map);
    if (!kept.region.empty()) {
      copy_out(View<const float>(execution_.map(map)),
               at_image(kept.region, static_cast<Index>(image)),
               kept.data);
    }
  }
}

void TrunkCache::keep() {
  for (std::size_t image = 0; image < numbers_.size() && !problem_; ++image) {
    if (!values_[image].empty()) {
      problem_ = store_->keep(numbers_[image], {own_home(image), values_[image]});
    }
  }
}

void TrunkCache::confirm() {
  if (gives_ || !keeps_) {
    return;
  }
  for (std::size_t image = 0; image < numbers_.size(); ++image) {
    int& home = known_[static_cast<std::size_t>(numbers_[image])];
    if (home == kUnknown) {
      home = own_home(image);
      fresh_.push_back(numbers_[image]);
    }
  }
}

Index TrunkCache::memory_bytes() const {
  return store_ == nullptr || store_->is_on_disk() ? 0 : store_->memory_bytes();
}

std::optional<std::string> load_pass(TrunkCache* trunk,
                                     DataLoader& loader,
                                     Execution<float>& execution,
                                     Index pass) {
  if (trunk == nullptr) {
    return loader.load(pass, execution);
  }
  trunk->begin(pass);
  return loader.load(
      pass, execution, {.pictures = !trunk->gives(), .next_ones = !trunk->will_give()});
}

void forward(TrunkCache* trunk, Execution<float>& execution, Pass pass) {
  if (trunk == nullptr) {
    execution.forward(pass);
    return;
  }
  pass.trunk_given = trunk->gives();
  execution.forward(pass, [trunk](int map) { trunk->at_trunk(map); });
}

}  // namespace tessera::engine
