// What an execution is asked for, whatever the plan.

#pragma once

#include "partitioner/network/norm_rule.h"

namespace tessera::engine {

struct ExecutionOptions {
  bool training = true;         // gradients, or forward only
  bool image_gradient = false;  // also of the network's input
  bool keep_maps = false;       // so that each map can be looked at after the forward pass; else
                                // only the output and those that losses are taken of
  partitioner::NormRule norm = {};
};

}  // namespace tessera::engine
