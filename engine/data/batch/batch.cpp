#include "engine/data/batch/batch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/data/batch/shuffle.h"
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
  expects(!options_.rules.detects || options_.shares == nullptr,
          "a detector's data set does not lie in parts");
  expects(options_.variants == 0 || options_.shares == nullptr,
          "variants are drawn by the number of a picture in the whole data set");
  if (options_.sizes) {
    expects(options_.rules.detects && options_.split == Split::Train,
            "inputs change their size in a detector's training");
    for (const auto& share : options_.sizes->sizes().shares()) {
      rules_.push_back(rules_of_size(options_.rules, share.size));
    }
  } else {
    rules_ = {options_.rules};
  }
  single_rules_ = rules_;
  for (RenderingRules& rules : single_rules_) {
    rules.augmentation.mosaic = false;
    rules.augmentation.mixup = false;
  }
  detail_ = needed_detail(rules_.back());
  const bool varied = varies() && varies_pictures(options_.rules, dataset_.shape_of_all());
  variants_ = varied ? options_.variants : 1;
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

BatchSource::Moment BatchSource::moment(Index step, Index position) const {
  const Index size = options_.shares != nullptr ? options_.shares->size() : dataset_.size();
  const Index place = step * options_.batch + position;
  return {place / size, place % size};
}

BatchSource::Moment BatchSource::drawn_by(Index step, Index position) const {
  const Moment moment = this->moment(step, position);
  return options_.variants > 0 ? Moment{moment.epoch % options_.variants, item(step, position)}
                               : moment;
}

std::vector<BatchSource::ShownImage> BatchSource::shown_images(Index step) const {
  const partitioner::AugmentationOptions& rules = options_.rules.augmentation;
  const bool plain = (rules.mosaic || rules.mixup) && has_ended_mosaic(step);
  std::vector<ShownImage> shown;
  for (const Index item : items(step)) {
    const Index epoch = moment(step, std::ssize(shown)).epoch;
    shown.push_back(item < 0 ? ShownImage()
                             : ShownImage{item, variants_ > 0 ? epoch % variants_ : epoch, plain});
  }
  return shown;
}

const RenderingRules& BatchSource::rules(Index step) const {
  const std::vector<RenderingRules>& all = has_ended_mosaic(step) ? single_rules_ : rules_;
  if (!options_.sizes) {
    return all.front();
  }
  const partitioner::InputSize& size = options_.sizes->at(step / options_.passes);
  return *std::find_if(all.begin(), all.end(), [&size](const RenderingRules& rules) {
    return partitioner::size_of(rules.input) == size;
  });
}

std::vector<BatchSource::Part> BatchSource::parts_of(Index step, Index position, Index item) const {
  std::vector<Part> parts{{item, position, 0}};
  if (item < 0 || !options_.rules.detects || !varies()) {
    return parts;
  }
  const auto [epoch, place] = drawn_by(step, position);
  const int pictures = pictures_at(rules(step), options_.seed, epoch, place);
  for (int number = 1; number < pictures; ++number) {
    parts.push_back(
        {joining_item(options_.seed, epoch, place, number, dataset_.size()), position, number});
  }
  return parts;
}

PictureWindow BatchSource::window_of(Index step, const Part& part) const {
  const RenderingRules& rules = this->rules(step);
  if (!rules.detects || !varies()) {
    return {{0, rules.input.rows}, {0, rules.input.cols}, 1};
  }
  const auto [epoch, place] = drawn_by(step, part.position);
  return window_at(rules, options_.seed, epoch, place, part.number);
}

Augmentation BatchSource::augmentation_of(Index step,
                                          const Part& part,
                                          const partitioner::MapShape& picture) const {
  const RenderingRules& rules = this->rules(step);
  if (!varies()) {
    return rules.detects ? whole_picture(rules, picture) : centre_crop(rules, picture);
  }
  const auto [epoch, place] = drawn_by(step, part.position);
  return rules.detects ? place_picture(rules, picture, options_.seed, epoch, place, part.number)
                       : draw_augmentation(rules, picture, options_.seed, epoch, place);
}

std::vector<Box> BatchSource::boxes_at(Index step, Index position, Index item) const {
  const RenderingRules& rules = this->rules(step);
  std::vector<Box> boxes;
  for (const Part& part : parts_of(step, position, item)) {
    const std::span<const Box> of_picture =
        varies() ? dataset_.boxes(part.item) : dataset_.boxes_to_test(part.item);
    if (of_picture.empty()) {
      continue;
    }
    // Where it is stretched, its size does not matter.
    partitioner::MapShape shape = rules.input;
    if (rules.augmentation.letter_box) {
      try {
        shape = dataset_.shape(part.item);
      } catch (const InputError&) {
        if (!options_.passes_unreadable) {
          throw;
        }
        continue;
      }
    }
    const std::vector<Box> moved =
        boxes_on_input(of_picture, augmentation_of(step, part, shape), shape, rules);
    const std::vector<Box> kept =
        varies() ? boxes_within(moved, window_of(step, part), rules) : moved;
    boxes.insert(boxes.end(), kept.begin(), kept.end());
  }
  return boxes;
}

