// What a later supervisor has to know of a run, in the run folder and, on each device, beside the
// state that its ranks keep.

#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/processes/host_list.h"
#include "engine/session/training_request.h"
#include "engine/supervisor/leadership.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

inline constexpr const char* kRecordName = "supervisor.json";

struct SupervisorRecord {
  std::string run_number;
  std::vector<std::string> words;  // "train" or "choose" and what follows, as it was typed
  TrainingRequest request;         // what that asks for; without a model in old files
  std::vector<std::string> typed;  // the whole command that began the run, to be shown
  std::vector<Host> hosts;         // the first is the device of the supervisor
  std::string folder;              // that the run was started in, absolute
  std::string run_folder;          // absolute
  std::string remote_shell;
  Index generation = 0;        // how often a supervisor has taken over or gone on
  Index copies = 0;            // how often a device was chosen to have a copy of the run folder
  std::string supervisor;      // number of the one that has written it; empty: none has
  std::vector<int> last_step;  // places of the devices that the last finished step had
  std::string witness;         // that a half of them asks; empty: the gateway of the default route
  std::string interface;       // by which the writing device reaches the others; empty: unknown
  std::string leader;          // device of that supervisor
  bool stopped = false;        // by a signal: nobody takes it over
};

// As such a file has it.
[[nodiscard]] std::string text_of(const SupervisorRecord& record);
// For the JSON library, which throws what is missing or of another type as its own exceptions.
// Throws InputError, without a name of a file, where it is damaged otherwise.
void to_json(nlohmann::json& object, const SupervisorRecord& record);
void from_json(const nlohmann::json& object, SupervisorRecord& record);

// Throws InputError where the file is missing or damaged, and where it belongs to another user or
// may be written by every user: what it names is run.
[[nodiscard]] SupervisorRecord read_supervisor_record(const std::filesystem::path& file);

// Of a supervisor that has written such a record; 0 and no number where read_supervisor_record()
// would throw.
[[nodiscard]] SupervisorId supervisor_of(const std::filesystem::path& file);

}  // namespace tessera::engine
