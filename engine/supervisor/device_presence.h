// Whether enough of a run's devices are there to go on with it, and what is said while they are
// not.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/supervisor/run_devices.h"

namespace tessera::engine {

class DevicePresence {
 public:
  // Record and devices must outlive it.
  DevicePresence(const SupervisorRequest& request,
                 const SupervisorRecord& record,
                 const RunDevices& devices);

  // Where exactly half of the devices is there the witness is asked, at most every two seconds;
  // that may take three.
  [[nodiscard]] bool is_enough();

  // Whether no more than half of the devices of the last step are there, or a person has said that
  // whatever is there is enough: the others may go on, too.
  [[nodiscard]] bool is_a_part() const;
  // Whether all devices of the last step are there.
  [[nodiscard]] bool is_complete() const { return missing().empty(); }

  // The first step of these devices is finished: from here on they are those of the last step.
  void finish_step() { any_ = false; }

  // After is_enough() has said no: who is missing, why those that are there do not go on, and what
  // a person can do.
  [[nodiscard]] std::string what_is_missing() const;

 private:
  [[nodiscard]] std::vector<int> reached() const;          // places
  [[nodiscard]] std::vector<std::string> missing() const;  // of those of the last step
  [[nodiscard]] std::string why_half_is_not_enough() const;

  const SupervisorRecord& record_;
  const RunDevices& devices_;
  bool any_;  // devices will do, until they have finished a step
  std::string witness_;
  std::string why_not_;  // half is enough; empty: it is, or there is more or less than half
  std::optional<double> asked_s_;  // when the witness was, since there is exactly half
};

}  // namespace tessera::engine
