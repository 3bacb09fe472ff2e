// What an execution is asked for, whatever the plan.

#pragma once

namespace tessera::engine {

struct ExecutionOptions {
  bool training = true;         // gradients, or forward only
  bool image_gradient = false;  // also of the network's input
  bool keep_maps = false;       // so that each map can be looked at after the forward pass; else
                                // only the output and those that losses are taken of
  double batch_norm_rate = 0.1;
  double batch_norm_epsilon = 1e-5;
};

}  // namespace tessera::engine
