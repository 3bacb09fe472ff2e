// Opening a data set on all ranks. What is wrong with it is found, and said, before anything is
// computed, and ranks that read for themselves find out whether they have the same pictures.

#pragma once

#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/dataset.h"
#include "engine/data/inspection/data_summary.h"
#include "engine/data/inspection/kept_findings.h"
#include "engine/session/data_needs.h"
#include "engine/session/session_observer.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// A rank's part of a data set that lies in parts on the ranks.
struct OwnPart {
  Index samples = 0;        // for training, which it must have
  Index samples_after = 0;  // when some have moved to other ranks and others to it
};

struct DataChoice {
  std::string path;
  std::string model;      // the model file, for messages
  bool training = false;  // which halves to open
  bool testing = false;
  bool skip_broken = false;  // go on without pictures that cannot be used; decodes all to find them
  bool allow_unlabelled = false;  // nothing is on pictures without a file of boxes
  // Ranks have different pictures; they are one data set, of which each reads its part. A rank
  // whose part is empty need not have a folder.
  std::optional<OwnPart> own = {};
  // Where earlier starts of the same run have left what they had read of the files, and this one
  // does (data/kept_findings); empty: nowhere.
  std::string kept_folder = {};
};

// Those that were asked for, on ranks that read.
struct OpenedData {
  std::optional<Dataset> training;
  std::optional<Dataset> testing;
};

// A data set whose pictures are listed: what it will take is known, what is in it is not yet.
class ListedData {
 public:
  // Lists it where `reads` says that this rank will read it. Throws AgreedError on all ranks where
  // it cannot be listed or does not fit the network. All ranks call this together; `network`,
  // `communicator` and `observer` must outlive it.
  ListedData(DataChoice choice,
             const partitioner::Network& network,
             bool reads,
             const Communicator& communicator,
             const SessionObserver& observer);

  // Whether this rank reads it.
  [[nodiscard]] bool reads() const { return reads_; }
  // What it holds in memory on this rank.
  [[nodiscard]] Index bytes() const;
  // How many pictures it has for training. All ranks call this together.
  [[nodiscard]] Index training_pictures() const;
  // Whether a picture may look different each time that it is trained on. All ranks call this
  // together.
  [[nodiscard]] bool varies(const RenderingRules& rules) const;
  // The most that it takes on any rank, by the headers of all pictures. All ranks call this
  // together.
  [[nodiscard]] DataNeeds needs(const RenderingRules& rules);
  // Throws AgreedError on all ranks where the data set cannot be used, or is not the same on all
  // ranks that read it, or its parts do not belong together. The observer hears a line about it,
  // and warnings, on rank 0. Decoding all pictures takes no more than `memory_bytes` of this rank,
  // as far as one picture at a time does not. All ranks call this together.
  [[nodiscard]] OpenedData open(Index memory_bytes) &&;

 private:
  void list(Split split, std::optional<InspectedHalf>& half) const;
  void list_parts();

  DataChoice choice_;
  const partitioner::Network* network_;
  bool reads_;
  const Communicator* communicator_;
  const SessionObserver* observer_;
  InspectedData data_;
  KeptFindings kept_;  // as earlier starts have left it
  Detail detail_;      // for which headers were asked
};

// What open() ends with, for pictures without labels: throws AgreedError on all ranks where
// those that read have other pictures than each other. `pictures`: those of this rank; nullptr
// where it has none. All ranks call this together.
void expect_same_everywhere(bool reads, const Dataset* pictures, const Communicator& communicator);

}  // namespace tessera::engine
