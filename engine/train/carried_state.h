// What training has come to, on its way from one plan to another while a run goes on: parameters
// and optimizer state, each rank with what it owned. Restarting from a checkpoint without the file:
// what is not in one is not carried either, see checkpoint.h.

#pragma once

#include <vector>

#include "engine/comm/communicator.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

class CarriedState {
 public:
  // Takes the state of a trainer under `plan`; null on a rank that takes no part. Trainer and plan
  // need not outlive this. All ranks that take part call it together.
  CarriedState(const partitioner::Plan& plan, Trainer* trainer);

  // Gives it to a trainer of the same network and optimizer under another plan, in which other
  // layers may be frozen: a layer's state of the optimizer stays as it is unless it learns in both.
  // Null on a rank that takes no part. All ranks of both plans, and of `communicator`, call this
  // together.
  void give(const partitioner::Plan& plan,
            Trainer* trainer,
            const Communicator& communicator) const;

 private:
  struct Tensor {
    partitioner::ParameterPlan plan;
    std::vector<float> values;  // that this rank owned, run after run
    std::vector<float> first;   // state of the optimizer, likewise
    std::vector<float> second;
    std::vector<float> average;
  };

  std::vector<Tensor> tensors_;
  Index steps_ = 0;
  std::vector<double> latest_losses_;  // see Trainer::latest_losses()
  partitioner::TrainedArrays trained_;
};

}  // namespace tessera::engine
