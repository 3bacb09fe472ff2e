// What the sections of a .cfg file after [net] mean: one layer each, with Darknet's names, defaults
// and numbering.

#pragma once

#include <string_view>

#include "partitioner/cfg/cfg_options.h"
#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Whether Darknet or a fork of it has such a section, supported here or not.
[[nodiscard]] bool is_layer_section(std::string_view name);

// Appends the layer of this section to `network`. Throws InputError at the section's or the key's
// line.
void read_layer(CfgOptions& options, Network& network);

}  // namespace tessera::partitioner
