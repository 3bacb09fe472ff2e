// Which items make up each step's batch, the pixels of a region of it and the targets. A rank asks
// for the region that it requires; every rank gets the same picture of the same item, without a
// word between them.
//
// For training, epochs follow each other without a gap: a batch may begin in one and end in the
// next. For testing, items come in their own order; the places of the last batch that no item is
// left for have item -1, no targets and pixels 0.
//
// Where a data set lies in parts on several ranks, a source has the items of its own part; all
// other places of a batch have item -1 here.

#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/targets.h"
#include "engine/data/batch/augment.h"
#include "engine/data/batch/box_placement.h"
#include "engine/data/batch/data_shares.h"
#include "engine/data/batch/input_schedule.h"
#include "engine/data/dataset.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

struct BatchOptions {
  RenderingRules rules;
  Index batch = 1;
  std::uint64_t seed = 0;
  Split split = Split::Train;
  bool passes_unreadable = false;  // goes on past a picture that cannot be read, which is 0 then
  // The parts of a data set, which say the batch of each step instead of `batch`; null: it is
  // whole.
  std::shared_ptr<const DataShares> shares = nullptr;
  int part = kAllParts;  // whose items the data set has; kAllParts: those of all, in their order
  // Items of the data set, rising, that are on their way to other parts. What is on its way to this
  // one is not in it yet, so only the early passes of the shares can be read, until change().
  std::vector<Index> leaving = {};

  // Of inputs that change their size, in a detector's training; null: all are as the rules say.
  std::shared_ptr<const InputSchedule> sizes = nullptr;
  Index passes = 1;  // of a step of the training; a batch is what a pass takes

  // In how many variants training shows each picture: in epoch e, counted from 0, as variant
  // e mod `variants`, which is drawn by the picture's number. 0: as another one in each epoch. The
  // data set does not lie in parts.
  Index variants = 0;

  // Keeps decoded pictures; null: each is decoded whenever it is read.
  std::shared_ptr<PictureCache> cache = nullptr;

  static constexpr int kAllParts = -1;
};

// A picture of a batch that could not be read, and why.
struct UnreadablePicture {
  Index position = 0;  // in the batch
  std::string problem;
};

class BatchSource {
 public:
  // Throws InputError that starts with `model` (the model file) where its rules cannot be followed.
  BatchSource(Dataset dataset, BatchOptions options, const std::string& model);

  // Takes what is leaving out of the data set; `add_arrivals` adds what has arrived behind the
  // rest. Nothing must be read meanwhile.
  void change(const std::function<void(Dataset&)>& add_arrivals);

  // From this step of the training on, counted from 0, an image is made of one picture, whatever
  // the rules say. Nothing must be read meanwhile.
  void end_mosaic(Index step) { mosaic_until_ = step; }

  // The items of step `step`, counted from 0: options.batch of them, or as many as the shares say.
  [[nodiscard]] std::vector<Index> items(Index step) const;

  // How many of them are items, not -1.
  [[nodiscard]] Index valid(Index step) const;

  // In how many variants a picture is shown; 0: in each epoch as another one, whose number is that
  // of the epoch. 1 where nothing varies: in testing, and by rules that vary nothing.
  [[nodiscard]] Index variants() const { return variants_; }

  // What an image shows. Images of one size that are equal in all of this have the same pixels and
  // boxes.
  struct ShownImage {
    Index item = -1;     // its first picture; -1: none
    Index variant = 0;   // of that picture
    bool plain = false;  // of one picture alone, where it might have more but for end_mosaic()
    friend bool operator==(const ShownImage&, const ShownImage&) = default;
  };

  // Those of items(step).
  [[nodiscard]] std::vector<ShownImage> shown_images(Index step) const;

  // The targets of items(step); a label is a class index of the data set. Boxes are those of the
  // images as they are rendered. Reads the headers of pictures whose proportions are kept.
  [[nodiscard]] Targets targets(Index step) const;

  // What reading a region took.
  struct Reading {
    Index pictures = 0;                         // that were read
    Index decoding_bytes = 0;                   // the most that one of them took
    std::vector<UnreadablePicture> unreadable;  // that it went past, see BatchOptions
  };

  // Assigns to `out`, (N, C, H, W) of `region`; its images are positions in the batch. Reads each
  // picture once, also one that has several places in the batch.
  Reading read_region(Index step, const Region& region, std::span<float> out) const;

  // The rules by which the images of a step are made.
  [[nodiscard]] const RenderingRules& rules(Index step) const;

  // The detail of each picture that the rules of all steps need.
  [[nodiscard]] const Detail& detail() const { return detail_; }

  [[nodiscard]] const Dataset& dataset() const { return dataset_; }
  [[nodiscard]] const BatchOptions& options() const { return options_; }

 private:
  // One of the pictures that an image of the batch is made of.
  struct Part {
    Index item = 0;
    Index position = 0;  // in the batch
    int number = 0;      // among the pictures of the image
  };
  // Where an image of the batch stands in the training.
  struct Moment {
    Index epoch = 0;
    Index place = 0;
  };
  class RegionReader;

  [[nodiscard]] Index item(Index step, Index position) const;
  [[nodiscard]] std::optional<Picture> read(Index item, bool waits) const;
  [[nodiscard]] std::vector<Index> items_of_shares(Index step) const;
  [[nodiscard]] Moment moment(Index step, Index position) const;
  // By what it is augmented: with variants, their number and the picture's.
  [[nodiscard]] Moment drawn_by(Index step, Index position) const;
  [[nodiscard]] bool has_ended_mosaic(Index step) const {
    return step / options_.passes >= mosaic_until_;
  }
  [[nodiscard]] bool varies() const { return options_.split == Split::Train; }
  // Of an image whose first picture is `item`.
  [[nodiscard]] std::vector<Part> parts_of(Index step, Index position, Index item) const;
  [[nodiscard]] PictureWindow window_of(Index step, const Part& part) const;
  [[nodiscard]] Augmentation augmentation_of(Index step,
                                             const Part& part,
                                             const partitioner::MapShape& picture) const;
  [[nodiscard]] std::vector<Box> boxes_at(Index step, Index position, Index item) const;
  [[nodiscard]] bool is_part() const {
    return options_.shares != nullptr && options_.part != BatchOptions::kAllParts;
  }
  void render_part(Index step,
                   const Part& part,
                   const Picture& picture,
                   const Region& region,
                   std::span<float> cells) const;

  Dataset dataset_;
  BatchOptions options_;
  // Of the sizes, in their order, or of the only one; and the same without mosaic and mixup.
  std::vector<RenderingRules> rules_;
  std::vector<RenderingRules> single_rules_;
  Index mosaic_until_ = std::numeric_limits<Index>::max();
  Index variants_ = 0;
  Detail detail_;
  std::vector<Index> staying_;  // items of the data set, where some are leaving
};

}  // namespace tessera::engine
