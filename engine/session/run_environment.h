// What a rank finds itself in when it trains: no part of what is asked of the run.

#pragma once

#include <filesystem>
#include <string>

namespace tessera::engine {

struct RunEnvironment {
  // A folder of this device, in memory, for the state of the last step, which training goes on from
  // where all of it is found on some devices; empty: none is kept.
  std::string state_folder = {};
  // The run folder is this run's own, which had begun in it: it goes on from the kept state, else
  // from the folder's checkpoint, else as it was asked to begin.
  bool started_again = false;
  std::string faults_file = {};  // rank 0's: what has happened since it ran last; empty: nothing
  std::filesystem::path machine_root = "/";  // that proc, sys and dev lie in, for the monitor

  // For the records of the run.
  std::string program_version = {};
  std::string command = {};  // that started it
};

}  // namespace tessera::engine
