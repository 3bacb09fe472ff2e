// Moves samples between devices, as a data map says: each device sends what the map takes from it,
// straight to who gets it, keeps its own files as they are, and has less of them in its data set
// from then on; what arrives lies in a folder of the receiver and is in its data set.
//
// It may be killed at any time and started again: what has arrived, by the checksums of both ends,
// does not travel again, and only when all of it is there do the data sets change. So each sample
// is in the data set of exactly one device, always.
//
// Samples travel in rounds. While a round is on the wire, the next is read and the last is written.
// A rank that cannot read or write says so after a round, and all end.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/dataset.h"
#include "engine/moving/shipment.h"
#include "partitioner/balance/data_map.h"

namespace tessera::engine {

struct MoveProgress : ShipmentSize {
  Index bytes_moved = 0;  // of all devices together
};

struct SampleMoveOptions {
  std::string map;               // what messages call the data map
  std::filesystem::path folder;  // on this device, for what arrives
  // Samples are to move while this rank does other things: in smaller rounds.
  bool in_background = false;
};

class SampleMove {
 public:
  // What a move in the background takes, about: a round that is read, one that is sent, one that is
  // received and one that is written.
  static constexpr Index kBackgroundRoundBytes = Index{1} << 21U;
  static constexpr Index kBackgroundBytes = 4 * kBackgroundRoundBytes;

  // Ranks' data sets have the same classes and are of one kind. Throws AgreedError where a rank
  // lacks what the map says. All ranks call this together; communicator and data set must outlive
  // it.
  SampleMove(const partitioner::DataMap& data_map,
             const SampleMoveOptions& options,
             const Communicator& communicator,
             const Dataset& dataset);
  // Where it is not over, it stops after some rounds, the same on all ranks.
  ~SampleMove();
  SampleMove(const SampleMove&) = delete;
  SampleMove& operator=(const SampleMove&) = delete;

  // Up to the last look.
  [[nodiscard]] const MoveProgress& progress() const;

  // For a move in the background, between other things: looks whether it is over on all ranks, and
  // lets it go on for some rounds. Throws AgreedError where a rank cannot read or store samples.
  // All ranks call this together, and of one that is over no more.
  [[nodiscard]] bool look();

  // Moves what is left; also of a move in the background. `report` is called before and after each
  // round or so. Throws and is called as look().
  void finish(const std::function<void(const MoveProgress&)>& report = {});

  // What it took at most, of one that is over.
  [[nodiscard]] Index bytes() const;

  // Once it is over: adds what has arrived to the data set. What was sent is to be taken out of it
  // (move_lists.h).
  void add_arrivals(Dataset& dataset) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::engine
