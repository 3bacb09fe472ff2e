// What has happened to a run since its ranks ran last, as their supervisor has noted it: events of
// the run, and what it cost. Rank 0's.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_log/event_log.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class FaultsSince {
 public:
  // Reads the file, a JSON object a line with "unix_s", "text" and perhaps "kind" and "device";
  // empty: there is none. `steps_before` are those that the run had finished by its records,
  // `begun` those that it goes on from.
  FaultsSince(const std::string& file, Index steps_before, Index begun);

  using Tell = std::function<void(
      const std::string& kind, const std::string& text, const EventDetails& details)>;

  // Calls it for each that was not told before, in their order. Ranks that end before their first
  // step leave a note for those that follow of what was told, and of steps that are to be repeated.
  void tell(const Tell& told);

  // How long ago the last step before all of it was, or how long it was when somebody told the run
  // to stop meanwhile; nothing where nothing has happened, or where the system's clock was set.
  [[nodiscard]] std::optional<double> stood_s() const;

  // After a step that took so long: what going on took, once; nothing where nothing had happened.
  // Removes what was noted.
  [[nodiscard]] std::optional<FaultCost> recovered(double step_s);

 private:
  struct Fault {
    double unix_s = 0;
    std::string kind;
    std::string text;
    std::string device;
  };
  void read(const std::string& file, std::vector<Fault>& faults);
  [[nodiscard]] std::string noted() const { return file_ + ".told"; }

  std::string file_;
  std::vector<Fault> told_;  // by ranks before
  std::vector<Fault> faults_;
  Index repeated_ = 0;
  bool over_ = false;
};

// "training goes on after 4.1 s; 1 step is repeated"
[[nodiscard]] std::string described(const FaultCost& cost);

}  // namespace tessera::engine
