// Training by a data map: each rank has pictures of its own, some of which move to other ranks
// before the first step or while the first ones run, and then trains on those that lie on it.

#pragma once

#include <memory>
#include <string>

#include "engine/cli/commands.h"
#include "engine/cli/data_move.h"
#include "engine/cli/data_setup.h"
#include "engine/comm/communicator.h"
#include "engine/data/batch.h"
#include "engine/train/run_report.h"
#include "partitioner/balance/data_map.h"

namespace tessera::engine {

class MappedData {
 public:
  // Reads --data-map on rank 0, for passes of `images`. Throws AgreedError where it is not one of
  // these ranks, or where other options do not go with it. All ranks call this together.
  MappedData(const TrainCommand& command, Index images, const Communicator& communicator);

  // What this rank's data set has to have.
  [[nodiscard]] OwnPart own_part() const;

  // How to cut, where the command line does not say: by images.
  [[nodiscard]] static PartitionChoice choice(PartitionChoice given);
  // What was chosen, with the shares of the ranks. Throws AgreedError where it cuts anything else.
  [[nodiscard]] partitioner::Partition shared(const partitioner::Partition& chosen) const;
  // Images that all ranks together have room for in a pass.
  [[nodiscard]] Index places() const;

  // Passes that need no sample that is still to arrive.
  [[nodiscard]] Index early_passes() const { return training_->early_passes(); }
  // Makes room in this rank's data set for what it is to have.
  void make_room(Dataset& training) const;
  // Begins to move samples of the sources into `folder`, in the background or not. Throws
  // AgreedError. All ranks call this together.
  [[nodiscard]] std::unique_ptr<DataMove> move(const std::string& folder,
                                               ProgressStyle style,
                                               bool in_background,
                                               std::shared_ptr<BatchSource> training) const;
  // How many each rank then has, in a line.
  [[nodiscard]] std::string sizes() const;

  // Of pictures to test with, so many of which lie on this rank. All ranks call this together.
  void test_on(Index pictures);

  // Makes a source of the data set read this rank's share. Throws InputError where the data set has
  // not what the map says.
  void share(BatchOptions& options, const Dataset& dataset) const;

  [[nodiscard]] std::string text() const { return to_text(map_); }

 private:
  void expect_fitting_options(const TrainCommand& command) const;

  const Communicator& communicator_;
  std::string file_;
  partitioner::DataMap map_;
  std::shared_ptr<const DataShares> training_;
  std::shared_ptr<const DataShares> testing_;
};

// Warns on rank 0 where the run of a checkpoint to resume had another data map than `now` (empty:
// none): pictures are then shuffled differently.
void warn_of_other_data_map(const std::string& resume,
                            const std::string& now,
                            const Communicator& communicator);

inline constexpr const char* kDataMapFile = "data-map.toml";  // of a run folder

}  // namespace tessera::engine
