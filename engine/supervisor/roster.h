// Which devices take part in a run, as faults and returns change it: decisions alone, without the
// devices. Times are seconds of one steady clock.

#pragma once

#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

class Roster {
 public:
  explicit Roster(int devices) : devices_(static_cast<std::size_t>(devices)) {}

  [[nodiscard]] int size() const { return static_cast<int>(devices_.size()); }
  [[nodiscard]] bool takes_part(int device) const { return at(device).takes_part; }
  // In rising order.
  [[nodiscard]] std::vector<int> taking_part() const;

  // The device is out; the more often that has happened, the longer it stays so.
  void lose(int device, double now_s);
  // A device that is out can be reached again, and has been since `now_s`.
  void reach(int device, double now_s);
  void take_back(int device);

  // Whether it is time to look for a device that is out; `soon`: some time after the last look,
  // however often it was in vain.
  [[nodiscard]] bool is_to_be_tried(int device, double now_s, bool soon = false) const;
  // It was looked for, and is not there.
  void missed(int device, double now_s);

  // What is left to be done, and what a change of devices costs.
  struct Prospect {
    double step_s = 0;  // with the devices that take part; 0: not known yet
    Index steps_left = 0;
    double change_s = 0;  // of standing still
  };
  // Devices that have been reachable for long enough, and with which what is left would take less
  // by more than twice what the change takes, if all were equally fast. Empty where none is.
  [[nodiscard]] std::vector<int> worth_taking_back(const Prospect& prospect, double now_s) const;

 private:
  struct Device {
    bool takes_part = true;
    bool reachable = false;
    int losses = 0;
    double reachable_s = 0;  // since then
    double next_try_s = 0;
    double pause_s = 0;  // between two tries
  };
  [[nodiscard]] const Device& at(int device) const {
    return devices_[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] Device& at(int device) { return devices_[static_cast<std::size_t>(device)]; }

  std::vector<Device> devices_;
};

}  // namespace tessera::engine
