#include "engine/supervisor/agent_link.h"

#include <unistd.h>

#include "engine/processes/remote_shell.h"
#include "engine/system/clock.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

std::vector<std::string> agent_command(const AgentStart& how, const std::string& host, bool quiet) {
  std::vector<std::string> words =
      remote_command(how.remote_shell, host, shell_word(how.program) + " agent");
  if (quiet && words.size() > 3) {  // of ssh, which has options
    words.insert(words.begin() + 1, "-q");
  }
  return words;
}

void AgentLink::start(const AgentStart& how, bool quiet, const to_agent::Hello& hello) {
  constexpr int kOutput = 3;
  drop();
  auto [mine, theirs] = socket_pair();
  ProgramToStart program{
      .words =
          here_
              ? std::vector<std::string>{how.program, "agent", "--output", std::to_string(kOutput)}
              : agent_command(how, host_.name, quiet),
      .ignores_stop_signals = !here_,
      .descriptors = {{STDIN_FILENO, theirs.number()},
                      {STDOUT_FILENO, theirs.number()},
                      {STDERR_FILENO, STDERR_FILENO},
                      {kOutput, STDOUT_FILENO}}};
  if (!here_) {
    program.descriptors.pop_back();
  }
  process_.emplace(program);
  stream_.emplace(std::move(mine));
  state_ = State::Starting;
  started_s_ = heard_s_ = now_s();
  send(hello);
}

void AgentLink::drop() {
  stream_.reset();
  process_.reset();
  state_ = State::Absent;
}

void AgentLink::send(const to_agent::Message& message) {
  if (stream_) {
    stream_->send(line_of(message));
  }
}

void AgentLink::flush() {
  if (stream_ && stream_->wants_to_write()) {
    stream_->flush();
  }
}

std::vector<to_supervisor::Message> AgentLink::receive() {
  std::vector<to_supervisor::Message> messages;
  if (stream_) {
    for (const std::string& line : stream_->receive()) {
      if (auto message = message_in<to_supervisor::Message>(line)) {
        heard_s_ = now_s();
        messages.push_back(std::move(*message));
      }
    }
  }
  return messages;
}

bool AgentLink::is_over() {
  return !stream_ || stream_->is_over();
}

}  // namespace tessera::engine
