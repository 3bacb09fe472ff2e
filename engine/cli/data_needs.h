// What data sets take of the memory of ranks that read them, known before a partition is chosen.

#pragma once

#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/data/augment.h"
#include "engine/data/dataset.h"

namespace engine {

struct DataNeeds {
  Index decoding_bytes = 0;     // of one picture for each half that is read from
  Index data_bytes = 0;         // of what stays in memory
  Index largest_bytes = 0;      // of the picture that takes most to decode
  std::string largest_picture;  // its path
};

// Of the halves of the data set at `path` that a run reads from, by the headers of all pictures;
// the most of any rank, on all ranks. `reads`: whether this rank reads. What cannot be opened or
// read counts for nothing: whoever opens it for use says why. All ranks call this together.
[[nodiscard]] DataNeeds data_needs(const std::string& path,
                                   bool with_testing,
                                   const RenderingRules& rules,
                                   bool reads,
                                   const Communicator& communicator);

// Throws AgreedError on all ranks where a picture takes more to decode than any may, or with the
// program and the data set more than `limit_bytes` (0: no limit).
void expect_data_fits(const DataNeeds& needs, Index limit_bytes);

}  // namespace engine
