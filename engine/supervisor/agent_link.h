// A supervisor's end of the agent on one device, and what is known of that.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/processes/child_process.h"
#include "engine/processes/host_list.h"
#include "engine/processes/line_stream.h"
#include "engine/supervisor/protocol.h"

namespace tessera::engine {

// How agents are started.
struct AgentStart {
  std::string program;       // absolute path, the same on all devices
  std::string remote_shell;  // "ssh", or a program that is called like rsh: SHELL HOST COMMAND
};

class AgentLink {
 public:
  enum class State { Absent, Starting, Ready };

  AgentLink(Host host, bool here) : host_(std::move(host)), here_(here) {}

  [[nodiscard]] const Host& host() const { return host_; }
  [[nodiscard]] bool is_here() const { return here_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool is_ready() const { return state_ == State::Ready; }

  // Starts an agent there, without a word of ssh where it cannot if `quiet`; `hello` is what it is
  // told first. Throws InputError.
  void start(const AgentStart& how, bool quiet, const to_agent::Hello& hello);
  // The agent has answered.
  void ready() { state_ = State::Ready; }
  // Ends the connection, and the remote shell with it.
  void drop();

  void send(const to_agent::Message& message);
  // What has come; `heard_s()` is when something came last.
  [[nodiscard]] std::vector<to_supervisor::Message> receive();
  void flush();
  // Whether the other end, or the remote shell, has gone.
  [[nodiscard]] bool is_over();
  [[nodiscard]] double heard_s() const { return heard_s_; }
  [[nodiscard]] double started_s() const { return started_s_; }

  [[nodiscard]] const LineStream* stream() const { return stream_ ? &*stream_ : nullptr; }

 private:
  Host host_;
  bool here_;
  State state_ = State::Absent;
  std::optional<ChildProcess> process_;
  std::optional<LineStream> stream_;
  double heard_s_ = 0;
  double started_s_ = 0;
};

// The words that start an agent on a host.
[[nodiscard]] std::vector<std::string> agent_command(const AgentStart& how,
                                                     const std::string& host,
                                                     bool quiet = false);

}  // namespace tessera::engine
