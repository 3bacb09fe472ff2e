#include "engine/data/batch.h"

#include <algorithm>
#include <utility>

#include "engine/data/shuffle.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

BatchSource::BatchSource(Dataset dataset, BatchOptions options, const std::string& model)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  expects(options_.batch > 0, "a batch has at least one image");
  const Index staying = dataset_.size() - std::ssize(options_.leaving);
  expects(is_part() ? staying == options_.shares->early_size(options_.part) : dataset_.size() > 0,
          "a data set has at least one picture, or those of its part");
  expects(dataset_.channels() == options_.rules.input.channels,
          "the data set is read with the input's channels");
  check_rules(options_.rules, model);
  detail_ = needed_detail(options_.rules);
  if (!options_.leaving.empty()) {
    auto next = options_.leaving.begin();
    for (Index item = 0; item < dataset_.size(); ++item) {
      if (next != options_.leaving.end() && *next == item) {
        ++next;
      } else {
        staying_.push_back(item);
      }
    }
  }
}

void BatchSource::change(const std::function<void(Dataset&)>& add_arrivals) {
  dataset_.drop(options_.leaving);
  add_arrivals(dataset_);
  options_.leaving.clear();
  staying_ = {};
  expects(!is_part() ||
              dataset_.size() == options_.shares->sizes()[static_cast<std::size_t>(options_.part)],
          "all that the part is to have");
}

Index BatchSource::item(Index step, Index position) const {
  const Index size = dataset_.size();
  const Index place = step * options_.batch + position;
  if (options_.split == Split::Test) {
    return place < size ? place : -1;
  }
  return shuffled_item(size, options_.seed, place / size, place % size);
}

// The items of the parts one after the other; -1 for other parts than the source's own.
std::vector<Index> BatchSource::items_of_shares(Index step) const {
  const DataShares& shares = *options_.shares;
  const std::vector<Index> images = shares.images(step);
  std::vector<Index> items;
  Index first = 0;  // item of the part
  for (int part = 0; part < static_cast<int>(images.size()); ++part) {
    const bool all = options_.part == BatchOptions::kAllParts;
    const auto at = static_cast<std::size_t>(part);
    if (all || options_.part == part) {
      for (const Index item : shares.items(step, part, options_.seed)) {
        items.push_back(staying_.empty() ? first + item
                                         : staying_.at(static_cast<std::size_t>(item)));
      }
    } else {
      items.insert(items.end(), static_cast<std::size_t>(images[at]), -1);
    }
    first += all ? shares.sizes()[at] : 0;
  }
  return items;
}

std::vector<Index> BatchSource::items(Index step) const {
  if (options_.shares != nullptr) {
    return items_of_shares(step);
  }
  std::vector<Index> items;
  for (Index position = 0; position < options_.batch; ++position) {
    items.push_back(item(step, position));
  }
  return items;
}

Index BatchSource::valid(Index step) const {
  if (options_.split == Split::Train) {
    return options_.batch;
  }
  return std::clamp<Index>(dataset_.size() - step * options_.batch, 0, options_.batch);
}

Targets BatchSource::targets(Index step) const {
  Targets targets;
  for (const Index each : items(step)) {
    std::optional<ImageTargets>& target = targets.emplace_back();
    if (each >= 0) {
      const int label = dataset_.label(each);
      target = ImageTargets{.label = label < 0 ? std::nullopt : std::optional(label)};
    }
  }
  return targets;
}

void BatchSource::render_at(Index place,
                            const Picture& picture,
                            const Region& region,
                            std::span<float> cells) const {
  const Index size = options_.shares != nullptr ? options_.shares->size() : dataset_.size();
  const Augmentation augmentation =
      options_.split == Split::Test
          ? centre_crop(options_.rules, picture.shape)
          : draw_augmentation(
                options_.rules, picture.shape, options_.seed, place / size, place % size);
  render(picture, augmentation, options_.rules, region, cells);
}

std::optional<Picture> BatchSource::read(Index item, bool waits) const {
  return options_.cache ? dataset_.read(item, detail_, *options_.cache, waits)
                        : dataset_.read(item, detail_);
}

// Reads and renders the places of a region, one picture at a time.
class BatchSource::RegionReader {
 public:
  RegionReader(const BatchSource& source, Index step, const Region& region, std::span<float> out)
      : source_(source), step_(step), region_(region), out_(out) {}

  // Assigns to all places. Where other ranks are decoding pictures just now, others come first: so
  // ranks that read the same ones divide them.
  Reading run() {
    std::vector<Place> places = all_places();
    for (const bool waits : {false, true}) {
      std::vector<Place> left;
      for (const Place& place : places) {
        if (!render(place, waits)) {
          left.push_back(place);
        }
      }
      places = std::move(left);
    }
    return std::move(reading_);
  }

 private:
  struct Place {
    Index item = 0;
    Index position = 0;  // in the batch
  };

  // Places of the same picture behind each other, so that one at a time is held.
  [[nodiscard]] std::vector<Place> all_places() const {
    const std::vector<Index> items = source_.items(step_);
    expects(region_.images.begin >= 0 && region_.images.end <= std::ssize(items),
            "a region's images lie in the batch");
    std::vector<Place> places;
    for (Index position = region_.images.begin; position < region_.images.end; ++position) {
      places.push_back({items[static_cast<std::size_t>(position)], position});
    }
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return a.item < b.item;
    });
    return places;
  }

  // Whether it was done, also where the picture cannot be read.
  bool render(const Place& place, bool waits) {
    const Index volume = region_.channels.size() * region_.rows.size() * region_.cols.size();
    const std::span<float> cells =
        out_.subspan(static_cast<std::size_t>((place.position - region_.images.begin) * volume),
                     static_cast<std::size_t>(volume));
    if (place.item < 0) {
      std::fill(cells.begin(), cells.end(), 0.0F);
      return true;
    }
    try {
      if (place.item != held_ && !hold(place.item, waits)) {
        return false;
      }
    } catch (const InputError& error) {
      if (!source_.options_.passes_unreadable) {
        throw;
      }
      std::fill(cells.begin(), cells.end(), 0.0F);
      reading_.unreadable.push_back({place.position, error.what()});
      return true;
    }
    source_.render_at(step_ * source_.options_.batch + place.position, picture_, region_, cells);
    return true;
  }

  bool hold(Index item, bool waits) {
    held_ = -1;
    picture_ = {};  // before the next takes memory
    std::optional<Picture> picture = source_.read(item, waits);
    if (!picture) {
      return false;
    }
    picture_ = std::move(*picture);
    held_ = item;
    ++reading_.pictures;
    reading_.decoding_bytes = std::max(reading_.decoding_bytes, picture_.decoding_bytes);
    return true;
  }

  const BatchSource& source_;
  Index step_;
  const Region& region_;
  std::span<float> out_;
  Reading reading_;
  Picture picture_;
  Index held_ = -1;
};

BatchSource::Reading BatchSource::read_region(Index step,
                                              const Region& region,
                                              std::span<float> out) const {
  expects(static_cast<Index>(out.size()) == region.volume(), "the output has the region's size");
  return region.empty() ? Reading() : RegionReader(*this, step, region, out).run();
}

}  // namespace tessera::engine
