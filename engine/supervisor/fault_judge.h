// What follows a fault of a run: who is left out, and when the run is given up. Decisions alone,
// without the devices; times are seconds of one steady clock.

#pragma once

#include <optional>

namespace tessera::engine {

enum class FaultKind {
  Ended,    // a rank was killed, waited in vain, or shows no sign of life
  Crashed,  // a rank has ended without need, by its own doing
  Limited,  // likewise, where a limit of its device may be why
  Memory,   // a rank was killed since memory ran out
  Hangs,    // a rank gives signs of life, and none of work
  Unheard,  // the device is not reached by another one
  Lost      // the device is not reached by the supervisor
};

class FaultJudge {
 public:
  enum class Verdict {
    StartAgent,   // the supervisor's own device has no agent any more: once it has, ranks start
    SameDevices,  // ranks start again on the devices that there are
    LeaveOut,     // and without this device
    GiveUp
  };

  // `has_stepped`: the run has finished a step before.
  explicit FaultJudge(bool has_stepped = false) : has_stepped_(has_stepped) {}

  // A fault of a device, `here`: the supervisor's own, which cannot be left out. `moved_s` is when
  // the run came on last before it.
  [[nodiscard]] Verdict judge(FaultKind kind, bool here, double moved_s);

  // The run stands still for a reason that is no device's fault.
  void stand_still(double moved_s) { begun_s_ = begun_s_.value_or(moved_s); }

  // A step is finished. Returns how long it took since the one before where there were faults
  // between.
  std::optional<double> finish_step(double now_s);

  // Until then a crash that repeats is the program's or its words', and no device's.
  [[nodiscard]] bool has_stepped() const { return has_stepped_; }
  // Faults without a finished step between them, and without a change of devices.
  [[nodiscard]] int in_a_row() const { return in_a_row_; }
  // How long to wait before ranks start again: not at all after the first faults in a row, then
  // longer each time, for whatever ends them to pass.
  [[nodiscard]] double pause_s() const;
  // How long the run stood still when it did last.
  [[nodiscard]] double change_s() const { return change_s_; }

 private:
  bool has_stepped_;
  int in_a_row_ = 0;
  int crashes_ = 0;  // before the first step
  std::optional<double> begun_s_;
  double change_s_ = 5;
};

}  // namespace tessera::engine
