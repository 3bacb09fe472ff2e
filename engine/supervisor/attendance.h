// Whether enough of a run's devices are there to go on with it, and what is said while they are
// not.

#pragma once

#include <string>
#include <vector>

#include "engine/supervisor/run_devices.h"

namespace tessera::engine {

class Attendance {
 public:
  // Both must outlive it.
  Attendance(const SupervisorRecord& record, const RunDevices& devices);

  // Where exactly half of the devices is there the witness is asked, at most every two seconds;
  // that may take three.
  [[nodiscard]] bool is_enough();

  // Whether all devices of the last step are there.
  [[nodiscard]] bool is_complete() const;

  // After is_enough() has said no: who is missing, why those that are there do not go on, and what
  // a person can do.
  [[nodiscard]] std::string what_is_missing() const;

 private:
  [[nodiscard]] std::vector<int> reached() const;  // places
  [[nodiscard]] std::string why_half_is_not_enough() const;

  const SupervisorRecord& record_;
  const RunDevices& devices_;
  std::string witness_;
  std::string why_not_;  // half is enough; empty: it is, or there is more or less than half
  double asked_s_ = 0;
};

}  // namespace tessera::engine
