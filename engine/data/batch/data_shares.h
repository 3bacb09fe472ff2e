// A data set that lies in parts on several ranks, each of which trains on its own: which part each
// image of a batch is of, and which of its items.
//
// For training, a pass has a share of each part in proportion to its size, so that all parts last
// an epoch: the places of an epoch go to the parts by Sainte-Lague's method (as seats of a
// parliament go to parties), evenly spread from the first to the last, each place to the part whose
// next item is due first, (2 k + 1) / (2 size). Of each part the items come in an order drawn from
// seed and epoch. So every item is seen once in an epoch and nothing depends on time. Passes follow
// each other as in BatchSource: one may begin in an epoch and end in the next.
//
// Training may begin while items are still on their way to their parts: then the first passes have
// items that are there from the start alone, and the rest of that epoch all others.
//
// For testing, each part has its items in their own order, as many in a pass as it has room for.
//
// Within a pass, images stand in the order of parts.

#pragma once

#include <cstdint>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

// Items that are there before the others have arrived: the first ones of each part.
struct EarlyItems {
  std::vector<Index> sizes = {};  // of each part
  double share = 0;  // of the first epoch, in which they alone are seen if they suffice
};

class DataShares {
 public:
  // `batch` images in each pass. Requires at least one item and fewer than 2^31.
  [[nodiscard]] static DataShares for_training(std::vector<Index> sizes,
                                               Index batch,
                                               EarlyItems early = {});
  // At most `most` images of each part in each pass; a part without room is left out.
  [[nodiscard]] static DataShares for_testing(std::vector<Index> sizes, std::vector<Index> most);

  // Items of all parts that have room.
  [[nodiscard]] Index size() const { return size_; }
  // Items of each part.
  [[nodiscard]] const std::vector<Index>& sizes() const { return sizes_; }
  // The most images of each part that any pass has; of training also the fewest.
  [[nodiscard]] const std::vector<Index>& most_images() const { return most_; }
  [[nodiscard]] const std::vector<Index>& fewest_images() const { return fewest_; }
  // Passes that show all items once; of training the last may reach into the next epoch.
  [[nodiscard]] Index passes() const;

  // Passes at the beginning that have early items alone.
  [[nodiscard]] Index early_passes() const { return early_passes_; }
  // Items of a part that are there from the start.
  [[nodiscard]] Index early_size(int part) const;

  // Images of each part in pass `pass`, counted from 0.
  [[nodiscard]] std::vector<Index> images(Index pass) const;

  // The items of the images of one part in that pass, numbered within the part.
  [[nodiscard]] std::vector<Index> items(Index pass, int part, std::uint64_t seed) const;

 private:
  DataShares(std::vector<Index> sizes, bool training);
  void share_places();
  void find_most_and_fewest();
  void find_early_passes();
  // The item at a place of an epoch of a part.
  [[nodiscard]] Index training_item(std::size_t part,
                                    std::uint64_t own_seed,
                                    Index epoch,
                                    Index place) const;
  // Items of each part in all places before `place`, counted through all epochs.
  [[nodiscard]] std::vector<Index> items_before(Index place) const;

  std::vector<Index> sizes_;
  EarlyItems early_;
  bool training_;
  Index size_ = 0;
  Index batch_ = 0;
  std::vector<Index> most_;
  std::vector<Index> fewest_;
  Index early_passes_ = 0;
  std::vector<Index> early_images_;        // of each part in those passes
  std::vector<std::uint16_t> part_of_;     // by place of an epoch
  std::vector<std::vector<Index>> marks_;  // items of each part before every kMark-th place
};

}  // namespace tessera::engine
