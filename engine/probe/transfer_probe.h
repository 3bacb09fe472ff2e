// Measures what messages cost the kernels that are computed meanwhile, for the profile of a
// cluster.

#pragma once

#include <optional>

#include "engine/comm/communicator.h"
#include "engine/comm/mpi_session.h"

namespace tessera::engine {

// How much longer this rank takes to compute, in seconds that pass, for each byte that it sends or
// receives meanwhile: the network's software takes processor time and caches from kernels, which
// no clock of a thread tells apart. All ranks send to all others, at about `bytes_per_s` in
// each direction, which all give alike, and for about `seconds` in all. None where nothing moves
// while kernels compute: see BulkTransfers for that, and for `by_wire`.
[[nodiscard]] std::optional<double> measure_byte_s_of_kernels(const Communicator& communicator,
                                                              double bytes_per_s,
                                                              double seconds,
                                                              bool by_wire = spans_machines());

}  // namespace tessera::engine
