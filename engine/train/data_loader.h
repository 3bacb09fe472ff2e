// How pictures and targets get to the ranks: either each rank reads its own region from storage it
// can see, or one rank reads and the rest receive theirs; the plan says which. Pictures are those
// of a data set, or random ones for timing and tests.
//
// A data set may lie in parts on the ranks (BatchOptions::shares), under a plan that cuts images
// alone: each reads images of its own part, as many in each pass as its share says.

#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/batch/batch.h"
#include "engine/execution/execution.h"
#include "engine/train/sized_plans.h"
#include "engine/train/target_exchange.h"

namespace tessera::engine {

// Pictures of uniform noise from 0 to 1, drawn by the position of each cell in the batch: the same
// in every pass, and whatever the partition. Their class is 0.
struct RandomPictures {
  std::uint64_t seed = 1;
};

class DataLoader {
 public:
  // `source` on ranks that read; plan and communicator must outlive it.
  DataLoader(std::optional<BatchSource> source,
             const partitioner::Plan& plan,
             const Communicator& communicator);
  // Shares a source with other loaders; null on ranks that do not read. A loader that reads ahead
  // may keep it for a moment longer.
  DataLoader(std::shared_ptr<const BatchSource> source,
             const partitioner::Plan& plan,
             const Communicator& communicator);

  // Random images. They are drawn once and then kept, so that loading them takes next to no time.
  DataLoader(RandomPictures pictures,
             const partitioner::Plan& plan,
             const Communicator& communicator);

  // Follows the schedule of input sizes of multi-scale training; a step has `passes` passes. The
  // source has the same sizes.
  void follow(std::shared_ptr<const SizedPlans> sizes, Index passes) {
    sizes_ = std::move(sizes);
    passes_ = passes;
  }

  [[nodiscard]] bool is_random() const { return random_.has_value(); }

  // Whether this rank reads pictures under the plan.
  [[nodiscard]] static bool reads(const partitioner::Plan& plan, int rank) {
    return plan.reader.reads(rank);
  }

  // Fills the execution's image with what pass `step` needs of it (the image of other ranks follows
  // in forward()), and targets(). Where each rank has a part of the data set, sets how many images
  // each has. What goes wrong with reading is returned, not thrown: the other ranks go on and have
  // to learn of it. Pass
  // `step` + 1 is then read ahead, while this one is computed.
  //
  // Where the maps of the frozen trunk are given (trunk_cache.h), no pictures are read for them.
  struct Needs {
    bool pictures = true;   // for this pass
    bool next_ones = true;  // for the one after it
  };
  [[nodiscard]] std::optional<std::string> load(Index step, Execution<float>& execution) {
    return load(step, execution, {});
  }
  [[nodiscard]] std::optional<std::string> load(Index step,
                                                Execution<float>& execution,
                                                const Needs& needs);

  // Numbers of what the images of a pass show (BatchSource::shown_images()), from 0 to
  // images_to_show() - 1: equal ones have the same pixels. All ranks call these together.
  [[nodiscard]] std::vector<Index> shown_images(Index step) const;
  [[nodiscard]] Index images_to_show() const;

  // Waits until no pass is being read ahead: the source may then change, up to the next load().
  void finish_reading() const;

  // Targets of the images of the pass. Where each rank has a part of the data set it has the
  // targets of its own images, and rank 0 in testing those of all.
  [[nodiscard]] const Targets& targets() const { return targets_; }

  // Null on ranks that do not read, and where pictures are random.
  [[nodiscard]] const BatchSource* source() const { return source_.get(); }

  // Pictures of the pass that this rank went past since it could not read them, where its source
  // is to do so.
  [[nodiscard]] const std::vector<UnreadablePicture>& unreadable() const { return unreadable_; }

  // What pixels take here, beside the execution's image.
  [[nodiscard]] Index bytes() const { return static_cast<Index>(sizeof(float)) * most_pixels_; }

  // The most that decoding a picture took here, and what the data set takes.
  [[nodiscard]] Index decoding_bytes() const { return most_decoding_; }
  [[nodiscard]] Index data_bytes() const { return source_ ? source_->dataset().bytes() : 0; }

  // Pictures that were read here for the passes that were loaded.
  [[nodiscard]] Index pictures_read() const { return pictures_read_; }

  // Pictures of the data set; 0 for random ones. All ranks call this together.
  [[nodiscard]] Index size() const;

  // Passes that show all of them once. All ranks call this together.
  [[nodiscard]] Index passes() const;

  // The names of its classes. All ranks call this together.
  [[nodiscard]] std::vector<std::string> class_names() const;

 private:
  // What a rank has read of one pass.
  struct Batch {
    Index step = -1;
    Region region;
    Targets targets;
    std::vector<float> pixels;  // (N, C, H, W) of the region
    BatchSource::Reading reading;
    std::optional<std::string> problem;
  };

  [[nodiscard]] static Batch read(const BatchSource& source,
                                  Index step,
                                  const Region& region,
                                  std::vector<float> pixels);
  [[nodiscard]] Batch next(Index step, const Region& region);
  void read_ahead(Index step, const Region& region);
  [[nodiscard]] const DataShares* shares() const {
    return source_ ? source_->options().shares.get() : nullptr;
  }
  // For each rank; where one rank has all parts, the sum of theirs.
  [[nodiscard]] std::vector<Index> shared_images(Index step) const;
  // What this rank reads of the pass after `step`, whose region is given.
  [[nodiscard]] Region region_after(Index step, const Region& region) const;
  void gather_targets(Index step);
  [[nodiscard]] std::optional<std::string> load_from_source(Index step,
                                                            Execution<float>& execution,
                                                            const Needs& needs);
  // A list of the rank that reads for all, where one does; else of each rank itself.
  [[nodiscard]] std::vector<Index> of_reader(std::vector<Index> mine) const;
  void load_random(Execution<float>& execution);

  std::shared_ptr<const BatchSource> source_;  // the thread that reads ahead shares it
  std::optional<RandomPictures> random_;       // instead of a source
  std::shared_ptr<const SizedPlans> sizes_;    // null: there is one size
  Index passes_ = 1;                           // of a step
  const partitioner::Plan* plan_;
  const Communicator* communicator_;
  TargetExchange exchange_;
  Targets targets_;
  std::vector<UnreadablePicture> unreadable_;
  Index most_pixels_ = 0;
  Index most_decoding_ = 0;
  Index pictures_read_ = 0;
  std::vector<float> spare_;  // pixels of the pass before, for the one after; or random ones
  std::future<Batch> upcoming_;
};

}  // namespace tessera::engine
