// The maps at the end of the frozen trunk (partitioner/network/frozen_trunk.h), kept for each image
// that is shown: where a pass shows only images that it knows, pictures are not read, and nothing
// of the trunk is computed or sent. Each rank keeps the cells that it has computed. Where images
// are cut, one may come back at a place that other ranks compute: those who have kept it send it.
//
// All ranks call everything here together, but for what only looks. Every rank knows the same
// images, without asking the others: memory holds what was put there. Records on a disk may be
// damaged or not fit on it, so there ranks agree on each pass.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/execution/execution.h"
#include "engine/train/data_loader.h"
#include "engine/train/trunk_store.h"
#include "partitioner/network/frozen_trunk.h"
#include "partitioner/plan/trunk_homes.h"

namespace tessera::engine {

struct TrunkCacheOptions {
  std::filesystem::path folder = {};  // of this rank; empty: memory
  std::string identity = {};          // what maps depend on beside plan and parameters, in a folder
  // What went wrong with a folder, once, on the rank where it did.
  std::function<void(const std::string&)> warn = {};
};

class TrunkCache {
 public:
  // Execution and loader must outlive it; neither changes its plan or pictures, and no picture is
  // another one in each epoch (BatchSource::variants()).
  TrunkCache(Execution<float>& execution, DataLoader& loader, TrunkCacheOptions options);

  // Before the pass is loaded.
  void begin(Index pass);
  // Whether the maps of the pass that has begun are all known, and so need no pictures; and whether
  // those of the one after it will be, as far as is known.
  [[nodiscard]] bool gives() const { return gives_; }
  [[nodiscard]] bool will_give() const;
  // To be called at_trunk, see Execution::forward(): keeps the map, or puts it there.
  void at_trunk(int map);
  // All ranks have computed the pass, from pictures that could be read.
  void confirm();

  // Passes whose maps were given.
  [[nodiscard]] Index passes_given() const { return passes_given_; }
  [[nodiscard]] Index memory_bytes() const;

 private:
  static constexpr int kUnknown = -1;

  [[nodiscard]] bool knows(const std::vector<Index>& numbers) const;
  [[nodiscard]] int own_home(std::size_t image) const { return homes_.of_image[image]; }
  [[nodiscard]] Index kept_here(int home) const;
  [[nodiscard]] std::optional<TrunkRecord> record_of(Index number) const;
  void open();
  void find_earlier();
  void end_keeping_if_there_is_no_room();
  void forget(const std::vector<Index>& numbers);
  [[nodiscard]] std::uint64_t key();
  [[nodiscard]] bool fetch();
  void exchange();
  [[nodiscard]] bool is_new(std::size_t image) const;
  [[nodiscard]] View<float> kept_map(std::size_t image, int map);
  void take(int map);
  void give(int map);
  void keep();

  Execution<float>& execution_;
  DataLoader& loader_;
  const Communicator& communicator_;
  TrunkCacheOptions options_;
  partitioner::FrozenTrunk trunk_;
  partitioner::TrunkHomes homes_;
  std::unique_ptr<TrunkStore> store_;  // null until the first pass
  std::vector<int> known_;             // by number of an image: its home, or kUnknown
  bool keeps_ = true;                  // there is room for more
  Index passes_given_ = 0;

  // Of the pass that has begun:
  std::vector<Index> numbers_;              // by image
  std::vector<Index> next_;                 // of the pass after it
  std::vector<Index> fresh_;                // that it has made known
  std::vector<std::vector<float>> values_;  // by image, this rank's cells: given, or to be kept
  bool gives_ = false;
  std::optional<std::string> problem_;  // with keeping
};

// A pass with such a cache, or without one where it is null: what comes before the forward pass,
// which returns what went wrong with reading, and the forward pass.
[[nodiscard]] std::optional<std::string> load_pass(TrunkCache* trunk,
                                                   DataLoader& loader,
                                                   Execution<float>& execution,
                                                   Index pass);
void forward(TrunkCache* trunk, Execution<float>& execution, Pass pass);

}  // namespace tessera::engine
