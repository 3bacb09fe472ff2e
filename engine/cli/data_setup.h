// Opening a data set on all ranks. What is wrong with it is found, and said, before anything is
// computed, and ranks that read for themselves find out whether they have the same pictures.

#pragma once

#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/dataset.h"
#include "partitioner/network.h"

namespace engine {

struct DataChoice {
  std::string path;
  std::string model;      // the model file, for messages
  bool training = false;  // which halves to open
  bool testing = false;
  bool skip_broken = false;  // go on without pictures that cannot be used; decodes all to find them
};

// Those that were asked for, on ranks that read.
struct OpenedData {
  std::optional<Dataset> training;
  std::optional<Dataset> testing;
};

// Throws AgreedError on all ranks where a data set cannot be used, does not fit the network, or is
// not the same on all ranks that read it. Rank 0 prints a line about it, and warnings. All ranks
// call this together; `reads` says whether this one is to open it.
[[nodiscard]] OpenedData open_data(const DataChoice& choice,
                                   const partitioner::Network& network,
                                   bool reads,
                                   const Communicator& communicator);

// The last step of the above, for pictures without labels: throws AgreedError on all ranks where
// those that read have other pictures than each other. `pictures`: those of this rank; nullptr
// where it has none. All ranks call this together.
void expect_same_everywhere(bool reads, const Dataset* pictures, const Communicator& communicator);

}  // namespace engine
