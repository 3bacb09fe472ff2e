// Whether a network's last map fits the classes of a data set: one value of an image for each
// class.

#pragma once

#include <string>

#include "engine/data/dataset.h"
#include "partitioner/network.h"

namespace engine {

// Throws InputError where the loss of a network is over more or fewer values than the data set at
// `path` has classes; the message names the layer of the model file to change, and how.
void expect_output_for_each_class(const partitioner::Network& network,
                                  const std::string& model,
                                  const Dataset& dataset,
                                  const std::string& path);

}  // namespace engine
