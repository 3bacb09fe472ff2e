#include <algorithm>

#include "engine/chart/bar_chart.h"
#include "engine/page/sections.h"
#include "engine/page/words.h"

namespace tessera::engine {

using partitioner::MemoryUse;

namespace {

const std::vector<BarPart> kMemoryParts = {{"weights", 0},
                                           {"gradients", 1},
                                           {"optimizer", 2},
                                           {"activations", 3},
                                           {"workspace", 4},
                                           {"messages", 5},
                                           {"pictures, cache", 6},
                                           {"program, data, decoding", 7}};

std::vector<double> parts_of(const MemoryUse& use, double rest_bytes) {
  std::vector<double> values;
  for (const Index bytes : {use.weights,
                            use.gradients,
                            use.optimizer,
                            use.activations,
                            use.workspace,
                            use.messages,
                            use.pictures + use.cache}) {
    values.push_back(static_cast<double>(bytes));
  }
  values.push_back(rest_bytes);
  return values;
}

BarGroup group_of(const RunData& run, const RankMemory& rank) {
  const auto planned_rest =
      static_cast<double>(rank.planned.decoding + rank.planned.data + rank.planned.program);
  BarGroup group{rank_name(run, rank.rank), {}};
  group.bars.push_back({"planned", parts_of(rank.planned, planned_rest), true});
  // What the process had beside all that was counted.
  const double measured_rest =
      known(rank.peak_resident_bytes)
          ? std::max(0.0,
                     rank.peak_resident_bytes -
                         static_cast<double>(rank.measured.of_network() + rank.measured.cache))
          : 0;
  if (rank.measured.total() > 0 || measured_rest > 0) {
    group.bars.push_back({"measured", parts_of(rank.measured, measured_rest), false});
  }
  return group;
}

}  // namespace

PageSection memory_section(const RunData& run) {
  PageSection section{.id = "memory-section", .title = "Memory"};
  if (run.memory.empty()) {
    section.missing = "Memory by kind: memory.json is written when a run ends.";
    return section;
  }
  BarChart chart;
  chart.id = "memory";
  chart.title = "Memory of each device, by kind";
  chart.unit = Unit::Bytes;
  chart.parts = kMemoryParts;
  chart.wide = true;
  for (const RankMemory& rank : run.memory) {
    chart.groups.push_back(group_of(run, rank));
  }
  if (run.info && known(run.info->memory_limit_bytes)) {
    chart.levels.push_back({run.info->memory_limit_bytes, "limit"});
  }
  chart.note =
      "Measured bars are as long as the process was at its peak: what the network does not account "
      "for is the program, its data and decoding.";
  section.html = "<div class=\"grid-of-2\">\n" + bar_chart_html(chart) + "</div>\n";
  return section;
}

}  // namespace tessera::engine