Targets BatchSource::targets(Index step) const {
  Targets targets;
  const std::vector<Index> all = items(step);
  for (Index position = 0; position < std::ssize(all); ++position) {
    const Index item = all[static_cast<std::size_t>(position)];
    std::optional<ImageTargets>& target = targets.emplace_back();
    if (item >= 0) {
      const int label = dataset_.label(item);
      target = ImageTargets{.label = label < 0 ? std::nullopt : std::optional(label)};
      if (dataset_.has_boxes() && options_.rules.detects) {
        for (const Box& box : boxes_at(step, position, item)) {
          target->boxes.push_back(converted<double>(box));
        }
      }
    }
  }
  return targets;
}

namespace {

Region within(const Region& region, const PictureWindow& window) {
  Region part = region;
  part.rows = intersect(region.rows, window.rows);
  part.cols = intersect(region.cols, window.cols);
  return part;
}

// Adds `values`, (C, W) of one row of the input, times `share` to those of the region, (C, H, W).
void add_row(std::span<const float> values,
             const Region& row,
             float share,
             const Region& region,
             std::span<float> cells) {
  const float* from = values.data();
  for (Index channel = 0; channel < region.channels.size(); ++channel, from += row.cols.size()) {
    const Index line = channel * region.rows.size() + row.rows.begin - region.rows.begin;
    float* to = cells.data() + line * region.cols.size() + row.cols.begin - region.cols.begin;
    for (Index col = 0; col < row.cols.size(); ++col) {
      to[col] += share * from[col];
    }
  }
}

}  // namespace

void BatchSource::render_part(Index step,
                              const Part& part,
                              const Picture& picture,
                              const Region& region,
                              std::span<float> cells) const {
  const Augmentation augmentation = augmentation_of(step, part, picture.shape);
  const PictureWindow window = window_of(step, part);
  const Region shown = within(region, window);
  if (shown.rows == region.rows && shown.cols == region.cols && window.share == 1) {
    render(picture, augmentation, rules(step), region, cells);
    return;
  }
  std::vector<float> values(static_cast<std::size_t>(region.channels.size() * shown.cols.size()));
  for (Region row = shown; row.rows.begin < shown.rows.end; ++row.rows.begin) {
    row.rows.end = row.rows.begin + 1;
    render(picture, augmentation, rules(step), row, values);
    add_row(values, row, window.share, region, cells);
  }
}

std::optional<Picture> BatchSource::read(Index item, bool waits) const {
  return options_.cache ? dataset_.read(item, detail_, *options_.cache, waits)
                        : dataset_.read(item, detail_);
}

// Reads and renders what lies in a region, one picture at a time.
class BatchSource::RegionReader {
 public:
  RegionReader(const BatchSource& source, Index step, const Region& region, std::span<float> out)
      : source_(source), step_(step), region_(region), out_(out) {}

  // Assigns to the whole region. Where other ranks are decoding pictures just now, others come
  // first: so ranks that read the same ones divide them. No cell is made of more than two pictures,
  // so that the order does not change what they add up to.
  Reading run() {
    std::fill(out_.begin(), out_.end(), 0.0F);  // stays where there is no picture
    std::vector<Part> parts = all_parts();
    for (const bool waits : {false, true}) {
      std::vector<Part> left;
      for (const Part& part : parts) {
        if (!render(part, waits)) {
          left.push_back(part);
        }
      }
      parts = std::move(left);
    }
    return std::move(reading_);
  }

 private:
  // Parts of the same picture behind each other, so that one at a time is held.
  [[nodiscard]] std::vector<Part> all_parts() const {
    const std::vector<Index> items = source_.items(step_);
    expects(region_.images.begin >= 0 && region_.images.end <= std::ssize(items),
            "a region's images lie in the batch");
    std::vector<Part> parts;
    for (Index position = region_.images.begin; position < region_.images.end; ++position) {
      const Index first = items[static_cast<std::size_t>(position)];
      for (const Part& part : source_.parts_of(step_, position, first)) {
        if (part.item >= 0 && !within(region_, source_.window_of(step_, part)).empty()) {
          parts.push_back(part);
        }
      }
    }
    std::stable_sort(
        parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.item < b.item; });
    return parts;
  }

  // Whether it was done, also where the picture cannot be read.
  bool render(const Part& part, bool waits) {
    try {
      if (part.item != held_ && !hold(part.item, waits)) {
        return false;
      }
    } catch (const BrokenPicture& error) {
      pass_over(part, error, source_.options_.shares == nullptr ? kSkipHint : "");
      return true;
    } catch (const InputError& error) {
      pass_over(part, error, "");
      return true;
    }
    const Index volume = region_.channels.size() * region_.rows.size() * region_.cols.size();
    source_.render_part(
        step_,
        part,
        picture_,
        region_,
        out_.subspan(static_cast<std::size_t>((part.position - region_.images.begin) * volume),
                     static_cast<std::size_t>(volume)));
    return true;
  }

  void pass_over(const Part& part, const InputError& error, const char* hint) {
    if (!source_.options_.passes_unreadable) {
      throw InputError(std::string(error.what()) + hint);
    }
    reading_.unreadable.push_back({part.position, error.what()});
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
