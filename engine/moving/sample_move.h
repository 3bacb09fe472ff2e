// Moves samples between devices before training, as a data map says: each device sends what the map
// takes from it, straight to who gets it, keeps its own files as they are, and has less of them in
// its data set from then on; what arrives lies in a folder of the receiver and is in its data set.
//
// It may be killed at any time and started again: what has arrived, by the checksums of both ends,
// does not travel again, and only when all of it is there do the data sets change. So each sample
// is in the data set of exactly one device, always.
//
// Samples travel in rounds, in each of which every pair of devices moves the same share of what it
// has to move, about 4 MiB of the busiest device: all links are busy until the end, whatever moves
// between whom. While a round is on the wire, the next is read and the last is written. A rank that
// cannot read or write says so at the end of a round, and all end.

#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/dataset.h"
#include "partitioner/balance/data_map.h"

namespace tessera::engine {

// Of all devices together.
struct MoveProgress {
  Index samples = 0;       // that the map moves
  Index there_before = 0;  // of them, from an earlier attempt
  Index bytes = 0;         // of the others
  Index bytes_moved = 0;
};

struct SampleMoveOptions {
  std::string map;               // what messages call the data map
  std::filesystem::path folder;  // on this device, for what arrives
  // After each round and before the first; rank 0 is told.
  std::function<void(const MoveProgress&)> progress = {};
};

// Moves what `data_map` says between the ranks' data sets, which have the same classes and are of
// one kind. AgreedError where a rank cannot read or store samples. All ranks call this together.
void move_samples(const partitioner::DataMap& data_map,
                  const SampleMoveOptions& options,
                  const Communicator& communicator,
                  Dataset& dataset);

}  // namespace tessera::engine
