// Training by a data map: each rank has pictures of its own, some of which move to other ranks
// before the first step or while the first ones run, and then trains on those that lie on it.

#pragma once

#include <memory>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/batch/batch.h"
#include "engine/session/data_move.h"
#include "engine/session/data_setup.h"
#include "engine/session/training_request.h"
#include "partitioner/balance/data_map.h"

namespace tessera::engine {

class MappedData {
 public:
  // Reads --data-map on rank 0, for steps of so many passes of `images`. Throws AgreedError where
  // it is not one of these ranks, or where other options do not go with it. All ranks call this
  // together.
  MappedData(const TrainingRequest& request,
             BatchNormMode batch_norm,
             Index images,
             Index passes,
             const Communicator& communicator);

  // What this rank's data set has to have.
  [[nodiscard]] OwnPart own_part() const;

  // The same request, by images where it does not say how to cut.
  [[nodiscard]] static PartitionRequest cut_by_images(PartitionRequest request);
  // What was chosen, with the shares of the ranks. Throws AgreedError where it cuts anything else.
  [[nodiscard]] partitioner::Partition shared(const partitioner::Partition& chosen) const;
  // Images that all ranks together have room for in a pass.
  [[nodiscard]] Index places() const;

  // Steps that may run while samples move, since they need none that is still to arrive; 0: samples
  // move before the first step, as when a run is resumed.
  [[nodiscard]] Index early_steps() const { return early_steps_; }
  // What moving takes of memory beside steps, at most.
  [[nodiscard]] Index background_bytes() const {
    return early_steps_ > 0 ? SampleMove::kBackgroundBytes : 0;
  }

  // Makes room in this rank's data set for what it is to have.
  void make_room(Dataset& training) const;
  // Begins to move samples of the sources into a run's folder. Where no step may run meanwhile,
  // finish_move() comes next. Throws AgreedError. All ranks call this together; the observer must
  // outlive the move.
  void begin_move(const std::string& run,
                  const MoveObserver& observer,
                  const std::shared_ptr<BatchSource>& training);
  [[nodiscard]] bool is_moving() const { return move_ != nullptr; }
  // Between steps, of which `most` may run: whether all have moved. As DataMove::look().
  [[nodiscard]] bool look(Index most) { return move_->look(most); }
  // As DataMove::finish().
  void finish_move(Index steps, const SessionObserver& observer);
  // What has moved, in a line; rank 0's, once it has.
  [[nodiscard]] const std::string& moved() const { return moved_; }
  // What that took of memory beside steps.
  [[nodiscard]] Index moving_bytes() const { return moving_bytes_; }

  // Shares out pictures to test with, so many of which lie on this rank. All ranks call this
  // together.
  void test_on(Index pictures, const SessionObserver& observer);

  // Makes a source of the data set read this rank's share. Throws InputError where the data set has
  // not what the map says.
  void share(BatchOptions& options, const Dataset& dataset) const;

  [[nodiscard]] std::string text() const { return to_text(map_); }

 private:
  void expect_fitting_options(const TrainingRequest& request, BatchNormMode batch_norm) const;

  const Communicator& communicator_;
  std::string file_;
  partitioner::DataMap map_;
  std::shared_ptr<const DataShares> training_;
  std::shared_ptr<const DataShares> testing_;
  Index early_steps_ = 0;
  std::unique_ptr<DataMove> move_;  // while samples move
  std::string moved_;
  Index moving_bytes_ = 0;
};

// Warns on rank 0 where the run of a checkpoint to resume had another data map than `now` (empty:
// none): pictures are then shuffled differently.
void warn_of_other_data_map(const std::string& resume,
                            const std::string& now,
                            const Communicator& communicator,
                            const SessionObserver& observer);

}  // namespace tessera::engine
