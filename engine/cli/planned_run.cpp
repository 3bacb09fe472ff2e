#include "engine/cli/planned_run.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/cli/messages.h"
#include "engine/data/batch/augment.h"
#include "engine/data/decoding_need.h"
#include "engine/session/data_setup.h"
#include "engine/session/memory_needs.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/search/explained_plan.h"
#include "partitioner/text/plan_words.h"

namespace tessera::engine {

namespace {

Index most_memory(const std::vector<partitioner::MemoryUse>& ranks) {
  Index most = 0;
  for (const partitioner::MemoryUse& use : ranks) {
    most = std::max(most, use.total());
  }
  return most;
}

}  // namespace

PlannedPictures planned_pictures(const PlanCommand& command,
                                 const partitioner::ModelFile& model,
                                 const partitioner::Network& network,
                                 const std::optional<partitioner::InputSizes>& sizes) {
  RenderingRules rules = rendering_rules(model);
  if (!rules.crop) {
    rules = rules_of_size(rules, sizes ? sizes->largest() : partitioner::size_of(network.image));
  }
  if (command.data.empty()) {
    constexpr Index kUsualPhotoBytes = Index{4} << 20;
    return {.count = command.pictures,
            .cached_bytes = cached_bytes_of_photos(command.pictures, needed_detail(rules)),
            .file_bytes = command.pictures * kUsualPhotoBytes};
  }
  ListedData data({.path = command.data, .model = command.model, .training = true},
                  network,
                  true,
                  Communicator::self(),
                  printed_messages());
  const DataNeeds needs = data.needs(rules);
  expect_data_fits(needs, 0);
  return {.count = data.training_pictures(),
          .cached_bytes = needs.own_cached_bytes,
          .file_bytes = needs.own_file_bytes,
          .decoding_bytes = needs.decoding_bytes,
          .data_bytes = needs.data_bytes};
}

MultiScaleFigures multi_scale_figures(const PlanCommand& command,
                                      PlannedModel model,
                                      const partitioner::ClusterProfile& cluster,
                                      const Workload& workload,
                                      const partitioner::InputSizes& sizes) {
  const partitioner::SizedPlan largest =
      sized_plan(model.network, model.partition, workload.batch, sizes.largest());
  model.options.workspace_bytes =
      workspace_bytes_of_ranks(largest.network, largest.plan, workload.training);
  return {.memory = planned_memory_of_ranks(largest.network, largest.plan, model.options),
          .mean_step_s = mean_step_seconds(
              model.network, cluster, command.partition, workload, model.partition, sizes)};
}

std::vector<FirstSteps> first_steps(const PlanCommand& command,
                                    PlannedModel model,
                                    const partitioner::ClusterProfile& cluster,
                                    const Workload& workload,
                                    const std::optional<partitioner::InputSizes>& sizes) {
  std::vector<FirstSteps> all;
  const auto& partition = model.partition;
  for (const partitioner::FrozenSteps& steps : frozen_layers(model.network).at_first) {
    FirstSteps& first = all.emplace_back();
    first.steps = steps;
    first.begin = all.size() > 1 ? all[all.size() - 2].steps.end + 1 : 1;
    const partitioner::Network network = network_in_step(model.network, steps.end);
    if (sizes) {
      first.figures = multi_scale_figures(
          command, {network, partition, model.options}, cluster, workload, *sizes);
      continue;
    }
    const partitioner::Plan plan = make_plan(network, partition, workload.batch);
    model.options.workspace_bytes = workspace_bytes_of_ranks(network, plan, workload.training);
    first.figures.memory = planned_memory_of_ranks(network, plan, model.options);
    const auto options = prediction_options(network, command.partition, workload, partition);
    first.figures.mean_step_s = time_shares(network, cluster, options, partition).step_s();
  }
  return all;
}

std::string first_steps_lines(const std::vector<FirstSteps>& all) {
  std::string lines;
  for (const FirstSteps& first : all) {
    lines += fmt::format(
        "steps {} to {} of a run: {} frozen, about {} for a step (predicted), up to {} of memory\n",
        first.begin,
        first.steps.end,
        partitioner::named_layers(0, first.steps.last),
        predicted_seconds(first.figures.mean_step_s.value()),
        readable_bytes(most_memory(first.figures.memory)));
  }
  return lines;
}

std::string with_first_steps_json(const std::string& plan, const std::vector<FirstSteps>& all) {
  auto json = nlohmann::ordered_json::parse(plan);
  for (const FirstSteps& first : all) {
    nlohmann::ordered_json& each = json["first_steps"].emplace_back();
    each = {{"begin", first.begin}, {"end", first.steps.end}, {"last_frozen", first.steps.last}};
    for (const partitioner::MemoryUse& memory : first.figures.memory) {
      each["memory_bytes"].push_back(memory.total());
    }
    each["step_s"] = first.figures.mean_step_s.value();
  }
  return json.dump(-1, ' ', true);
}

std::vector<partitioner::MemoryUse> needed_memory(std::vector<partitioner::MemoryUse> planned,
                                                  const std::vector<FirstSteps>& at_first,
                                                  const std::optional<MultiScaleFigures>& scales) {
  for (const FirstSteps& first : at_first) {
    planned = larger_of_ranks(std::move(planned), first.figures.memory);
  }
  if (scales) {
    planned = larger_of_ranks(std::move(planned), scales->memory);
  }
  for (partitioner::MemoryUse& use : planned) {
    use.cache = 0;
  }
  return planned;
}

std::string pictures_line(const PlannedPictures& pictures) {
  if (pictures.cached_bytes == 0) {
    return "";
  }
  const std::string line = fmt::format(
      "{} kept decoded: {} on each device, in files of the run folder where half of its "
      "free memory does not hold them{}",
      counted(pictures.count, "picture"),
      readable_bytes(pictures.cached_bytes),
      pictures.cached_bytes <= pictures.file_bytes
          ? ""
          : "; that is more than the pictures' own files take (train --cache off keeps "
            "none)");
  return "\n" + in_lines(line, 100, 2) + "\n";
}

}  // namespace tessera::engine
