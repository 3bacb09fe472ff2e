// What a head can be told and hardly ever means: anchors in the unit of another kind of head, and
// an activation of the values that it activates itself.

#pragma once

#include "partitioner/cfg/cfg_options.h"
#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Warns of the last layer, which `options` are the section of, where it is a head.
void warn_of_head(CfgOptions& options, const Network& network);

}  // namespace tessera::partitioner
