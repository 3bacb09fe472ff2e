// A parameter tensor, or something laid out like it, on its way from who has it under one plan to
// who is to have it under another. Each element goes straight from its owner to all who have a
// place for it; ranks of which neither plan asks anything send and receive nothing.
//
// Elements count in the whole tensor, as in ParameterPlan; where they lie is said as in
// parameter_chunks.h.

#pragma once

#include <vector>

#include "engine/execution/parameter_chunks.h"

namespace tessera::engine {

// `from` has each element once; `mine` is this rank's array of it, `now` that of `to`, which this
// assigns. Both may be the same, where elements stay where they are. All ranks call this together.
template <class T>
void regrid_elements(const Communicator& communicator,
                     const std::vector<PlacedRun>& from,
                     const T* mine,
                     const std::vector<PlacedRun>& to,
                     T* now);

}  // namespace tessera::engine
