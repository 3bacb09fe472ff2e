// What data sets take of the memory of ranks that read them, known before a partition is chosen.

#pragma once

#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/batch/augment.h"
#include "engine/data/dataset.h"
#include "engine/data/decoding_need.h"

namespace tessera::engine {

struct DataNeeds {
  Index decoding_bytes = 0;     // of one picture of each data set that is read from
  Index data_bytes = 0;         // of what stays in memory
  Index tested_pictures = 0;    // of the data set to test with
  Index largest_bytes = 0;      // of the picture that takes most to decode
  std::string largest_picture;  // its path
  // Of this rank alone: pictures that have to be decoded, and what a cache of all of them holds.
  Index own_pictures = 0;
  Index own_cached_bytes = 0;
  Index own_file_bytes = 0;  // of their files
};

// Adds what a data set takes that is read from beside others, by the headers of all its pictures.
// Those that cannot be read count for nothing: whoever decodes them says why.
void add_needs(const Dataset& dataset, const RenderingRules& rules, DataNeeds& needs);
// The same where what decoding takes is known.
void add_needs(const Dataset& dataset, const DecodingNeed& most, DataNeeds& needs);

// The most that any rank needs, on all ranks, and what is this rank's own. All ranks call this
// together.
[[nodiscard]] DataNeeds most_needs(const DataNeeds& mine, const Communicator& communicator);

// Throws AgreedError on all ranks where a picture takes more to decode than any may, or with the
// program and the data set more than `limit_bytes` (0: no limit).
void expect_data_fits(const DataNeeds& needs, Index limit_bytes);

// What each of so many ranks of a machine may take to look at pictures where nothing says how much:
// half of what is free is left to other programs.
[[nodiscard]] Index memory_to_look(int ranks);

}  // namespace tessera::engine
