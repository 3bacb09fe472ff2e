// What the ranks of a world are told when they start: what they train, on the devices that take
// part. The files that are made for that, the profile and the partition of these devices, are read
// by rank 0, which is on this device.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/supervisor/run_devices.h"
#include "engine/supervisor/spare_plans.h"
#include "engine/supervisor/world.h"

namespace tessera::engine {

// The rows of a profile of all hosts that belong to some of them: one for each rank.
[[nodiscard]] std::vector<int> profile_rows(const std::vector<Host>& hosts,
                                            const std::vector<int>& places);

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
  [[nodiscard]] TrainingRequest request_now() const;
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
