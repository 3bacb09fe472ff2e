#include "engine/supervisor/run_devices.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

#include "engine/supervisor/supervision.h"
#include "engine/system/clock.h"
#include "engine/system/limits.h"
#include "engine/system/stop_request.h"
#include "engine/system/test_point.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every unistd.h

namespace tessera::engine {

namespace {

// Those of one machine listen on its loopback alone, unless somebody has said otherwise.
std::map<std::string, std::string> environment_for_ranks(bool of_one_machine) {
  std::map<std::string, std::string> variables;
  if (of_one_machine) {
    variables["UCX_NET_DEVICES"] = "lo";
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    if (travels(name) && name.size() < text.size()) {
      variables[name] = text.substr(name.size() + 1);
    }
  }
  return variables;
}

}  // namespace

RunDevices::RunDevices(const SupervisorRequest& request,
                       const SupervisorRecord& record,
                       double silence_s)
    : request_(request),
      record_(record),
      silence_s_(silence_s),
      roster_(static_cast<int>(record.hosts.size())) {
  const int here = place_of_this_machine(record.hosts);
  if (here < 0) {
    throw InputError(
        "this machine is not in the host file: start the run on one of its devices, or add it");
  }
  places_.push_back(here);
  for (int place = 0; place < size(); ++place) {
    if (place != here) {
      places_.push_back(place);
    }
  }
  for (const int place : places_) {
    agents_.emplace_back(record.hosts[static_cast<std::size_t>(place)], place == here);
  }
}

void RunDevices::say(const std::string& text) const {
  request_.say(printable(text));
}

void RunDevices::start_agent(int device) {
  // What ssh says of a device that is away is said once.
  link(device).start(request_.agents,
                     leads_,
                     {.run = record_.run_number,
                      .host = name_of(device),
                      .ranks = link(device).host().ranks,
                      .limit_ms = static_cast<Index>(silence_s_ * 1000),
                      .folder = record_.folder,
                      .environment = environment_for_ranks(size() == 1),
                      .place = device,
                      .takes_over = request_.takes_over,
                      .leads = leads_,
                      .record = record_});
}

void RunDevices::reach_all() {
  for (int device = 0; device < size(); ++device) {
    start_agent(device);
  }
  test_point("devices_are_reached");
  wait_for_agents();
  if (finished_) {
    return;
  }
  if (!led_by_another_ && !refused_.empty()) {
    say(fmt::format("a supervisor of this run is heard on {}: it has the run, and this one ends",
                    name_of(refused_.begin()->first)));
    led_by_another_ = true;
  }
  if (!led_by_another_) {
    leave_out_missing();
  }
}

// Those that have promised themselves to another supervisor are asked again: it may be gone, and
// its agents not know yet, or about to find that it is refused itself. An agent that was ready is
// ended by that of another one.
void RunDevices::start_refused_agents() {
  constexpr double kBetween_s = 1;
  for (int device = 0; device < size(); ++device) {
    if (request_.goes_on && link(device).is_ready() && link(device).is_over()) {
      link(device).drop();
      refused_[device] = now_s();
    }
    const auto refused = refused_.find(device);
    if (refused != refused_.end() && link(device).state() == AgentLink::State::Absent &&
        now_s() - refused->second > kBetween_s) {
      start_agent(device);
    }
  }
}

void RunDevices::wait_for_agents() {
  constexpr double kLongest_s = 30;
  const double begun_s = now_s();
  // Until one that is gone is not heard any more.
  const auto asks_again = [this, end_s = begun_s + (kHeardLately + 1) * silence_s_] {
    return !refused_.empty() && now_s() < end_s;
  };
  const auto any = [this](AgentLink::State state) {
    return std::any_of(agents_.begin(), agents_.end(), [state](const AgentLink& agent) {
      return agent.state() == state;
    });
  };
  while ((any(AgentLink::State::Absent) || any(AgentLink::State::Starting)) && !led_by_another_ &&
         !finished_ && (now_s() < begun_s + kLongest_s || asks_again())) {
    wait();
    for (int device = 0; device < size(); ++device) {
      for (const to_supervisor::Message& message : link(device).receive()) {
        (void)take(device, message);
      }
    }
    if (stop_signal() != 0) {
      throw Stopped(stop_signal());
    }
    for (AgentLink& agent : agents_) {
      if (agent.state() == AgentLink::State::Starting && agent.is_over()) {
        agent.drop();
      }
    }
    start_refused_agents();
    if (!any(AgentLink::State::Starting) && !asks_again()) {
      break;
    }
  }
}

// At the start a device that is not there is a mistake in the host file, more likely than a fault;
// a run that goes on leaves it out.
void RunDevices::leave_out_missing() {
  for (int device = 0; device < size(); ++device) {
    if (link(device).is_ready()) {
      continue;
    }
    if (link(device).is_here()) {
      const std::string limits = tight_limits();
      throw InputError(fmt::format("{} cannot be started on this machine{}{}",
                                   request_.agents.program,
                                   limits.empty() ? "" : ": ",
                                   limits));
    }
    if (!request_.goes_on) {
      throw InputError(
          fmt::format("{} cannot be reached: does `{} {} true` work without a question, "
                      "and is {} there?",
                      name_of(device),
                      request_.agents.remote_shell,
                      name_of(device),
                      request_.agents.program));
    }
    link(device).drop();
    roster_.lose(device, now_s());
    say(name_of(device) + " cannot be reached and is left out until it can");
  }
}

void RunDevices::wait() {
  constexpr double kLongest_s = 0.05;
  PollSet waits;
  for (const AgentLink& agent : agents_) {
    if (agent.stream() != nullptr) {
      waits.add(*agent.stream());
    }
  }
  waits.wait(kLongest_s);
  for (AgentLink& agent : agents_) {
    agent.flush();
  }
  if (now_s() - beat_s_ >= kBeat_s) {
    beat_s_ = now_s();
    tell_all(to_agent::Beat{});
  }
}

bool RunDevices::take(int device, const to_supervisor::Message& message) {
  if (const auto* const hello = std::get_if<to_supervisor::Hello>(&message)) {
    take_hello(device, *hello);
  } else if (std::holds_alternative<to_supervisor::Heard>(message)) {
    take_refusal(device);
  } else if (std::holds_alternative<to_supervisor::Superseded>(message)) {
    say("another device has taken this run over: it ends here");
    led_by_another_ = true;
  } else if (std::holds_alternative<to_supervisor::Finished>(message)) {
    take_finished(device);
  } else if (std::holds_alternative<to_supervisor::Stopped>(message)) {
    say(fmt::format("this run was stopped, as {} knows: it is not taken over", name_of(device)));
    stopped_ = true;
    led_by_another_ = true;
  } else if (const auto* const problem = std::get_if<to_supervisor::Problem>(&message)) {
    take_problem(device, name_of(device) + ": " + problem->text);
  } else {
    return false;
  }
  return true;
}

void RunDevices::take_finished(int device) {
  finished_ = true;
  led_by_another_ = !link(device).is_here();
  say(led_by_another_ ? fmt::format("this run has finished: {} has its folder", name_of(device))
                      : fmt::format("the run in {} has finished", record_.run_folder));
}

// The device has promised itself to another supervisor.
void RunDevices::take_refusal(int device) {
  if (leads_ ? link(device).is_here() : request_.takes_over) {
    say(fmt::format("the supervisor of this run is heard on {}", name_of(device)));
    led_by_another_ = true;
    return;
  }
  link(device).drop();
  if (leads_) {
    roster_.missed(device, now_s());
  } else {
    refused_[device] = now_s();
  }
}

// An agent that has not begun does so no more, and ends with its connection.
void RunDevices::take_problem(int device, const std::string& what) {
  const bool begins = link(device).state() == AgentLink::State::Starting;
  if (begins && !leads_ && (!request_.goes_on || link(device).is_here())) {
    throw InputError(what);
  }
  say(what);
  if (begins) {
    link(device).drop();
    if (leads_) {
      roster_.missed(device, now_s());
    }
  }
}

void RunDevices::expect_same_program(int device, const to_supervisor::Hello& hello) const {
  if (hello.version != request_.version) {
    throw InputError(fmt::format("{} runs another program ({}) than this machine ({})",
                                 name_of(device),
                                 printable(hello.version),
                                 request_.version));
  }
  if (!hello.folder_there) {
    throw InputError(fmt::format("{}: there is no folder {}, in which the run was started here",
                                 name_of(device),
                                 record_.folder));
  }
}

void RunDevices::take_hello(int device, const to_supervisor::Hello& hello) {
  try {
    expect_same_program(device, hello);
  } catch (const InputError& error) {
    if (!leads_) {
      throw;
    }
    say(error.what());
    link(device).drop();
    roster_.missed(device, now_s());
    return;
  }
  link(device).ready();
  refused_.erase(device);
  roster_.reach(device, now_s());
}

std::optional<std::string> RunDevices::loss_of(int device) {
  AgentLink& agent = link(device);
  if (agent.state() == AgentLink::State::Absent) {
    return std::nullopt;
  }
  if (agent.is_over()) {
    return name_of(device) + " has closed the connection";
  }
  constexpr double kLongestStart_s = 10;
  const double silent_s = now_s() - agent.heard_s();
  const bool slow_start =
      agent.state() == AgentLink::State::Starting && now_s() - agent.started_s() > kLongestStart_s;
  return slow_start || (agent.is_ready() && silent_s > silence_s_)
             ? std::optional(
                   fmt::format("{} has not answered for {:.1f} s", name_of(device), silent_s))
             : std::nullopt;
}

void RunDevices::look_for_missing(bool soon) {
  for (int device = 0; device < size(); ++device) {
    if (roster_.is_to_be_tried(device, now_s(), soon) &&
        link(device).state() == AgentLink::State::Absent) {
      try {
        start_agent(device);
      } catch (const InputError&) {
        roster_.missed(device, now_s());
      }
    }
  }
}

void RunDevices::take_back_reached() {
  for (int device = 0; device < size(); ++device) {
    if (link(device).is_ready()) {
      roster_.take_back(device);
    }
  }
}

// Where its agent answers still, what was wrong with a rank there may be over.
void RunDevices::leave_out(int device) {
  roster_.lose(device, now_s());
  if (link(device).is_ready()) {
    roster_.reach(device, now_s());
  }
}

void RunDevices::tell_all(const to_agent::Message& message) {
  for (AgentLink& agent : agents_) {
    agent.send(message);
  }
}

void RunDevices::end(bool remove) {
  constexpr double kLongest_s = 5;
  tell_all(to_agent::End{remove});
  const double begun_s = now_s();
  const auto is_left = [](AgentLink& agent) { return agent.is_ready() && !agent.is_over(); };
  while (now_s() < begun_s + kLongest_s && std::any_of(agents_.begin(), agents_.end(), is_left)) {
    wait();
    pass_over_messages();
  }
}

void RunDevices::pass_over_messages() {
  for (AgentLink& agent : agents_) {
    (void)agent.receive();
  }
}

}  // namespace tessera::engine
