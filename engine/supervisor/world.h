// The ranks of one start of the program: who they are, how far they are, how each has ended.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/processes/child_process.h"
#include "engine/supervisor/pmi_server.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class World {
 public:
  // `devices` has the device of each rank; those of one device follow each other.
  World(Index number, std::vector<int> devices, double now_s);

  [[nodiscard]] Index number() const { return number_; }
  [[nodiscard]] int size() const { return static_cast<int>(devices_.size()); }
  [[nodiscard]] int device_of(int rank) const { return devices_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool has_rank(Index rank) const { return rank >= 0 && rank < size(); }
  [[nodiscard]] PmiServer& pmi() { return pmi_; }

  // A rank has said something.
  void hear(int rank) { heard_[static_cast<std::size_t>(rank)] = true; }
  void finish_step(Index step, Index last, double now_s);
  void finish_rank(int rank, const ProcessEnd& end);
  // What the rank has learnt is on the disk.
  void save(int rank) { saved_[static_cast<std::size_t>(rank)] = true; }
  [[nodiscard]] bool has_saved(int rank) const { return saved_[static_cast<std::size_t>(rank)]; }
  // Whether no rank of this device is left.
  [[nodiscard]] bool has_ended_on(int device) const;

  // The first rank that has said nothing at all, not even how others can reach it: nothing where
  // all have.
  [[nodiscard]] std::optional<int> first_silent() const;
  // 0: none is finished yet.
  [[nodiscard]] Index step() const { return step_; }
  [[nodiscard]] Index last_step() const { return last_; }
  [[nodiscard]] Index steps_done() const { return steps_done_; }  // by this world
  [[nodiscard]] double step_s() const;  // median of the latest; 0: unknown
  // When it was started, or finished a step last.
  [[nodiscard]] double moved_s() const { return moved_s_; }
  [[nodiscard]] double started_s() const { return started_s_; }

  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] int ended() const;
  // How the first rank ended that did not end well: killed, or by an exit code other than 0.
  [[nodiscard]] const std::optional<ProcessEnd>& first_failure() const { return failure_; }
  [[nodiscard]] const std::vector<std::optional<ProcessEnd>>& ends() const { return ends_; }

 private:
  Index number_;
  std::vector<int> devices_;
  PmiServer pmi_;
  std::vector<bool> heard_;  // of ranks
  std::vector<bool> saved_;
  std::vector<std::optional<ProcessEnd>> ends_;
  std::optional<ProcessEnd> failure_;
  std::vector<double> latest_s_;  // of steps
  Index step_ = 0;
  Index last_ = 0;
  Index steps_done_ = 0;
  double started_s_;
  double moved_s_;
};

// Whether ranks that end so have done so on purpose: what they met would meet them again.
[[nodiscard]] bool is_deliberate(const ProcessEnd& end);
// Whether a rank has ended since it was told to, by SIGHUP, SIGINT or SIGTERM.
[[nodiscard]] bool is_stopped(const ProcessEnd& end);

// Whether a rank has ended otherwise by its own doing: nobody has killed it.
[[nodiscard]] bool is_crash(const ProcessEnd& end);

// As a shell reports it.
[[nodiscard]] int exit_code_of(const ProcessEnd& end);

}  // namespace tessera::engine
