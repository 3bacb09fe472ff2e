// What plan.json of a run says about layers, groups and tiles; see partitioner/text/plan_report.h
// for all that it holds.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

struct OutlinedLayer {
  std::string kind;
  Index channels = 0;  // of its output
  Index rows = 0;
  Index cols = 0;
};

struct OutlinedTile {
  Region owned;     // of the output of the group's last layer
  Region computed;  // of the output of its first layer
};

// A map from outside that a group reads: another group's output, or the image.
struct OutlinedRead {
  int map = -1;                  // the layer whose output it is; -1: the image
  std::vector<Region> required;  // by rank
};

struct OutlinedGroup {
  int first = 0;  // layers
  int last = 0;
  bool recomputes = false;
  std::vector<OutlinedTile> tiles;       // by rank
  std::vector<OutlinedRead> reads = {};  // by map; empty where an earlier version does not say
  Index messages = 0;                    // between ranks, of one forward pass
  Index message_bytes = 0;
  Index multiply_adds = 0;            // of one forward pass, all ranks
  Index redundant_multiply_adds = 0;  // that another rank computes too
};

struct PlanOutline {
  Index batch = 0;  // images of a pass
  int ranks = 0;
  // The network's input; 0 in files of earlier versions.
  Index image_channels = 0;
  Index image_rows = 0;
  Index image_cols = 0;
  std::vector<OutlinedLayer> layers;
  std::vector<OutlinedGroup> groups;
};

// Nothing where the text is no plan.
[[nodiscard]] std::optional<PlanOutline> plan_outline(std::string_view json);

}  // namespace tessera::engine
