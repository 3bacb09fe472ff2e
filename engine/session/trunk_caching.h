// Whether a training run keeps the maps of its frozen trunk (train/trunk_cache.h), and where:
// chosen with the plan, so that its memory is counted.
//
// All ranks call everything here together, but for what only looks; errors are AgreedErrors.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/session/picture_caching.h"
#include "engine/session/training_request.h"
#include "engine/session/trunk_figures.h"
#include "engine/train/trunk_cache.h"

namespace tessera::engine {

class TrunkCaching {
 public:
  struct Choice {
    PictureCacheRequest request;
    Index variants = 0;         // of a picture to train on; 0: another one in each epoch
    Index training_images = 0;  // different ones that are shown
    Index testing_images = 0;   // likewise
    std::optional<std::string> obstacle = {};  // why not, beside what the plan says
    std::optional<TrunkSteps> steps = {};      // where they can be predicted
    MemoryLeft left;
  };

  // Of a plan of that network, with which training begins. Says that a cache that was asked for is
  // not used.
  TrunkCaching(Choice choice,
               const partitioner::Network& network,
               const partitioner::Plan& plan,
               const Communicator& communicator,
               const SessionObserver& observer);

  [[nodiscard]] bool is_on() const { return is_on_; }
  // What a rank takes of memory for it at most, the same on all ranks.
  [[nodiscard]] Index planned_bytes() const { return planned_bytes_; }
  // What happens to the maps, or what would, for people; empty where no layers are frozen.
  [[nodiscard]] std::string described() const { return described_; }

  // For a phase by that plan; nothing where it is off, or that plan cannot have it. `identity`: of
  // all that the maps depend on beside plan and parameters.
  [[nodiscard]] std::optional<TrunkCacheOptions> options(
      const partitioner::Network& network,
      const partitioner::Plan& plan,
      const std::string& identity,
      const std::function<void(const std::string&)>& warn) const;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const partitioner::Network& network,
                                                   const partitioner::Plan& plan) const;
  // `of_machine`: of all ranks there.
  [[nodiscard]] bool fits_in_memory(Index own, Index of_machine) const;
  [[nodiscard]] std::optional<std::string> lack_of_space(Index of_machine) const;

  Choice choice_;
  const Communicator& communicator_;
  bool is_on_ = false;
  Index planned_bytes_ = 0;
  std::string described_;
};

}  // namespace tessera::engine
