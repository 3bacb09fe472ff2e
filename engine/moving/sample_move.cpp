#include "engine/moving/sample_move.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/comm/pair_exchange.h"
#include "engine/comm/patience.h"

namespace tessera::engine {

namespace {

using Problem = std::optional<std::string>;

// What the busiest device sends or receives in a round, about.
constexpr Index kRoundBytes = Index{1} << 22U;
// Rounds that may be performed before the next look: 32 MiB, some seconds of 100 Mbit/s.
constexpr Index kRoundsAhead = 16;

template <class Work>
auto start(Work work) {
  return std::async(std::launch::async, std::move(work));
}

Index bytes_in(const BytesByRank& all) {
  Index sum = 0;
  for (const auto& [rank, bytes] : all) {
    sum += std::ssize(bytes);
  }
  return sum;
}

Index rounds_of(const ShipmentSize& size, Index round_bytes) {
  return (size.busiest_bytes + round_bytes - 1) / round_bytes;
}

}  // namespace

// Rounds are performed by a thread, or where there is none by the caller. In a round ranks exchange
// samples in pairs: so that all perform as many, whatever happens to one, each performs all rounds
// that a look, the same on all ranks, has allowed.
struct SampleMove::State {
  State(const partitioner::DataMap& data_map,
        const SampleMoveOptions& options,
        const Communicator& of_all,
        const Dataset& dataset)
      : shipment(data_map, options.map, options.folder, of_all, dataset),
        communicator(of_all),
        of_thread(of_all.for_another_thread().resting()),
        rounds(rounds_of(shipment.size(),
                         options.in_background ? kBackgroundRoundBytes : kRoundBytes)),
        progress{shipment.size(), 0} {
    if (options.in_background && rounds > 0) {
      thread = std::thread([this] { work(); });
    }
  }

  ~State() { join(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void work() {
    try {
      while (may_perform()) {
        perform_round(of_thread);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  }

  // Waits for a look to allow more. False: there is nothing more to do.
  bool may_perform() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return performed < allowed || ends || performed == rounds; });
    return performed < allowed;
  }

  void perform_round(const Communicator& by) {
    const Index round = performed;
    Shipment::Batch batch = upcoming.valid() ? upcoming.get() : shipment.read(round, rounds);
    if (round + 1 < rounds) {
      upcoming = start([this, round] { return shipment.read(round + 1, rounds); });
    }
    BytesByRank received = shipment.room(round, rounds);
    most_sent = std::max(most_sent, bytes_in(batch.bytes));
    most_received = std::max(most_received, bytes_in(received));
    exchange_known(by, batch.bytes, received);
    finish_storing();
    note(reading_problem, std::move(batch.problem));
    storing = start([this, round, bytes = std::move(received)] {
      return problem_of([&] { shipment.store(round, rounds, bytes); });
    });
    if (round + 1 == rounds) {
      finish_storing();
    }
    performed = round + 1;
  }

  void finish_storing() {
    if (storing.valid()) {
      note(storing_problem, storing.get());
    }
  }

  void note(Problem& first, Problem problem) {
    const std::lock_guard lock(mutex);
    first = first ? first : std::move(problem);
  }

  // Lets the thread perform what is allowed, and ends it.
  void join() {
    if (thread.joinable()) {
      {
        const std::lock_guard lock(mutex);
        ends = true;
      }
      changed.notify_all();
      thread.join();
    }
  }

  // Whether it is over on all ranks; allows so many rounds more than the slowest has performed.
  bool look(Index ahead) {
    struct Seen {
      Index performed = 0;
      bool has_problem = false;
    };
    Seen mine;
    {
      const std::lock_guard lock(mutex);
      if (failure) {
        std::rethrow_exception(failure);
      }
      mine = {performed, reading_problem || storing_problem};
    }
    Index least = rounds;
    bool all_well = true;
    for (const Seen& theirs : communicator.of_ranks(mine)) {
      least = std::min(least, theirs.performed);
      all_well = all_well && !theirs.has_problem;
    }
    if (!all_well || least == rounds) {
      join();
      finish_storing();
      // What could not be read is damaged where it arrives: the one problem comes of the other.
      throw_agreed(communicator, reading_problem);
      throw_agreed(communicator, storing_problem);
      progress.bytes_moved = progress.bytes;
      return true;
    }
    progress.bytes_moved = progress.bytes * least / rounds;
    {
      const std::lock_guard lock(mutex);
      allowed = std::max(allowed, std::min(rounds, least + ahead));
    }
    changed.notify_all();
    return false;
  }

  void perform_what_is_allowed() {
    if (!thread.joinable()) {
      while (performed < allowed) {
        perform_round(communicator);
      }
      return;
    }
    Patience patience(communicator.pulse());
    while (performed < allowed && !has_failed()) {
      patience.wait();
    }
  }

  bool has_failed() {
    const std::lock_guard lock(mutex);
    return failure != nullptr;
  }

  Shipment shipment;
  const Communicator& communicator;
  Communicator of_thread;
  Index rounds;
  MoveProgress progress;
  std::atomic<Index> performed{0};
  Index allowed = 0;    // changed by looks alone
  Index most_sent = 0;  // in a round
  Index most_received = 0;
  std::future<Shipment::Batch> upcoming;
  std::future<Problem> storing;
  std::mutex mutex;  // of what follows, and of changes of `allowed`
  std::condition_variable changed;
  bool ends = false;
  Problem reading_problem;
  Problem storing_problem;
  std::exception_ptr failure;
  std::thread thread;
};

SampleMove::SampleMove(const partitioner::DataMap& data_map,
                       const SampleMoveOptions& options,
                       const Communicator& communicator,
                       const Dataset& dataset)
    : state_(std::make_unique<State>(data_map, options, communicator, dataset)) {}

SampleMove::~SampleMove() = default;

const MoveProgress& SampleMove::progress() const {
  return state_->progress;
}

bool SampleMove::look() {
  return state_->look(kRoundsAhead);
}

void SampleMove::finish(const std::function<void(const MoveProgress&)>& report) {
  const auto show_progress = [&] {
    if (report) {
      report(state_->progress);
    }
  };
  const Index ahead = state_->thread.joinable() ? 2 : 1;
  bool over = false;
  while (!over) {
    show_progress();
    over = state_->look(ahead);
    if (!over) {
      state_->perform_what_is_allowed();
    }
  }
  if (state_->rounds > 0) {
    show_progress();
  }
}

Index SampleMove::bytes() const {
  return 2 * (state_->most_sent + state_->most_received);
}

void SampleMove::add_arrivals(Dataset& dataset) const {
  state_->shipment.add_arrivals(dataset);
}

}  // namespace tessera::engine
