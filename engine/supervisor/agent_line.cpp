#include "engine/supervisor/agent_line.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "engine/processes/descriptor.h"
#include "engine/system/clock.h"
#include "engine/system/stop_request.h"

namespace tessera::engine {

namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets them
  return text == nullptr ? std::string() : std::string(text);
}

int agent_descriptor() {
  const std::string text = variable(rank_variable::kAgent);
  const int number = text.empty() ? -1 : std::atoi(text.c_str());
  return number > STDERR_FILENO && ::fcntl(number, F_GETFD) >= 0 ? number : -1;
}

// A line is short, and an agent that does not read is gone: what does not fit is lost.
void send_to(int agent, const of_rank::Message& message) {
  const std::string line = line_of(message) + "\n";
  (void)!::send(agent, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

bool has_agent() {
  return !variable(rank_variable::kAgent).empty();
}

std::string state_folder_of_agent() {
  return variable(rank_variable::kStateFolder);
}

bool is_started_again() {
  return !variable(rank_variable::kStartedAgain).empty();
}

std::string request_file() {
  return variable(rank_variable::kRequest);
}

std::string faults_file() {
  return variable(rank_variable::kFaults);
}

std::vector<std::string> command_of_supervisor() {
  return words_in(variable(rank_variable::kCommand));
}

class AgentLine::Thread {
 public:
  Thread(int agent, std::function<WaitsOfRank()> waits)
      : agent_(agent),
        waits_(std::move(waits)),
        wake_(::eventfd(0, EFD_CLOEXEC)),
        thread_([this] { beat(); }) {}
  ~Thread() {
    ends_ = true;
    const std::uint64_t one = 1;
    (void)!::write(wake_.number(), &one, sizeof(one));
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  [[nodiscard]] int agent() const { return agent_; }

 private:
  void beat() {
    constexpr int kBetween_ms = 250;
    ::pthread_setname_np(::pthread_self(), "signs of life");
    while (!ends_) {
      send_to(agent_, of_rank::Beat{});
      tell_work();
      std::array<pollfd, 2> waits{{{wake_.number(), POLLIN, 0}, {heard_ ? -1 : agent_, POLLIN, 0}}};
      ::poll(waits.data(), waits.size(), kBetween_ms);
      if ((waits[1].revents & POLLIN) != 0) {
        listen();
      }
    }
  }

  void tell_work() {
    if (!waits_) {
      return;
    }
    const SignOfWork sign = work_.add(work_so_far(waits_()), now_s());
    if (sign == SignOfWork::Works) {
      send_to(agent_, of_rank::Works{});
    } else if (sign == SignOfWork::Stuck) {
      send_to(agent_, of_rank::Stuck{});
    }
  }

  // The agent says one thing only.
  void listen() {
    std::array<char, 256> bytes{};
    const ssize_t count = ::recv(agent_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    heard_ = count <= 0;
    const std::string line(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (message_in<to_rank::Message>(line.substr(0, line.find('\n')))) {
      request_stop(kPauseSignal);
      heard_ = true;
    }
  }

  int agent_;
  std::function<WaitsOfRank()> waits_;
  WorkWatch work_;  // the thread's
  Descriptor wake_;
  bool heard_ = false;  // there is nothing more to be heard
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

AgentLine::AgentLine(std::function<WaitsOfRank()> waits) {
  if (const int agent = agent_descriptor(); agent >= 0) {
    thread_ = std::make_unique<Thread>(agent, std::move(waits));
  }
}

AgentLine::~AgentLine() = default;

void AgentLine::tell(const of_rank::Message& message) const {
  if (thread_) {
    send_to(thread_->agent(), message);
  }
}

}  // namespace tessera::engine
