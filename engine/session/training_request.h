// What is asked of a training session: the same on all ranks.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/layers/layer.h"
#include "engine/power/meter_spec.h"
#include "partitioner/search/partition_request.h"

namespace tessera::engine {

using partitioner::PartitionRequest;

// To train on some of the devices of a cluster, chosen by predictions and trials: any subset, each
// with the partition that a search finds for it.
struct DeviceRequest {
  partitioner::Objective objective = partitioner::Objective::Time;  // all but Memory
  std::optional<double> deadline_s;                                 // of the whole run
  std::optional<double> power_limit_w;                              // of the devices together
  bool count_idle = false;  // devices without a part in the run count as idle, not as off
  bool try_all = false;     // every set of devices, whatever is predicted
};

struct TrainingRequest {
  std::string model;     // model file
  std::string data;      // data set, see engine/data; with a data map "{rank}" is the rank's number
  std::string data_map;  // file: each rank has data of its own, of which some move; empty: none
  std::string run;       // run folder
  PartitionRequest partition;
  std::optional<DeviceRequest> devices = {};  // nothing: all take part

  // 0: as the model file says.
  Index steps = 0;
  Index epochs = 0;  // instead of steps
  Index batch = 0;
  Index subdivisions = 0;
  Index schedule_steps = 0;

  std::string
      freeze;  // the last layer that does not learn, or "none"; empty: as the model file says
  Index patience = 0;  // tests without a better one after which training ends; 0: no limit
  std::optional<std::uint64_t> seed;  // nothing: that of the checkpoint to resume, else 1
  std::string resume;                 // checkpoint to go on from
  std::string weights;                // to start with
  BatchNormMode batch_norm = BatchNormMode::Sync;
  Index local_after = 0;    // steps of the first part of a post-local run; 0: half of the run
  std::vector<float> mean;  // of pixels, one or one per channel; empty: none is subtracted
  std::vector<float> stddev;
  Index checkpoint_every = 0;  // steps; 0: once per epoch
  bool replace = false;        // an earlier run in the folder
  bool evaluate = true;
  bool skip_broken = false;
  // Go on by another partition where devices change their speed, measured over so many seconds of
  // steps. Nothing: keep the first.
  std::optional<double> rebalance_window_s = {};
  bool monitor = true;            // record each device once a second
  std::vector<MeterSpec> meters;  // of electric power; empty: what each machine has

  // For the records of the run.
  std::string program_version;
  std::string command;  // that started it
};

}  // namespace tessera::engine
