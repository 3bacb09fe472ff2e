// One set of parameters, updated by the gradients of all replicas, while replicas compute with
// older ones (stale synchronous parallel training: Ho et al. 2013). It is on the ranks of the first
// replica, each with what it owns; the others send it gradients and get new values back.
//
// Update k is made of the gradients of step k of all replicas, as one device would make it of their
// batches together, and step k + 1 computes with the values after update k - S, however fast the
// others are: so the result does not depend on what arrives first. A replica waits for that update
// alone, so it may be S steps ahead of another, and with S > 0 messages travel while it computes.
// With S = 0 it waits for each update: training is synchronous.
//
// Compressed messages carry gradients, and changes of values, with error feedback each.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/replicas/replica_average.h"
#include "engine/replicas/synchroniser.h"

namespace tessera::engine {

class ParameterRank final : public Synchroniser {
 public:
  ParameterRank(ReplicaModel model, Index staleness);
  // Waits for updates that are under way: all ranks end it together.
  ~ParameterRank() override;

  void begin(Index steps_done, bool restored) override;
  void update(int bucket, Index step, const std::function<void()>& update) override;
  [[nodiscard]] Index bytes() const override;
  [[nodiscard]] std::int64_t sent_bytes() const override { return link_sent_; }

 protected:
  void assign_common_model() override;
  void settle() override;
  std::vector<std::span<float>> extra_state() override;

 private:
  struct Task {
    Index step = 0;
    int bucket = 0;
  };
  [[nodiscard]] bool has_parameters() const { return link_.index() == 0; }
  [[nodiscard]] bool is_compressed() const {
    return compression_ != partitioner::Compression::Exact;
  }
  [[nodiscard]] std::size_t slot(Index step) const;
  // A bucket's values after the update of a step.
  [[nodiscard]] std::span<float> values_after(Index step, int bucket);
  void run();
  void wait_for(std::int64_t tasks) const;
  // An update of a bucket: gradients to the rank that has the parameters, values back.
  void exchange(const Task& task);
  void update_for_all(const Task& task);
  void publish(const Task& task);
  void send_and_receive(const Task& task);
  enum class Taken { Assigned, Added };
  void take(int bucket,
            std::span<const std::byte> message,
            Taken how,
            std::span<float> numbers) const;
  // From or to another peer.
  [[nodiscard]] std::span<std::byte> message(int peer) {
    return messages_[static_cast<std::size_t>(peer - 1)].span();
  }
  void count(std::size_t bytes) { link_sent_ += static_cast<std::int64_t>(bytes); }

  Index staleness_;
  bool has_thread_ = false;
  partitioner::Compression compression_;
  Communicator link_communicator_;  // of the thread, where there is one
  Peers link_;
  PackedBucket packed_;
  // By slot: steps modulo staleness + 1.
  std::vector<Array<float>> gradients_;
  std::vector<Array<float>> values_;        // as replicas get them
  Array<float> parameters_;                 // where they are updated
  Array<float> residuals_;                  // of gradients that were sent compressed
  std::vector<Array<std::byte>> messages_;  // of each other peer, or of the first
  Index newest_ = 0;                        // step of the last update that was asked for
  std::atomic<std::int64_t> link_sent_{0};
  std::int64_t asked_ = 0;  // tasks since the beginning
  std::atomic<std::int64_t> done_{0};

  std::mutex mutex_;  // of the two that follow
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace tessera::engine
