// Partitions for the devices that would be left if one of them were lost, found while all are there
// by a process that takes processor time which nothing else wants. A search takes longer than the
// start of a program.

#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/processes/child_process.h"
#include "engine/session/training_request.h"

namespace tessera::engine {

class SparePlans {
 public:
  // `program` is this one; `folder` is for the files.
  SparePlans(std::string program, std::filesystem::path folder)
      : program_(std::move(program)), folder_(std::move(folder)) {}

  // Asks for one, unless that was done: of this set of devices, for that training on them;
  // `device_names`: [rank]. The process calls spare_partition().
  void want(const std::vector<int>& devices,
            const TrainingRequest& request,
            const std::vector<std::string>& device_names);

  // Starts the next search when the last one is over.
  void look();

  // The file with the partition for these devices; empty where none has been found.
  [[nodiscard]] std::string found(const std::vector<int>& devices) const;

 private:
  struct Wanted {
    std::vector<int> devices;
    TrainingRequest request;
    std::vector<std::string> device_names;
  };
  [[nodiscard]] std::filesystem::path file_of(const std::vector<int>& devices) const;

  std::string program_;
  std::filesystem::path folder_;
  std::deque<Wanted> queue_;
  std::optional<Wanted> under_way_;
  std::optional<ChildProcess> search_;
  std::map<std::vector<int>, bool> known_;  // whether it was found
};

}  // namespace tessera::engine
