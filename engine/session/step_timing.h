// Times training steps with random pictures, and says where their time went, beside where a profile
// of the devices predicts that it goes.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session/session_observer.h"
#include "engine/train/trainer.h"
#include "partitioner/cost/compute_model.h"
#include "partitioner/search/partition_request.h"

namespace tessera::engine {

struct TimingRequest {
  std::string model = {};   // model file
  std::string size = {};    // of the input, as "ROWSxCOLUMNS"; empty: as the model file says
  std::string freeze = {};  // see TrainingRequest::freeze
  Index batch = 1;
  int threads = 0;  // of each rank; 0: as the environment says
  Index steps = 5;
  partitioner::PartitionRequest partition = {};
  bool parts = false;      // predict where the time goes
  bool layers = false;     // predict the time of layers
  std::string trace = {};  // file for the actions of the last step; empty: none
  bool monitor = false;    // look at devices meanwhile, as training does
};

// Seconds of a mean step and rank. Waiting for a message counts for what it brings.
struct StepParts {
  double computing_s = 0;
  ExchangeTimes exchanges;
  double idle_s = 0;  // until the slowest rank is done

  [[nodiscard]] double step_s() const { return computing_s + exchanges.total_s() + idle_s; }
};

// What a mean rank computed in a step, by layer, and what the slowest one did.
struct LayerComputing {
  partitioner::PassSeconds mean;
  partitioner::PassSeconds most;  // of any rank, each pass by itself
};

// On rank 0, where a profile says what the devices can do, as far as a request asks for it.
struct StepForecast {
  std::optional<StepParts> parts;
  std::optional<std::vector<partitioner::PassSeconds>> layers;
  std::vector<std::vector<double>> actions;  // see predicted_actions()
};

// A step takes as long as its slowest rank; its passes are those of this rank.
struct TimedSteps {
  partitioner::Network network;  // as it was timed
  std::vector<double> step_s;    // each step
  StepTimes median;
  double exchange_s = 0;  // part of the passes
  StepParts parts;        // of a mean step, as are layers
  std::vector<LayerComputing> layers;
  double gflops = 0;                    // operations a second of all ranks, 1e9
  std::vector<Index> peak_bytes;        // by rank
  std::optional<double> monitor_share;  // of a core, on the rank where it is most
  StepForecast forecast;
};

// All ranks call it together, with the same request. Throws AgreedError.
[[nodiscard]] TimedSteps time_steps(const TimingRequest& request,
                                    const Communicator& communicator,
                                    const SessionObserver& messages);

}  // namespace tessera::engine
