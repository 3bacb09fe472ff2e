// The state of the last finished step, kept in memory-backed files outside the ranks' processes, so
// that a run goes on from it after any of them has ended, by whatever plan it has then.
//
// Each rank keeps what it owns: its slices of parameters and of the optimizer's state, and what it
// alone goes on from (RankState). The same lies at one more rank, on another device where there is
// one: what that does not hold itself is sent to it at the end of each step. So any one device may
// be lost, and several that are not neighbours; what has no copy left is in the last checkpoint.
//
// Replicas with parameters of their own are not kept: their common model would have to be made in
// every step.

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/recovery/slot_file.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

// What is known beside the arrays.
struct StepLoss {
  Index step = 0;
  double loss = 0;
  double learning_rate = 0;
};

struct KeptStep {
  Index step = 0;
  Index images_seen = 0;
  // Of the latest steps, this one last: what was written of them may have been lost with its disk.
  std::vector<StepLoss> latest = {};
  bool rank_states = false;  // those of this very plan were found, too
};

class KeptState {
 public:
  // Whether the state of such a trainer is kept.
  [[nodiscard]] static bool is_kept(const Trainer& trainer);

  // Files go into the folder, which each device has for itself. All ranks call this together, as
  // they call all else here; AgreedError where a device has no room.
  KeptState(std::filesystem::path folder,
            const partitioner::Network& network,
            const partitioner::Plan& plan,
            Trainer& trainer,
            const Communicator& communicator);
  ~KeptState();
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

  // Between two steps. Waits for values that are under way.
  void keep(const StepLoss& step, Index images_seen);

  // Training has ended well: nothing has to be kept any more.
  void discard();

  [[nodiscard]] Index file_bytes() const { return file_ ? file_->bytes() : 0; }
  // That this rank sends in each step.
  [[nodiscard]] Index sent_bytes() const;

 private:
  class Layout;
  void remove_older();

  std::filesystem::path folder_;
  Trainer* trainer_;
  const Communicator* communicator_;
  std::unique_ptr<Layout> layout_;
  std::filesystem::path path_;
  std::optional<SlotFile> file_;
  std::vector<StepLoss> latest_;
  int kept_ = 0;  // how often
};

// Gives the trainer the newest state of which every part lies on some device; nothing where there
// is none, and the trainer is as it was. The step is the trainer's afterwards. All ranks call this
// together, AgreedError.
[[nodiscard]] std::optional<KeptStep> restore_kept_state(const std::filesystem::path& folder,
                                                         const partitioner::Network& network,
                                                         const partitioner::Plan& plan,
                                                         Trainer& trainer,
                                                         const Communicator& communicator);

}  // namespace tessera::engine
