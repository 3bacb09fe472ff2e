// Training on disk: whole tensors, so that it can go on under any partition. Weights as
// "layers.3.weight", optimizer state as "optimizer.layers.3.weight.first" and ".second", averages
// over steps, which are what is tested and used, as "ema.layers.3.weight"; step,
// seed, images seen, the model's text and how its pictures are prepared are metadata of the file.
//
// Independent replicas save the model that they have in common; what each rank goes on from is
// there, too, as "ranks.2.state", a row of numbers that says something under the same plan alone,
// and so is what compression has left of gradients and values. Saving changes nothing in the run.
//
// Rank 0 reads and writes; a chunk of a tensor at a time travels between it and its owners, so that
// checkpoints take no memory to speak of. All ranks call these functions together unless said
// otherwise, and errors are AgreedErrors on all of them. What is read is checked first, by its
// digests and number by number.

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/detection/detection_curves.h"
#include "engine/files/safetensors.h"
#include "engine/train/checkpoints/preparation.h"
#include "engine/train/checkpoints/training_record.h"
#include "engine/train/metrics/metric.h"
#include "engine/train/optimizer.h"
#include "engine/train/rank_state.h"
#include "partitioner/network/frozen_layers.h"

namespace tessera::engine {

// What weights achieved on the pictures for testing.
struct TestResult {
  MetricValue score;  // of the metric by which runs are compared
  double loss = 0;
  std::optional<BestF1> best_f1 = std::nullopt;  // of a detector; only written

  // By the score, where that is the same or neither has one (NaN) by the loss; NaN is never better.
  // A result of another metric is better.
  [[nodiscard]] bool better_than(const TestResult& other) const;
};

struct TrainingState {
  Index step = 0;  // updates done
  std::uint64_t seed = 0;
  std::string model;                                      // text of the model file
  std::string fingerprint;                                // of its network
  Index images_seen = 0;                                  // trained on so far, each time counted
  std::optional<Preparation> preparation = std::nullopt;  // what old files do not know
  std::optional<TestResult> tested = std::nullopt;        // of these very weights, where known
  partitioner::FrozenLayers frozen = {};  // there is no optimizer state of those in this step
  Index post_local_steps = 0;             // of a post-local run: those of its first part
  std::optional<TrainingRecord> record = std::nullopt;  // what old files do not know
  std::vector<double> latest_losses = {};               // see Trainer::latest_losses()

  // Whether a file that was read has states of ranks, and whether they are those of this plan.
  enum class RankStates { None, Restored, OfAnotherPlan };
  RankStates rank_states = RankStates::None;
};

// Writes all of a checkpoint but what makes it a file of that name: on rank 0 that is commit() of
// what this returns, which is null on the others. A thread may call it while training goes on; a
// process that is killed before leaves it to finish_checkpoint().
// `previous`: the name that the file of before is left under; empty: it is replaced.
[[nodiscard]] std::unique_ptr<SafetensorsWriter> write_checkpoint(
    const std::filesystem::path& path,
    const std::filesystem::path& previous,
    const TrainingState& state,
    const ParameterSet<float>& parameters,
    const Optimizer<float>& optimizer,
    const RankState& rank_state,
    const Communicator& communicator);

// Commits what a process that was killed has left of write_checkpoint(), where that is whole. Reads
// and writes on this rank alone.
void finish_checkpoint(const std::filesystem::path& path, const std::filesystem::path& previous);

// The whole of it at once; the file of before is replaced.
void save_checkpoint(const std::filesystem::path& path,
                     const TrainingState& state,
                     const ParameterSet<float>& parameters,
                     const Optimizer<float>& optimizer,
                     const RankState& rank_state,
                     const Communicator& communicator);

// Fills parameters and optimizer (averages that are not there begin with the values), and where the
// checkpoint has it, the state of the rank. Refuses a checkpoint of another network, or one without
// the optimizer's state.
[[nodiscard]] TrainingState load_checkpoint(const std::filesystem::path& path,
                                            const partitioner::Network& network,
                                            ParameterSet<float>& parameters,
                                            Optimizer<float>& optimizer,
                                            const RankState& rank_state,
                                            const Communicator& communicator);

// The images that the training of a checkpoint has seen; 0 where it does not say. Reads on this
// rank alone.
[[nodiscard]] Index checkpoint_images_seen(const std::filesystem::path& path);

// The step of a checkpoint; 0 where none can be read. Reads on this rank alone.
[[nodiscard]] Index step_of_checkpoint(const std::filesystem::path& path);

// The result of the best weights of a training of this network, as a checkpoint keeps it; nothing
// where there is no such file. Reads on this rank alone.
struct BestSoFar {
  Index step = 0;
  TestResult tested;
};
[[nodiscard]] std::optional<BestSoFar> best_so_far(const std::filesystem::path& path,
                                                   const partitioner::Network& network);

// The best F1 of a detector's test, as stored with its weights; empty if none is, or the file is
// missing. Reads on this rank alone.
[[nodiscard]] std::optional<BestF1> stored_best_f1(const std::filesystem::path& path);

// The tensor of a file that is tested and used for a parameter: the average where there is one.
[[nodiscard]] std::string used_tensor(const SafetensorsReader& file,
                                      const partitioner::ParameterPlan& parameter);

// Throws InputError where the file is damaged or one of these parameters in it is not fit for use.
// On this rank alone.
void expect_sound_parameters(const SafetensorsReader& file,
                             const std::vector<const partitioner::ParameterPlan*>& wanted);

// The seed that a checkpoint's training had, the steps of its first part where it was post-local, 0
// else, and the layers that were frozen in it.
[[nodiscard]] std::uint64_t checkpoint_seed(const std::filesystem::path& path,
                                            const Communicator& communicator);
[[nodiscard]] Index checkpoint_post_local_steps(const std::filesystem::path& path,
                                                const Communicator& communicator);
[[nodiscard]] partitioner::FrozenLayers checkpoint_frozen_layers(const std::filesystem::path& path,
                                                                 const Communicator& communicator);

}  // namespace tessera::engine
