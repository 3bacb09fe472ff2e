// Data sets of ranks that are parts of one: each rank has pictures of its own, and what all have in
// common is the kind of pictures and their classes.

#pragma once

#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/inspection/data_summary.h"

namespace tessera::engine {

// "{rank}" in a path stands for the number of the rank.
[[nodiscard]] std::string path_of_rank(const std::string& path, int rank);

// Throws AgreedError where two ranks of one machine would read the same data. All ranks call this
// together.
void expect_own_path(const std::string& path, const Communicator& communicator);

// Gives all halves the classes of all ranks: of picture files the sorted names of all, of pictures
// held as bytes the longest list, with which the others have to begin. A rank without a half gets
// an empty one where others have it. Throws AgreedError where ranks have unlike kinds of pictures,
// or lists that do not fit. `channels` of the network's input. All ranks call this together.
void unite(InspectedData& data, Index channels, const Communicator& communicator);

// "1200 pictures on 3 ranks, 2 classes (cat, dog), 90 for testing": on all ranks, which call this
// together.
[[nodiscard]] std::string summary_of_ranks(const InspectedData& data,
                                           const Communicator& communicator);

}  // namespace tessera::engine
