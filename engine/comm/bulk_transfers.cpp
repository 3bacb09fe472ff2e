#include "engine/comm/bulk_transfers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include "engine/comm/mpi_count.h"
#include "engine/comm/patience.h"
#include "engine/comm/tags.h"
#include "partitioner/partition/gradient_reduction.h"

namespace tessera::engine {

namespace {

// In shared memory chunks cost more than what is in them.
constexpr std::size_t kWholeBytes = std::size_t{1} << 30U;  // as much as MPI counts
// A look costs kernels processor time, and where nobody looks for long the wire stands idle.
constexpr std::chrono::microseconds kShortestNap{250};
constexpr std::chrono::microseconds kLongestNap{2000};

struct QueuedMessage {
  std::byte* bytes = nullptr;  // only read where it is sent
  std::size_t size = 0;
  std::size_t posted = 0;
  std::size_t done = 0;
  int* batch = nullptr;  // messages under way
};

// To or from one rank.
struct Queue {
  int peer = 0;
  bool sends = false;
  Index chunks = 0;  // under way
  std::deque<QueuedMessage> messages;
};

struct Chunk {
  Queue* queue = nullptr;
  QueuedMessage* message = nullptr;
  std::size_t size = 0;
};

// Any call that checks for a message progresses all of them; this one never finds one.
void make_progress() {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, kNoMessageTag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

}  // namespace

struct BulkTransfers::State {
  std::mutex mutex;  // of all that follows
  std::condition_variable wake;
  std::vector<Queue> queues;  // by peer: to it, from it
  std::vector<MPI_Request> requests;
  std::vector<Chunk> chunks;  // of the requests
  std::vector<int> done;
  Index chunks_per_queue = 1;
  int guards = 0;
  bool by_wire = true;
  bool has_thread = false;  // or would have one if anything were under way
  bool watched = false;     // by wait()
  bool stopping = false;
  bool ran_dry = false;  // all chunks sent, or all received, were done when somebody looked
  const Communicator* communicator = nullptr;
  std::thread thread;

  void post(int peer, bool sends, const QueuedMessage& message);
  void wake_thread();
  bool advance();
  void post_chunks(Queue& queue);
  void take_in(const Chunk& chunk);
  void run();
};

void BulkTransfers::State::post(int peer, bool sends, const QueuedMessage& message) {
  if (message.size == 0) {
    return;
  }
  const std::lock_guard lock(mutex);
  ++*message.batch;
  Queue& queue = queues[2 * static_cast<std::size_t>(peer) + (sends ? 0 : 1)];
  queue.messages.push_back(message);
  post_chunks(queue);
  wake_thread();
}

void BulkTransfers::State::wake_thread() {
  if (has_thread && !thread.joinable()) {
    thread = std::thread([this] { run(); });
  }
  wake.notify_one();
}

void BulkTransfers::State::post_chunks(Queue& queue) {
  for (QueuedMessage& message : queue.messages) {
    while (queue.chunks < chunks_per_queue && message.posted < message.size) {
      const std::size_t most =
          by_wire ? static_cast<std::size_t>(partitioner::kChunkBytes) : kWholeBytes;
      const std::size_t size = std::min(most, message.size - message.posted);
      std::byte* const bytes = message.bytes + message.posted;
      MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
      if (queue.sends) {
        // Under way until it is received: what MPI and the system keep for later counts, too.
        MPI_Issend(
            bytes, mpi_count(size), MPI_BYTE, queue.peer, kBulkTag, MPI_COMM_WORLD, &request);
      } else {
        MPI_Irecv(bytes, mpi_count(size), MPI_BYTE, queue.peer, kBulkTag, MPI_COMM_WORLD, &request);
      }
      chunks.push_back({&queue, &message, size});
      message.posted += size;
      ++queue.chunks;
    }
    if (queue.chunks == chunks_per_queue) {
      return;
    }
  }
}

void BulkTransfers::State::take_in(const Chunk& chunk) {
  --chunk.queue->chunks;
  chunk.message->done += chunk.size;
  if (chunk.message->done == chunk.message->size) {
    --*chunk.message->batch;
  }
}

// Whether anything was done.
bool BulkTransfers::State::advance() {
  if (requests.empty()) {
    return false;
  }
  int count = 0;
  done.resize(requests.size());
  MPI_Testsome(
      mpi_count(requests.size()), requests.data(), &count, done.data(), MPI_STATUSES_IGNORE);
  if (count == MPI_UNDEFINED || count == 0) {
    return false;
  }
  std::vector<Queue*> moved;
  std::array<bool, 2> any_done = {false, false};  // of what is received, of what is sent
  for (int i = 0; i < count; ++i) {
    const Chunk& chunk = chunks[static_cast<std::size_t>(done[static_cast<std::size_t>(i)])];
    take_in(chunk);
    any_done[chunk.queue->sends ? 1 : 0] = true;
    moved.push_back(chunk.queue);
  }
  std::size_t left = 0;
  std::array<bool, 2> any_left = {false, false};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] != MPI_REQUEST_NULL) {
      requests[left] = requests[i];
      any_left[chunks[i].queue->sends ? 1 : 0] = true;
      chunks[left++] = chunks[i];
    }
  }
  requests.resize(left);
  chunks.resize(left);
  for (const std::size_t way : {0, 1}) {
    ran_dry = ran_dry || (any_done[way] && !any_left[way]);
  }
  for (Queue* const queue : moved) {
    while (!queue->messages.empty() &&
           queue->messages.front().done == queue->messages.front().size) {
      queue->messages.pop_front();
    }
    post_chunks(*queue);
  }
  return true;
}

