// What each layer takes a rank to compute: the time between messages, by layer and pass.

#pragma once

#include <vector>

#include "engine/comm/communicator.h"
#include "partitioner/cost/compute_model.h"

namespace tessera::engine {

// At any time one pass of one layer runs. What the communicator's exchanges take is not counted.
class LayerClock {
 public:
  using Pass = double partitioner::PassSeconds::*;

  LayerClock(const Communicator& communicator, int layers)
      : communicator_(&communicator), times_(static_cast<std::size_t>(layers)) {}

  // Until the next call, or stop(), time goes to this pass of the layer.
  void start(int layer, Pass pass);
  void stop();

  // Counts time for another pass as long as it lives, then for the one before it again.
  class Aside {
   public:
    Aside(LayerClock& clock, int layer, Pass pass) : clock_(clock), running_(clock.running_) {
      clock.start(layer, pass);
    }
    ~Aside() { clock_.run(running_); }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    LayerClock& clock_;
    double* running_;
  };

  // By layer, of all passes since the last call.
  [[nodiscard]] std::vector<partitioner::PassSeconds> take();

 private:
  void run(double* sum);

  const Communicator* communicator_;
  std::vector<partitioner::PassSeconds> times_;
  double* running_ = nullptr;  // where time goes now
  double since_s_ = 0;         // and from when
  double exchanged_s_ = 0;     // exchanges before that
};

}  // namespace tessera::engine
