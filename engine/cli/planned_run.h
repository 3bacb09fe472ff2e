// What `plan` says of a run beside a step of it: its pictures, its first steps where more layers
// are frozen in them, inputs of several sizes.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/session/multi_scale.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/network/frozen_layers.h"

namespace tessera::engine {

// What is known of the pictures that are to be trained on.
struct PlannedPictures {
  Index count = 0;         // 0: nothing
  Index cached_bytes = 0;  // of all of them, decoded and reduced
  Index file_bytes = 0;    // of the files of those that have to be decoded
  Index decoding_bytes = partitioner::kUsualDecodingBytes;
  Index data_bytes = 0;
};

// By --data, which is listed as `train` does it, or by --pictures: photos of a camera.
[[nodiscard]] PlannedPictures planned_pictures(const PlanCommand& command,
                                               const partitioner::ModelFile& model,
                                               const partitioner::Network& network,
                                               const std::optional<partitioner::InputSizes>& sizes);

// What there is to plan with at another size of the input, or with other layers frozen.
struct PlannedModel {
  const partitioner::Network& network;
  const partitioner::Partition& partition;
  partitioner::ReportOptions options;
};

[[nodiscard]] MultiScaleFigures multi_scale_figures(const PlanCommand& command,
                                                    PlannedModel model,
                                                    const partitioner::ClusterProfile& cluster,
                                                    const Workload& workload,
                                                    const partitioner::InputSizes& sizes);

// The first steps of a run, in which more layers are frozen than in those that are planned.
struct FirstSteps {
  Index begin = 1;
  partitioner::FrozenSteps steps;
  MultiScaleFigures figures;  // at the largest size, or the only one
};

[[nodiscard]] std::vector<FirstSteps> first_steps(
    const PlanCommand& command,
    PlannedModel model,
    const partitioner::ClusterProfile& cluster,
    const Workload& workload,
    const std::optional<partitioner::InputSizes>& sizes);

// Lines for people; the plan with them as JSON.
[[nodiscard]] std::string first_steps_lines(const std::vector<FirstSteps>& all);
[[nodiscard]] std::string with_first_steps_json(const std::string& plan,
                                                const std::vector<FirstSteps>& all);

// What each device needs at any time of the run. Pictures that are kept decoded, and maps, do not
// count: where there is no room for them, they are kept in files or not at all.
[[nodiscard]] std::vector<partitioner::MemoryUse> needed_memory(
    std::vector<partitioner::MemoryUse> planned,
    const std::vector<FirstSteps>& at_first,
    const std::optional<MultiScaleFigures>& scales);

// What a cache of decoded pictures comes to, and beside which files; empty where there is none.
[[nodiscard]] std::string pictures_line(const PlannedPictures& pictures);

}  // namespace tessera::engine
