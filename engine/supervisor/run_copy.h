// The copy of the run folder that a supervisor keeps on another device, from which a run goes on
// where the supervisor's own is gone. Devices that see the very same folder need none.

#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "engine/supervisor/agent_link.h"
#include "engine/supervisor/folder_mirror.h"
#include "engine/supervisor/roster.h"

namespace tessera::engine {

class RunCopy {
 public:
  explicit RunCopy(std::filesystem::path run_folder)
      : folder_(std::move(run_folder)), source_(folder_) {}

  // Sends what the copy lacks, as far as it can be sent now; now and then looks for more. The
  // folder has to be there. `agents` are those of the roster's devices, this machine's first.
  void keep(std::deque<AgentLink>& agents, const Roster& roster);

  // Whether a device sees the folder: an answer to what keep() has asked it.
  void take_look(int device, const to_supervisor::Look& look);

  // Once after each change of the device that has it: at first, and when all of it is there.
  [[nodiscard]] bool begins() { return std::exchange(begins_, false); }
  [[nodiscard]] bool is_whole_now() { return std::exchange(whole_now_, false); }

  // Before the end: sends what is left, without a pause. Returns whether nothing is.
  [[nodiscard]] bool finish(std::deque<AgentLink>& agents, const Roster& roster);

 private:
  void choose_device(std::deque<AgentLink>& agents, const Roster& roster);
  [[nodiscard]] static AgentLink& link(std::deque<AgentLink>& agents, int device) {
    return agents[static_cast<std::size_t>(device)];
  }

  std::filesystem::path folder_;
  MirrorSource source_;
  int device_ = -1;      // that has it
  int asked_ = -1;       // whether it sees the folder itself
  std::string token_;    // that it is to look for
  bool shared_ = false;  // it does
  bool begins_ = false;
  bool fills_ = false;  // device_ has not all of it yet
  bool whole_now_ = false;
  double next_s_ = 0;  // when there may be more to send
};

}  // namespace tessera::engine
