#include "engine/system/agent_line.h"

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

#include "engine/system/clock.h"
#include "engine/system/stop_request.h"

namespace tessera::engine {

namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets them
  return text == nullptr ? std::string() : std::string(text);
}

int agent_descriptor() {
  const std::string text = variable("TESSERA_AGENT_FD");
  const int number = text.empty() ? -1 : std::atoi(text.c_str());
  return number > STDERR_FILENO && ::fcntl(number, F_GETFD) >= 0 ? number : -1;
}

// A line is short, and an agent that does not read is gone: what does not fit is lost.
void tell(int agent, const std::string& line) {
  if (agent >= 0) {
    const std::string whole = line + "\n";
    (void)!::send(agent, whole.data(), whole.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

}  // namespace

bool has_agent() {
  return !variable("TESSERA_AGENT_FD").empty();
}

std::string state_folder_of_agent() {
  return variable("TESSERA_STATE_DIR");
}

bool is_started_again() {
  return !variable("TESSERA_STARTED_AGAIN").empty();
}

std::string faults_file() {
  return variable("TESSERA_FAULTS");
}

std::string command_of_supervisor() {
  return variable("TESSERA_COMMAND");
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
    (void)!::write(wake_, &one, sizeof(one));
    thread_.join();
    ::close(wake_);
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  [[nodiscard]] int agent() const { return agent_; }

 private:
  void beat() {
    constexpr int kBetween_ms = 250;
    ::pthread_setname_np(::pthread_self(), "signs of life");
    while (!ends_) {
      tell(agent_, R"({"beat":1})");
      tell_work();
      std::array<pollfd, 2> waits{{{wake_, POLLIN, 0}, {heard_ ? -1 : agent_, POLLIN, 0}}};
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
    if (sign != SignOfWork::None) {
      tell(agent_, sign == SignOfWork::Works ? R"({"works":1})" : R"({"stuck":1})");
    }
  }

  // The agent says one thing only.
  void listen() {
    std::array<char, 256> bytes{};
    const ssize_t count = ::recv(agent_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    heard_ = count <= 0;
    if (count > 0 && std::string(bytes.data(), static_cast<std::size_t>(count)).find("pause") !=
                         std::string::npos) {
      request_stop(kPauseSignal);
      heard_ = true;
    }
  }

  int agent_;
  std::function<WaitsOfRank()> waits_;
  WorkWatch work_;  // the thread's
  int wake_;
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

void AgentLine::tell_phase(const std::string& phase, Index steps, Index bytes) const {
  tell(thread_ ? thread_->agent() : -1,
       R"({"phase":")" + phase + R"(","steps":)" + std::to_string(steps) + R"(,"bytes":)" +
           std::to_string(bytes) + "}");
}

void AgentLine::tell_step(Index step, Index last) const {
  tell(thread_ ? thread_->agent() : -1,
       R"({"step":)" + std::to_string(step) + R"(,"last":)" + std::to_string(last) + "}");
}

void AgentLine::tell_saved() const {
  tell(thread_ ? thread_->agent() : -1, R"({"saved":1})");
}

void AgentLine::tell_silent(const std::vector<int>& ranks) const {
  std::string list;
  for (const int rank : ranks) {
    list += (list.empty() ? "" : ",") + std::to_string(rank);
  }
  tell(thread_ ? thread_->agent() : -1, R"({"silent":[)" + list + "]}");
}

}  // namespace tessera::engine
