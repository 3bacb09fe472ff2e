// Synchronises independent replicas, each with parameters of its own, at the boundaries of steps:
// see partitioner/partition/replicas.h. Ranks with the same part of each replica, its peers, hold
// the same elements, and only they exchange messages.
//
// All ranks call everything here together, unless said otherwise.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/comm/peers.h"
#include "engine/execution/parameters.h"
#include "engine/replicas/owned_elements.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

// What is synchronised; all must outlive the synchroniser.
struct ReplicaModel {
  const partitioner::Plan* plan = nullptr;
  const Communicator* communicator = nullptr;
  ParameterSet<float>* parameters = nullptr;
  std::vector<Array<float>*> optimizer_state = {};  // of what the rank owns
  // The optimizer's update of the elements that the rank owns of a parameter, number i of
  // ParameterSet::all(), in arrays of these elements alone. Any thread may call it, one at a time.
  std::function<void(std::size_t i, Index step, const float* gradient, float* values)>
      update_owned = {};
};

struct SyncOptions {
  std::uint64_t seed = 0;      // of random pairs
  Index post_local_steps = 0;  // of a post-local run: those of its first part
};

class Synchroniser {
 public:
  explicit Synchroniser(ReplicaModel model);
  virtual ~Synchroniser() = default;
  Synchroniser(const Synchroniser&) = delete;
  Synchroniser& operator=(const Synchroniser&) = delete;

  // Before the first step, number `steps_done` + 1, when values are those that training begins
  // with. `restored`: state() is that of a run that went so far.
  virtual void begin(Index steps_done, bool restored) = 0;

  // A bucket of a step, when the gradients of what this rank owns of it are those of its replica.
  // `update` is the optimizer's, in place. On return the values of these elements are those that
  // the replica goes on with; it sends them to its other ranks afterwards.
  virtual void update(int bucket, Index step, const std::function<void()>& update) = 0;

  // From share_model() to restore_own() all replicas hold the same model, the one that a checkpoint
  // has and that is tested: their average, or the newest that there is. Then each goes on with its
  // own, as if nothing had happened. Values must not be under way. A rank calls restore_own()
  // alone.
  void share_model();
  void restore_own();

  // What a rank goes on from, beside the model that all have in common: the same arrays in the same
  // order on every rank of any run of the same plan. A rank calls it alone, also while the model is
  // shared.
  [[nodiscard]] std::vector<std::span<float>> state();
  // What of it is beside parameters and the optimizer's state.
  [[nodiscard]] std::vector<std::span<float>> own_state();

  [[nodiscard]] const std::vector<int>& peer_ranks() const { return peers_.ranks(); }

  // Bytes of this rank's arrays and copies, at most; and what it has sent beside what its
  // communicator counts.
  [[nodiscard]] virtual Index bytes() const;
  [[nodiscard]] virtual std::int64_t sent_bytes() const { return 0; }

 protected:
  // Assigns the common model on all replicas: here, its average.
  virtual void assign_common_model();
  // Waits for what is under way, so that arrays of extra_state() do not change.
  virtual void settle() {}
  virtual std::vector<std::span<float>> extra_state() { return {}; }

  // Averages over all peers, on all of them.
  void average(std::span<float> numbers);
  void average_statistics();
  [[nodiscard]] float share() const { return 1 / static_cast<float>(peers_.size()); }
  [[nodiscard]] Peers& peers() { return peers_; }
  [[nodiscard]] const OwnedElements& elements() const { return elements_; }
  [[nodiscard]] ReplicaModel& model() { return model_; }
  [[nodiscard]] const Communicator& communicator() const { return *model_.communicator; }
  // For the numbers of the bucket at hand.
  [[nodiscard]] std::span<float> scratch(int bucket);

 private:
  [[nodiscard]] std::vector<Array<float>*> own_arrays();

  ReplicaModel model_;
  OwnedElements elements_;
  Peers peers_;
  Array<float> scratch_;                 // for the largest bucket
  std::vector<std::vector<float>> own_;  // while the model is shared: of own_arrays()
  Index own_bytes_ = 0;                  // the most that these took
};

// For a plan whose replicas are independent.
[[nodiscard]] std::unique_ptr<Synchroniser> make_synchroniser(ReplicaModel model,
                                                              const SyncOptions& options);

}  // namespace tessera::engine
