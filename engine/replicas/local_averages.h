// Replicas that train each for itself and average their parameters every H steps (local SGD:
// McMahan et al. 2017, Stich 2019). A first part of a run may average gradients in each step
// instead (post-local SGD: Lin et al. 2020), so that parameters stay the same on all.
//
// Velocities and means of the optimizer stay those of each replica. Where messages are compressed,
// what is averaged is the change since the last average.

#pragma once

#include "engine/replicas/replica_average.h"
#include "engine/replicas/synchroniser.h"

namespace tessera::engine {

class LocalAverages final : public Synchroniser {
 public:
  LocalAverages(ReplicaModel model, Index steps, Index gradient_steps);

  void begin(Index steps_done, bool restored) override;
  void update(int bucket, Index step, const std::function<void()>& update) override;
  [[nodiscard]] Index bytes() const override;

 protected:
  std::vector<std::span<float>> extra_state() override;

 private:
  void average_gradients(int bucket);
  void average_values(int bucket);

  Index steps_;
  Index gradient_steps_;
  ReplicaAverage averages_;
  Array<float> average_;  // the last one, of owned elements; only where messages are compressed
};

}  // namespace tessera::engine
