// Samples that move as a data map says, before training or while its first steps run, and what is
// said of it.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/batch/batch.h"
#include "engine/moving/sample_move.h"

namespace tessera::engine {

// Who is told of it on rank 0; each function may be empty.
struct MoveObserver {
  // First with nothing moved.
  std::function<void(const MoveProgress& progress)> progress = {};
  // A line on what happens beside it.
  std::function<void(const std::string& line)> note = {};
};

class DataMove {
 public:
  // Between the ranks' data sets, which are those of `source`. In the background: steps may run
  // meanwhile. Throws AgreedError. All ranks call this together; map, observer and communicator
  // must outlive it.
  DataMove(const partitioner::DataMap& data_map,
           const SampleMoveOptions& options,
           const MoveObserver& observer,
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
  void show(const MoveProgress& progress) const;
  void note(const std::string& line) const;

  std::shared_ptr<BatchSource> source_;
  SampleMove move_;
  const MoveObserver& observer_;
  const Communicator& communicator_;
  double begun_s_;
  bool over_ = false;
  bool looked_ = false;
};

}  // namespace tessera::engine
