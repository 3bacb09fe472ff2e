#include "partitioner/plan/image_shares.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/deferred_weights.h"
#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

namespace {

bool is_uncut(const Cut& cut) {
  return cut.parts == 1;
}

// The cells of whole images.
bool is_whole(const Region& region, const Region& map) {
  return region.channels == map.channels && region.rows == map.rows && region.cols == map.cols;
}

class ImageSetter {
 public:
  ImageSetter(const Network& network, const std::vector<Index>& images, Plan& plan)
      : network_(network), shares_(image_shares(images, plan)), plan_(plan) {
    plan_.batch = std::accumulate(images.begin(), images.end(), Index{0});
  }

  void run() {
    set_tiles(plan_.image);
    for (GroupGeometry& group : plan_.groups) {
      for (std::vector<Tile>& tiles : group.tiles) {
        set_tiles(tiles);
      }
      for (auto& [map, regions] : group.required) {
        for (std::size_t rank = 0; rank < regions.size(); ++rank) {
          regions[rank].images = shares_[rank].computed;
        }
      }
    }
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
      for (Buffer& buffer : plan_.buffers[rank]) {
        buffer.region.images = shares_[rank].computed;
      }
      set_parts(static_cast<int>(rank));
    }
  }

 private:
  void set_tiles(std::vector<Tile>& tiles) const {
    for (std::size_t rank = 0; rank < tiles.size(); ++rank) {
      Tile& tile = tiles[rank];
      tile.owned.images = shares_[rank].owned;
      tile.computed.images = shares_[rank].computed;
      tile.backward.images = shares_[rank].owned;
    }
  }

  void set_parts(int rank) {
    for (int layer = 0; layer < network_.size(); ++layer) {
      const auto at = static_cast<std::size_t>(layer);
      LayerPlan& layer_plan = plan_.layers[static_cast<std::size_t>(rank)][at];
      for (TilePart& part : layer_plan.forward_parts) {
        part.region.images = shares_[static_cast<std::size_t>(rank)].computed;
      }
      if (learns(network_.layer(layer))) {
        layer_plan.weight_parts = weight_parts(plan_.deferred[at],
                                               plan_.kernels_of(layer).backward_weights,
                                               plan_.tile(layer, rank).backward);
      }
    }
  }

  const Network& network_;
  std::vector<ImageShare> shares_;
  Plan& plan_;
};

}  // namespace

std::vector<ImageShare> image_shares(const std::vector<Index>& images, const Plan& plan) {
  expects(std::ssize(images) == plan.ranks, "a number of images for each rank");
  const Index batch = std::accumulate(images.begin(), images.end(), Index{0});
  std::vector<ImageShare> shares;
  Index begin = 0;
  for (std::size_t rank = 0; rank < images.size(); ++rank) {
    const Range owned{begin, begin + images[rank]};
    const bool spares = owned.empty() && batch > 0 && !plan.buffers[rank].empty();
    const Index spare = std::min(begin, batch - 1);
    shares.push_back({owned, spares ? Range{spare, spare + 1} : owned});
    begin = owned.end;
  }
  return shares;
}

Partition with_image_shares(Partition partition,
                            const std::vector<Index>& most,
                            const std::string& where) {
  const auto refuse = [&where](const std::string& what) {
    throw InputError(where,
                     0,
                     what +
                         ", and each rank trains on its own pictures: only images can be cut; "
                         "leave out what says how to cut, or give --data-parallel-from 0");
  };
  if (const auto reader = partition.reader.single_rank()) {
    refuse(fmt::format("rank {} reads for all", *reader));
  }
  Cut images{static_cast<Index>(most.size()), {0}};
  for (const Index count : most) {
    images.boundaries.push_back(images.boundaries.back() + count);
  }
  partition.ranks = static_cast<int>(most.size());
  for (Group& group : partition.groups) {
    if (!is_uncut(group.rows) || !is_uncut(group.cols) || !group.bands.empty()) {
      refuse(fmt::format("layers {} to {} are cut into tiles", group.first, group.last));
    }
    if (!is_uncut(group.channels)) {
      refuse(fmt::format("layers {} to {} are cut by channels", group.first, group.last));
    }
    group.images = images;
    group.ranks.resize(most.size());
    std::iota(group.ranks.begin(), group.ranks.end(), 0);
  }
  return partition;
}

bool cuts_images_alone(const Network& network, const Plan& plan) {
  if (!plan.reader.is_every_rank()) {
    return false;
  }
  for (int map = kImage; map < network.size(); ++map) {
    const Region whole = whole_map(network, map, plan.batch);
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Tile& tile = plan.tile(map, rank);
      const Range& own = plan.tile(kImage, rank).owned.images;
      const bool alone =
          tile.owned == tile.computed && is_whole(tile.owned, whole) && tile.owned.images == own;
      if (!alone && !(tile.computed.empty() && own.empty())) {
        return false;
      }
    }
  }
  return true;
}

void set_images(const Network& network, const std::vector<Index>& images, Plan& plan) {
  ImageSetter(network, images, plan).run();
  renew_statistics_messages(plan);
}

}  // namespace tessera::partitioner
