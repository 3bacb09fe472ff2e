// The state of the last finished step, kept in memory-backed files outside the ranks' processes, so
// that a run goes on from it after any of them has ended, by whatever plan it has then. What is
// written when, and why any device may be lost, is in the README of this folder.
//
// Each rank keeps what it owns: its slices of parameters and of the optimizer's state, and what it
// alone goes on from (residuals of compression, averages of replicas). Another device, where there
// is one, has a second copy of it. Replicas that may run ahead of each other have no step in common
// and are not kept.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/recovery/kept_text.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

class KeptState {
 public:
  // Whether the state of training by a plan is kept.
  [[nodiscard]] static bool is_kept(const partitioner::Plan& plan) {
    return !plan.replicas.run_ahead();
  }

  // Files go into the folder, which each device has for itself. All must outlive it. All ranks call
  // this together, as they call all else here; AgreedError where a device has no room.
  KeptState(std::filesystem::path folder,
            const partitioner::Network& network,
            const partitioner::Plan& plan,
            Trainer& trainer,
            const Communicator& communicator);
  // Waits for what is on its way, unless an error ends the program.
  ~KeptState();
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

  // After a step, before anything else changes what was learnt. What a rank owns is kept then;
  // second copies travel while the next step computes, until its last forward pass is done.
  void keep(const StepLoss& step, Index images_seen);

  // Waits for the second copies: where no step follows, or not soon.
  void settle();

  // Training has ended well: nothing has to be kept any more.
  void discard();

  // All that this takes of memory; of this, the files of this rank; and what it sends in each step.
  [[nodiscard]] Index memory_bytes() const { return file_bytes() + sent_bytes(); }
  [[nodiscard]] Index file_bytes() const;
  [[nodiscard]] Index sent_bytes() const;

 private:
  class Files;
  std::unique_ptr<Files> files_;
};

// What is known beside the arrays.
struct KeptStep {
  Index step = 0;
  Index images_seen = 0;
  // Of the latest steps, this one last: what was written of them may have been lost with its disk.
  std::vector<StepLoss> latest = {};
  bool rank_states = false;  // those of this very plan were found, too
};

// The newest step of whose state every part lies on some device; nothing where there is none. Which
// parts there are may change in a run: `plan_in(step)` is the plan of a step. All ranks call this
// together.
[[nodiscard]] std::optional<Index> newest_kept_step(
    const std::filesystem::path& folder,
    const partitioner::Network& network,
    const std::function<partitioner::Plan(Index step)>& plan_in,
    const partitioner::TrainedArrays& trained,
    const Communicator& communicator);

// Gives the trainer the newest state of which every part lies on some device, or that of a step;
// nothing where there is none, and the trainer is as it was. The step is the trainer's afterwards.
// All ranks call this together, AgreedError.
[[nodiscard]] std::optional<KeptStep> restore_kept_state(
    const std::filesystem::path& folder,
    const partitioner::Network& network,
    const partitioner::Plan& plan,
    Trainer& trainer,
    const Communicator& communicator,
    const std::optional<Index>& step = std::nullopt);

}  // namespace tessera::engine
