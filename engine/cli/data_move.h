// Samples that move as a data map says, before training or while its first steps run, and what is
// said of it.

#pragma once

#include <memory>
#include <string>

#include "engine/cli/move_report.h"
#include "engine/comm/communicator.h"
#include "engine/data/batch.h"
#include "engine/moving/sample_move.h"

namespace tessera::engine {

class DataMove {
 public:
  // Between the ranks' data sets, which are those of `source`. In the background: steps may run
  // meanwhile. Throws AgreedError. All ranks call this together; communicator and map must outlive
  // it.
  DataMove(const partitioner::DataMap& data_map,
           const SampleMoveOptions& options,
           ProgressStyle style,
           std::shared_ptr<BatchSource> source,
           const Communicator& communicator);

  // Between steps, of which `most` may run: whether it is over on all ranks. Throws and is called
  // as SampleMove::look().
  [[nodiscard]] bool look(Index most);

  // Waits until it is over, after so many steps, and gives the source what has arrived: nothing is
  // read from it meanwhile. What has happened, in a line; rank 0's. Throws AgreedError. All ranks
  // call this together.
  [[nodiscard]] std::string finish(Index steps);

  // What it took of memory at most, once it is over.
  [[nodiscard]] Index bytes() const { return move_.bytes(); }

 private:
  std::shared_ptr<BatchSource> source_;
  SampleMove move_;
  MoveReport report_;
  const Communicator& communicator_;
  double begun_s_;
  bool over_ = false;
  bool looked_ = false;
};

}  // namespace tessera::engine
