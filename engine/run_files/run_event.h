// events.jsonl: a line for each thing that has happened to a run.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/run_files/unknown.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// Kinds: start, resume, choose, checkpoint, best, epoch, warning, signal, finish, failure, fault,
// return, recovery; others may follow.
struct RunEvent {
  double t_s = kUnknown;
  Index step = 0;
  int rank = -1;  // -1: of all
  std::string kind = {};
  std::string text = {};
  std::string device = {};  // of a fault
  // Of a recovery: until training went on, and what was done again.
  double lost_s = kUnknown;
  std::optional<Index> repeated_steps = {};
};

// Results of training, which steps that are taken once more have again.
[[nodiscard]] inline bool is_checkpoint(const RunEvent& event) {
  return event.kind == "checkpoint";
}
[[nodiscard]] inline bool is_test(const RunEvent& event) {
  return event.kind == "best" || event.kind == "epoch";
}

// Without its end.
[[nodiscard]] std::string line_of(const RunEvent& event);

// Nothing where it is no line of such a file.
[[nodiscard]] std::optional<RunEvent> run_event(const nlohmann::ordered_json& line);

}  // namespace tessera::engine
