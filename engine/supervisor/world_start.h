// What the ranks of a world are told when they start: the words of their command, for the devices
// that take part, and the files that these name.

#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/supervisor/run_devices.h"
#include "engine/supervisor/spare_plans.h"
#include "engine/supervisor/world.h"

namespace tessera::engine {

// The rows of a profile of all hosts that belong to some of them: one for each rank.
[[nodiscard]] std::vector<int> profile_rows(const std::vector<Host>& hosts,
                                            const std::vector<int>& places);

// Partitions and profiles that the words name and that lie in this folder: names and contents.
[[nodiscard]] std::map<std::string, std::string> files_named_in(
    const std::vector<std::string>& words, const std::filesystem::path& folder);

class WorldStart {
 public:
  // All must outlive it.
  WorldStart(const SupervisorRequest& request, const SupervisorRecord& record, RunDevices& devices);

  // The device of each rank, were they started now.
  [[nodiscard]] std::vector<int> devices_of_ranks() const;
  // Starts the ranks of a world on its devices, and ends those on others. `again`: the run has
  // begun before.
  void start(const World& world, bool again);
  // Searches partitions for the loss of each device that may be lost, once the world has settled;
  // null: there is none now.
  void plan_ahead(const World* world);

 private:
  [[nodiscard]] std::vector<std::string> words_now(bool again) const;
  // Else what ranks keep there is of earlier steps, or of such that others have gone on without.
  [[nodiscard]] bool had_last_step(int device) const;
  [[nodiscard]] std::string cluster_of(const std::vector<int>& devices) const;

  const SupervisorRequest& request_;
  const SupervisorRecord& record_;
  RunDevices& devices_;
  std::filesystem::path folder_;  // for files that are made here
  SparePlans spare_plans_;
};

}  // namespace tessera::engine
