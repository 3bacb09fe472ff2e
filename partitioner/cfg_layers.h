// What the sections of a .cfg file after [net] mean: one layer each, with Darknet's names, defaults
// and numbering.

#pragma once

#include "partitioner/cfg_options.h"
#include "partitioner/network.h"

namespace partitioner {

// Appends the layer of this section to `network`. Throws InputError at the section's or the key's
// line.
void read_layer(CfgOptions& options, Network& network);

}  // namespace partitioner