// Naps become longer until the wire runs dry in one, in either direction.
void BulkTransfers::State::run() {
  std::unique_lock lock(mutex);
  std::chrono::microseconds nap = kShortestNap;
  while (!stopping) {
    wake.wait(lock, [this] { return stopping || ((!requests.empty() || guards > 0) && !watched); });
    if (requests.empty() && !stopping) {
      make_progress();
    }
    ran_dry = false;
    while (!stopping && !watched && advance()) {
    }
    nap = std::clamp(ran_dry ? nap / 2 : nap * 2, kShortestNap, kLongestNap);
    lock.unlock();
    std::this_thread::sleep_for(nap);
    lock.lock();
  }
}

BulkTransfers::BulkTransfers(const Communicator& communicator, bool by_wire)
    : state_(std::make_unique<State>()) {
  state_->by_wire = by_wire;
  state_->communicator = &communicator;
  state_->has_thread = by_wire && communicator.size() > 1 && MpiSession::threads_may_call();
  state_->chunks_per_queue = partitioner::chunks_in_flight(communicator.size());
  for (int peer = 0; peer < communicator.size(); ++peer) {
    state_->queues.push_back({peer, true, 0, {}});
    state_->queues.push_back({peer, false, 0, {}});
  }
}

BulkTransfers::~BulkTransfers() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_one();
  if (state_->thread.joinable()) {
    state_->thread.join();
  }
}

void BulkTransfers::post_receive(Batch& batch, int from, std::span<std::byte> bytes) {
  state_->post(
      from, false, {.bytes = bytes.data(), .size = bytes.size(), .batch = &batch.under_way_});
}

void BulkTransfers::post_send(Batch& batch, int to, std::span<const std::byte> bytes) {
  state_->communicator->count_sent(bytes.size());
  // Pieces of what is sent and of what is received are kept alike.
  auto* const data = const_cast<std::byte*>(bytes.data());
  state_->post(to, true, {.bytes = data, .size = bytes.size(), .batch = &batch.under_way_});
}

void BulkTransfers::wait(Batch& batch) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.watched = true;
  Patience patience(state.communicator->pulse());
  while (batch.under_way_ > 0) {
    if (state.advance()) {
      patience.renew();
      continue;
    }
    lock.unlock();
    patience.wait();
    lock.lock();
  }
  state.watched = false;
  state.wake.notify_one();
}

bool BulkTransfers::progresses() const {
  return state_->has_thread;
}

ProgressGuard::ProgressGuard(BulkTransfers& transfers) : transfers_(&transfers) {
  BulkTransfers::State& state = *transfers.state_;
  const std::lock_guard lock(state.mutex);
  ++state.guards;
  state.wake_thread();
}

ProgressGuard::ProgressGuard(ProgressGuard&& other) noexcept
    : transfers_(std::exchange(other.transfers_, nullptr)) {}

ProgressGuard::~ProgressGuard() {
  if (transfers_ != nullptr) {
    const std::lock_guard lock(transfers_->state_->mutex);
    --transfers_->state_->guards;
  }
}

}  // namespace tessera::engine
