// What has happened to a run since its ranks ran last, as their supervisor has noted it: events of
// the run, and what it cost. Rank 0's.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

class FaultsSince {
 public:
  // Reads the file, a JSON object a line with "unix_s", "text" and perhaps "kind"; empty: there is
  // none. `steps_before` are those that the run had finished by its records, `begun` those that it
  // goes on from.
  FaultsSince(const std::string& file, Index steps_before, Index begun);

  // Calls it for each, in their order, and removes the file.
  void tell(const std::function<void(const std::string& kind, const std::string& text)>& told);

  struct Recovery {
    double lost_s = 0;  // from the first fault to the first step since
    Index repeated_steps = 0;
  };
  // After a step: what going on took, once; nothing where nothing had happened.
  [[nodiscard]] std::optional<Recovery> recovered();

 private:
  struct Fault {
    double unix_s = 0;
    std::string kind;
    std::string text;
  };
  std::string file_;
  std::vector<Fault> faults_;
  Index repeated_;
  bool told_ = false;
};

// "training goes on after 4.1 s; 1 step is repeated"
[[nodiscard]] std::string described(const FaultsSince::Recovery& recovery);

// "lost_s", to a millisecond, and "repeated_steps".
[[nodiscard]] std::map<std::string, double> figures_of(const FaultsSince::Recovery& recovery);

}  // namespace tessera::engine
