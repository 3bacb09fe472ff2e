// The devices of a run, from a supervisor's point of view: an agent is started on each, and looked
// for where it cannot be reached, has gone or has promised itself to another supervisor; the roster
// says which take part.

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/supervisor/agent_link.h"
#include "engine/supervisor/roster.h"
#include "engine/supervisor/supervisor.h"

namespace tessera::engine {

class RunDevices {
 public:
  // The request and the record must outlive it. This machine's device is the first one; InputError
  // where it is not among the hosts.
  RunDevices(const SupervisorRequest& request, const SupervisorRecord& record, double silence_s);

  [[nodiscard]] int size() const { return roster_.size(); }
  [[nodiscard]] AgentLink& link(int device) { return agents_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] const AgentLink& link(int device) const {
    return agents_[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] const std::string& name_of(int device) const { return link(device).host().name; }
  [[nodiscard]] std::deque<AgentLink>& agents() { return agents_; }
  [[nodiscard]] Roster& roster() { return roster_; }
  [[nodiscard]] const Roster& roster() const { return roster_; }
  // The place of a device among the hosts of the record.
  [[nodiscard]] int place_of(int device) const { return places_[static_cast<std::size_t>(device)]; }

  // Before any ranks: starts all agents and waits for them. Of a new run each has to answer,
  // InputError otherwise; one that goes on leaves out those that do not.
  void reach_all();
  // From here on agents are told that this supervisor leads the run, and what is wrong with one is
  // no reason to end.
  void ranks_start() { leads_ = true; }

  // Throws InputError.
  void start_agent(int device);
  // Sends what waits, gives signs of life, and waits a moment for messages.
  void wait();
  // Of an agent about itself; false where the message is about something else.
  [[nodiscard]] bool take(int device, const to_supervisor::Message& message);
  // Another supervisor has the run or has finished it: this one is to end.
  [[nodiscard]] bool are_led_by_another() const { return led_by_another_; }
  // Somebody has stopped the run that this supervisor was to take over: it is to end, too.
  [[nodiscard]] bool are_stopped() const { return stopped_; }
  // The run has finished, as its folder on a device says.
  [[nodiscard]] bool has_finished() const { return finished_; }

  // What has happened to a device that is not there any more, or does not answer.
  [[nodiscard]] std::optional<std::string> loss_of(int device);
  // Starts agents on devices that are out, where it is time to look for them; `soon`: every two
  // seconds.
  void look_for_missing(bool soon);
  // All that are reached take part from now on.
  void take_back_reached();
  // It takes no part until it was there for long enough.
  void leave_out(int device);

  void tell_all(const to_agent::Message& message);
  // Ends all agents; `remove`: and what their ranks have kept.
  void end(bool remove);
  // Takes in what agents say, and forgets it.
  void pass_over_messages();

 private:
  void wait_for_agents();
  void start_refused_agents();
  void leave_out_missing();
  void expect_same_program(int device, const to_supervisor::Hello& hello) const;
  void take_problem(int device, const std::string& what);
  void take_hello(int device, const to_supervisor::Hello& hello);
  void take_finished(int device);
  void take_refusal(int device);
  void say(const std::string& text) const;

  const SupervisorRequest& request_;
  const SupervisorRecord& record_;
  double silence_s_;
  std::deque<AgentLink> agents_;
  std::vector<int> places_;
  Roster roster_;
  std::map<int, double> refused_;  // devices that another supervisor has, and when they said so
  bool leads_ = false;
  bool led_by_another_ = false;
  bool finished_ = false;
  bool stopped_ = false;
  double beat_s_ = 0;
};

}  // namespace tessera::engine
