#include "engine/comm/communicator.h"

#include <array>
#include <cstring>
#include <unistd.h>
#include <utility>

#include <mpi.h>

#include "engine/comm/gathering.h"
#include "engine/comm/mpi_count.h"
#include "engine/comm/patience.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

struct Requests::State {
  std::vector<MPI_Request> requests;
  std::vector<int> done;  // found by a look and not yet named
  std::size_t named = 0;  // of `done`
  Pulse* pulse = nullptr;
  std::chrono::microseconds longest_pause = Patience::kUsualPause;
};

Requests::Requests() : state_(std::make_unique<State>()) {}
Requests::Requests(Requests&&) noexcept = default;
Requests& Requests::operator=(Requests&&) noexcept = default;
Requests::~Requests() = default;

int Requests::wait_any() {
  State& state = *state_;
  if (state.named == state.requests.size()) {
    state = {};
    return -1;
  }
  Patience patience(state.pulse, state.longest_pause);
  while (state.named == state.done.size()) {
    const std::size_t before = state.done.size();
    state.done.resize(state.requests.size());
    int count = 0;
    MPI_Testsome(mpi_count(state.requests.size()),
                 state.requests.data(),
                 &count,
                 state.done.data() + before,
                 MPI_STATUSES_IGNORE);
    const bool found = count != MPI_UNDEFINED && count > 0;
    state.done.resize(before + static_cast<std::size_t>(found ? count : 0));
    if (!found) {
      patience.wait();
    }
  }
  return state.done[state.named++];
}

void Requests::wait_all() {
  while (wait_any() >= 0) {
  }
}

bool Requests::all_done() {
  State& state = *state_;
  if (state.requests.empty()) {
    return true;
  }
  int done = 0;
  MPI_Testall(mpi_count(state.requests.size()), state.requests.data(), &done, MPI_STATUSES_IGNORE);
  if (done != 0) {
    state = {};
  }
  return done != 0;
}

Communicator Communicator::world(Pulse* pulse) {
  Communicator world;
  world.pulse_ = pulse;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size_);
  return world;
}

Communicator Communicator::among(const std::vector<int>& ranks) const {
  Communicator part = *this;
  part.absent_.assign(static_cast<std::size_t>(size_), true);
  for (const int rank : ranks) {
    part.absent_[static_cast<std::size_t>(rank)] = false;
  }
  expects(part.takes_part(0), "rank 0 takes part");
  if (static_cast<int>(ranks.size()) == size_) {
    part.absent_.clear();
  }
  return part;
}

Communicator Communicator::resting() const {
  constexpr std::chrono::milliseconds kLongest{20};
  Communicator other = *this;
  other.longest_pause_ = kLongest;
  return other;
}

Communicator Communicator::for_another_thread() const {
  Communicator other;
  other.rank_ = rank_;
  other.size_ = size_;
  return other;
}

void Communicator::post_receive(Requests& requests,
                                int from,
                                int tag,
                                std::span<std::byte> bytes) const {
  requests.state_->pulse = pulse_;
  requests.state_->longest_pause = longest_pause_;
  MPI_Irecv(bytes.data(),
            mpi_count(bytes.size()),
            MPI_BYTE,
            from,
            tag,
            MPI_COMM_WORLD,
            &requests.state_->requests.emplace_back(MPI_REQUEST_NULL));
}

void Communicator::post_send(Requests& requests,
                             int to,
                             int tag,
                             std::span<const std::byte> bytes) const {
  requests.state_->pulse = pulse_;
  requests.state_->longest_pause = longest_pause_;
  count_sent(bytes.size());
  MPI_Isend(bytes.data(),
            mpi_count(bytes.size()),
            MPI_BYTE,
            to,
            tag,
            MPI_COMM_WORLD,
            &requests.state_->requests.emplace_back(MPI_REQUEST_NULL));
}

std::vector<std::vector<std::byte>> Communicator::gather_all(
    std::span<const std::byte> mine) const {
  Gathering gathering(*this);
  gathering.set(mine);
  for (int round = 0; round < Gathering::kRounds; ++round) {
    gathering.start(round);
    gathering.finish();
  }
  return gathering.take();
}

std::optional<std::string> Communicator::agree(const std::optional<std::string>& mine) const {
  std::vector<std::byte> bytes(mine ? mine->size() + 1
                                    : 0);  // one more, so that an empty text is one too
  if (mine) {
    std::memcpy(bytes.data(), mine->data(), mine->size());
  }
  for (const auto& text : gather_all(bytes)) {
    if (!text.empty()) {
      return std::string(reinterpret_cast<const char*>(text.data()), text.size() - 1);
    }
  }
  return std::nullopt;
}

int Communicator::ranks_on_this_machine() const {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  int count = 0;
  for (const auto& theirs : gather_all(bytes_of(std::as_const(name).data(), std::ssize(name)))) {
    count += std::memcmp(theirs.data(), name.data(), name.size()) == 0 ? 1 : 0;
  }
  return count;
}

void Communicator::barrier() const {
  (void)gather_all({});
}

}  // namespace tessera::engine
