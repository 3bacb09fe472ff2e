#include "engine/comm/mailbox.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <sys/random.h>
#include <thread>
#include <utility>

#include <mpi.h>

#include "engine/comm/mpi_count.h"
#include "engine/comm/mpi_session.h"
#include "engine/comm/tags.h"

namespace tessera::engine {

namespace {

std::optional<Mailbox::Letter> next_letter() {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Improbe(MPI_ANY_SOURCE, kLetterTag, MPI_COMM_WORLD, &found, &message, &status);
  if (found == 0) {
    return std::nullopt;
  }
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Mailbox::Letter letter{status.MPI_SOURCE, std::vector<std::byte>(static_cast<std::size_t>(size))};
  MPI_Mrecv(letter.bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  return letter;
}

}  // namespace

struct Mailbox::State {
  struct Leaving {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  int rank = 0;
  bool by_mpi = false;
  std::uint64_t key = 0;        // of this mailbox: an earlier one may have left letters
  std::vector<Letter> own;      // rank 0's to itself
  std::deque<Leaving> leaving;  // in the order of posting

  // How many have not left.
  [[nodiscard]] std::size_t look();
  // Whether a letter is for this mailbox.
  [[nodiscard]] bool takes_off_key(std::vector<std::byte>& letter) const;
};

bool Mailbox::State::takes_off_key(std::vector<std::byte>& letter) const {
  if (letter.size() < sizeof key || std::memcmp(letter.data(), &key, sizeof key) != 0) {
    return false;
  }
  letter.erase(letter.begin(), letter.begin() + sizeof key);
  return true;
}

std::size_t Mailbox::State::look() {
  while (!leaving.empty()) {
    int done = 0;
    MPI_Test(&leaving.front().request, &done, MPI_STATUS_IGNORE);
    if (done == 0) {
      break;
    }
    leaving.pop_front();
  }
  return leaving.size();
}

Mailbox::Mailbox(const Communicator& communicator) : state_(std::make_unique<State>()) {
  state_->rank = communicator.rank();
  state_->by_mpi = communicator.size() > 1 && MpiSession::threads_may_call();
  [[maybe_unused]] const auto drawn = ::getrandom(&state_->key, sizeof state_->key, 0);
  state_->key = communicator.share(state_->key);
}

Mailbox::~Mailbox() {
  constexpr int kLooks = 1000;
  for (int look = 0; look < kLooks && state_->look() > 0; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!state_->leaving.empty()) {
    // Rank 0 is out of reach. MPI may still read the bytes: they stay.
    [[maybe_unused]] auto* const stay =
        std::make_unique<std::deque<State::Leaving>>(std::move(state_->leaving)).release();
  }
}

bool Mailbox::post(std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = 16;
  if (state_->rank == 0) {
    state_->own.push_back({0, std::vector<std::byte>(bytes.begin(), bytes.end())});
    return true;
  }
  if (!state_->by_mpi || state_->look() >= kMost) {
    return false;
  }
  State::Leaving& leaving = state_->leaving.emplace_back();
  leaving.bytes.resize(sizeof state_->key + bytes.size());
  std::memcpy(leaving.bytes.data(), &state_->key, sizeof state_->key);
  std::copy(bytes.begin(), bytes.end(), leaving.bytes.begin() + sizeof state_->key);
  MPI_Isend(leaving.bytes.data(),
            mpi_count(leaving.bytes.size()),
            MPI_BYTE,
            0,
            kLetterTag,
            MPI_COMM_WORLD,
            &leaving.request);
  return true;
}

std::vector<Mailbox::Letter> Mailbox::take() {
  std::vector<Letter> letters = std::exchange(state_->own, {});
  if (state_->rank == 0 && state_->by_mpi) {
    while (auto letter = next_letter()) {
      if (state_->takes_off_key(letter->bytes)) {
        letters.push_back(std::move(*letter));
      }
    }
  }
  return letters;
}

void discard_letters() {
  while (next_letter()) {
  }
}

}  // namespace tessera::engine
