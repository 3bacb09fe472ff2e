// A rank's end of what it and the agent that has started it tell each other. A rank that mpiexec
// has started has no agent, and all of this does nothing.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/supervisor/protocol.h"
#include "engine/supervisor/work_watch.h"

namespace tessera::engine {

// Whether an agent has started this process as a rank.
[[nodiscard]] bool has_agent();

// The folder in which the state of the last step is to be kept; empty: nowhere.
[[nodiscard]] std::string state_folder_of_agent();

// Whether this is no first start: the run folder is this run's own, and training goes on from what
// was kept, or from the folder's checkpoint.
[[nodiscard]] bool is_started_again();

// The file with the request that ranks train by, see training_request.h; empty: as it was typed.
[[nodiscard]] std::string request_file();

// A file of what has happened since ranks ran last, a JSON object a line; empty: there is none.
[[nodiscard]] std::string faults_file();

// The command that a person has given the supervisor; empty: there is none.
[[nodiscard]] std::vector<std::string> command_of_supervisor();

class AgentLine {
 public:
  // Tells the agent four times a second, from a thread of its own, that this rank is alive, and
  // asks the program to stop by kPauseSignal (see stop_request.h) when the agent wants a pause.
  // Also whether it works, or is stuck, see work_watch.h; `waits` is called by that thread.
  explicit AgentLine(std::function<WaitsOfRank()> waits = {});
  ~AgentLine();
  AgentLine(const AgentLine&) = delete;
  AgentLine& operator=(const AgentLine&) = delete;

  void tell(const of_rank::Message& message) const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace tessera::engine
