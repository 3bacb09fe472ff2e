// Ranks that read pictures for themselves must read the same ones: each trains on its tile of what
// it has read. On a cluster a machine may lack a picture, have another one under the same name, or
// sort it into another class.

#pragma once

#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/dataset.h"

namespace tessera::engine {

// Throws AgreedError on all ranks with the first difference in classes, names, sizes, labels or
// contents, and whose it is. Names are compared from the data set's folder, so each machine may
// keep it where it likes; of picture files, `records` says the sizes and contents. `pictures` is
// what to call them: "pictures for training". All ranks call this together.
void expect_same_pictures(const Dataset& dataset,
                          const PictureRecords& records,
                          const std::string& pictures,
                          const Communicator& communicator);

}  // namespace tessera::engine
