// What is asked of a training session: a value that is the same on all ranks, with a text form by
// which it travels to them.

#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/layers/batch_norm_mode.h"
#include "engine/power/meter_spec.h"
#include "partitioner/search/partition_request.h"

namespace tessera::engine {

using partitioner::PartitionRequest;

// To train on some of the devices of a cluster, chosen by predictions and trials: any subset, each
// with the partition that a search finds for it.
struct DeviceRequest {
  partitioner::Objective objective = partitioner::Objective::Time;  // all but Memory
  std::optional<double> deadline_s = {};                            // of the whole run
  std::optional<double> power_limit_w = {};                         // of the devices together
  bool count_idle = false;  // devices without a part in the run count as idle, not as off
  bool try_all = false;     // every set of devices, whatever is predicted
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

// Where pictures are kept once they are decoded and reduced.
struct PictureCacheRequest {
  enum class Place {
    Automatic,  // in memory where the plan leaves enough, else in the run's folder
    Memory,
    Folder,
    Off
  };
  Place place = Place::Automatic;
  std::filesystem::path folder = {};  // which outlasts the run
  friend bool operator==(const PictureCacheRequest&, const PictureCacheRequest&) = default;
};

// TrainingRequest::freeze: the layers that TrainingRequest::weights has, up to the first that it
// lacks.
inline constexpr const char* kFreezeWeights = "weights";

struct TrainingRequest {
  std::string model = {};  // model file
  std::string data = {};   // data set; with a data map "{rank}" in it is the number of the rank
  // A file by which samples move: each rank has data of its own. Empty: all have the same.
  std::string data_map = {};
  std::string run = {};  // run folder
  PartitionRequest partition = {};
  std::optional<DeviceRequest> devices = {};  // nothing: all take part

  // 0: as the model file says.
  Index steps = 0;
  Index epochs = 0;  // instead of steps
  Index batch = 0;
  Index subdivisions = 0;
  Index schedule_steps = 0;

  // The last layer that does not learn, "none", or kFreezeWeights; empty: as the model file says.
  std::string freeze = {};
  // By how much the size of a detector's input changes, 0: not at all. Nothing: as in the run to
  // resume, else as the model file says.
  std::optional<double> multi_scale = {};
  // In how many variants each picture is shown; 0: as in the run to resume, else as another one in
  // each epoch.
  Index augment_variants = 0;
  Index patience = 0;  // tests without a better one after which training ends; 0: no limit
  std::optional<std::uint64_t> seed = {};  // nothing: that of the checkpoint to resume, else 1
  // Checkpoint to go on from, or a run folder: then from its newest intact one.
  std::string resume = {};
  std::string weights = {};  // to start with
  // Nothing: as the checkpoint to resume was trained, else Sync.
  std::optional<BatchNormMode> batch_norm = {};
  Index local_after = 0;  // steps of the first part of a post-local run; 0: half of the run
  // Mean and deviation of pixels, one number or one per channel; empty: those of the weights, else
  // 0, 1.
  std::vector<float> mean = {};
  std::vector<float> stddev = {};
  Index checkpoint_every = 0;  // steps; 0: once per epoch
  bool replace = false;        // an earlier run in the folder
  bool evaluate = true;
  bool skip_broken = false;       // go on without pictures that cannot be used
  bool allow_unlabelled = false;  // nothing is on pictures without a file of boxes
  PictureCacheRequest cache = {};
  // Of the maps at the end of the frozen layers. Automatic: in memory where the plan leaves enough,
  // else nowhere.
  PictureCacheRequest trunk_cache = {};
  // Go on by another partition where devices change their speed, measured over so many seconds of
  // steps. Nothing: keep the first.
  std::optional<double> rebalance_window_s = {};
  bool monitor = true;                 // record each device once a second
  std::vector<MeterSpec> meters = {};  // of electric power; empty: what each machine has

  friend bool operator==(const TrainingRequest&, const TrainingRequest&) = default;
};

inline constexpr Index kUsualRebalanceWindow_s = 30;

// The same training on other devices than it was asked for: what was said of how to cut the network
// for those is left to a search. `found`: a file with what that has found already; `cluster`: the
// profile of these devices. Either may be empty.
[[nodiscard]] TrainingRequest for_other_devices(TrainingRequest request,
                                                const std::string& found,
                                                const std::string& cluster);

// For the JSON library, which throws what is of another type as its own exceptions; InputError
// where a text means nothing. What is missing has its default.
void to_json(nlohmann::json& object, const TrainingRequest& request);
void from_json(const nlohmann::json& object, TrainingRequest& request);

// As a file has it. Throws InputError where that is missing or damaged.
[[nodiscard]] std::string text_of(const TrainingRequest& request);
[[nodiscard]] TrainingRequest read_training_request(const std::filesystem::path& file);

}  // namespace tessera::engine
