// A run under a supervisor, from reaching its devices to its end: what they say, what is done about
// it, and in which order.

#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "engine/supervisor/device_presence.h"
#include "engine/supervisor/fault_judge.h"
#include "engine/supervisor/hang_watch.h"
#include "engine/supervisor/protocol.h"
#include "engine/supervisor/run_copy.h"
#include "engine/supervisor/run_devices.h"
#include "engine/supervisor/run_notes.h"
#include "engine/supervisor/supervisor.h"
#include "engine/supervisor/world.h"
#include "engine/supervisor/world_start.h"
#include "engine/system/clock.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

class SupervisedRun {
 public:
  // The request must outlive it.
  explicit SupervisedRun(const SupervisorRequest& request);
  // Returns the exit code, see run_supervised().
  int run();

 private:
  int go_on_to_the_end();
  void take_messages();
  void take(int device, const to_supervisor::Message& message);
  void take_of_rank(int device, const PmiLine& message);
  void take_of_rank(int device, const to_supervisor::Status& message);
  void take_of_rank(int device, const to_supervisor::Late& message);
  void take_of_rank(int device, const to_supervisor::Exit& exit);
  void take_step(Index step, Index last);
  void note_devices_of_step();
  void look_at_leadership();
  void look_at_signals();
  void look_at_agents();
  void look_at_world();
  void look_for_hanging_ranks();
  void look_at_disk();
  void take_devices_back();
  void start_world();
  void wait_for_devices();
  void look_at_presence();
  [[nodiscard]] bool is_left_in_order(int device);
  void fault(FaultKind kind, int device, const std::string& what);
  void end_stopped();
  [[nodiscard]] int exit_code_of_fault(FaultKind kind) const;
  void stop_unsaved();
  void note_fault(const std::string& what, int device) const;
  void write_record() const;
  void note_stop();
  void look_at_copy();
  void finish_copy();
  void keep_aside();
  // Whether the run's record is in its folder here; a disk that has gone is no error.
  [[nodiscard]] bool has_folder() const {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::path(record_.run_folder) / kRecordName, error);
  }
  [[nodiscard]] bool may_start() { return devices_.link(0).is_ready() && now_s() >= start_from_s_; }
  // Whether the run has begun before the ranks that there are.
  [[nodiscard]] bool goes_on() const { return worlds_ > 1 || request_.goes_on; }
  [[nodiscard]] std::string going_on() const;
  void say(const std::string& text) const { request_.say(printable(text)); }
  [[nodiscard]] const std::string& name_of(int device) const { return devices_.name_of(device); }

  const SupervisorRequest& request_;
  double silence_s_;
  SupervisorRecord record_;
  RunDevices devices_;
  DevicePresence presence_;
  WorldStart world_start_;
  FaultJudge faults_;
  HangWatch hang_watch_;
  RunCopy copy_;
  RunNotes notes_;
  std::optional<World> world_;
  Index worlds_ = 0;
  int signal_ = 0;
  double start_from_s_ = 0;                // ranks do not start before
  std::optional<double> pausing_since_s_;  // ranks were asked to pause
  bool saved_ = true;                      // what was learnt, where ranks could
  bool recorded_ = false;
  bool met_full_disk_ = false;        // ranks of this world have
  std::optional<double> full_since_;  // ranks wait for room on the disk
  bool went_on_with_part_ = false;    // another part of the last step's devices may have, too
  bool waits_ = false;                // for devices, of which too few are there
  std::string waits_for_;             // as it was said
  std::optional<double> enough_since_s_;
  std::set<int> ending_;  // devices that have been told to shut down
  std::optional<int> exit_code_;
};

}  // namespace tessera::engine
