#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/data/batch/augment.h"
#include "engine/data/decoding_need.h"
#include "engine/files/atomic_file.h"
#include "engine/ops/loops/threads.h"
#include "engine/probe/kernel_trial.h"
#include "engine/session/memory_needs.h"
#include "engine/session/model_setup.h"
#include "engine/session/multi_scale.h"
#include "engine/session/planning.h"
#include "engine/session/trunk_figures.h"
#include "engine/train/optimizer.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/network/frozen_layers.h"
#include "partitioner/text/explain.h"
#include "partitioner/text/plan_answer.h"
#include "partitioner/text/plan_report.h"
#include "partitioner/text/plan_words.h"

namespace tessera::engine {

namespace {

// The ranks of one replica where their number is not given: as many as the partition wants.
int ranks_of_replica(const PlanCommand& command) {
  if (!command.partition.file.empty()) {
    return partitioner::read_partition(command.partition.file).ranks;
  }
  if (command.partition.cut.grid) {
    const auto [rows, cols] = *command.partition.cut.grid;
    return static_cast<int>(rows * cols);
  }
  return 1;
}

// With no number of ranks given: as many as the partition wants, or as the cluster has devices.
int ranks_of(const PlanCommand& command) {
  if (command.ranks > 0) {
    return command.ranks;
  }
  if (command.partition.automatic) {
    if (const auto devices = profiled_devices(command.partition)) {
      return *devices;
    }
    throw InputError(
        "--partition auto: for how many devices? Give --ranks N, or describe them with --cluster");
  }
  return ranks_of_replica(command) * requested_replicas(command.partition).count;
}

// --batch is that of a step of one pass.
Workload workload_of(const PlanCommand& command, const partitioner::ModelFile& model) {
  const partitioner::TrainingOptions& training = model.training;
  return {.model = command.model,
          .batch = command.batch > 0 ? command.batch : training.batch / training.subdivisions,
          .passes = command.batch > 0 ? 1 : training.subdivisions,
          .trained = trained_arrays(training),
          .kept = {.is_on = command.keeps_state}};
}

struct Prediction {
  partitioner::AnsweredStep answer;
  std::optional<partitioner::Explanation> explanation;  // where it is asked for
};

// Where samples lie, if it is said.
std::optional<partitioner::DataLocation> data_location(const PlanCommand& command,
                                                       const partitioner::ClusterProfile& cluster) {
  if (command.samples.empty()) {
    return std::nullopt;
  }
  if (std::ssize(command.samples) != cluster.size()) {
    throw InputError(fmt::format(
        "--samples: {} numbers, and there are {} devices", command.samples.size(), cluster.size()));
  }
  return partitioner::DataLocation{command.samples, command.sample_bytes, command.epochs};
}

Prediction predict(const PlanCommand& command,
                   const partitioner::Network& network,
                   const partitioner::ClusterProfile& cluster,
                   const Workload& workload,
                   const partitioner::Partition& partition) {
  const partitioner::SearchOptions options =
      prediction_options(network, command.partition, workload, partition);
  Prediction prediction{
      answered_step(network, cluster, options, explained(network, cluster, options, partition)),
      std::nullopt};
  if (command.explain) {
    partitioner::Explanation& explanation = prediction.explanation.emplace();
    explanation.alternatives =
        compare_alternatives(network, cluster, options, partition, data_location(command, cluster));
    explanation.plans = compare_with_baselines(network, cluster, options, partition);
    explanation.counts = compare_device_counts(network, cluster, options);
    if (cluster.size() > 1) {
      explanation.all_reduces =
          compare_all_reduce_algorithms(network, cluster, partition.gradient_reduction);
    }
    explanation.measured_all_reduces = compare_measured_all_reduces(cluster);
  }
  return prediction;
}

std::string with_prediction_json(const std::string& plan, const Prediction& prediction) {
  using Json = nlohmann::ordered_json;
  auto json = Json::parse(plan);
  Json& step = json["prediction"] = Json::parse(prediction_json(prediction.answer.step));
  if (const auto factor = prediction.answer.speed_up()) {
    step["speed_up"] = *factor;  // beside the best step of one device
  }
  if (prediction.answer.single) {
    step["one_device_s"] = prediction.answer.single->time.step_s();
    step["why_faster"] =
        why_faster(*prediction.answer.single, prediction.answer.step, prediction.answer.devices);
  }
  if (prediction.explanation) {
    json["explanation"] = Json::parse(explanation_json(*prediction.explanation));
  }
  return json.dump(-1, ' ', true);  // ASCII: names may hold what turns a terminal's text
}

// What there is to plan with at another size of the input.
struct PlannedModel {
  const partitioner::Network& network;
  const partitioner::Partition& partition;
  partitioner::ReportOptions options;
  Index photos_bytes = 0;  // of them: decoded photos
};

MultiScaleFigures multi_scale_figures(const PlanCommand& command,
                                      PlannedModel model,
                                      const std::optional<partitioner::ClusterProfile>& cluster,
                                      const Workload& workload,
                                      const partitioner::InputSizes& sizes) {
  const partitioner::SizedPlan largest =
      sized_plan(model.network, model.partition, workload.batch, sizes.largest());
  model.options.workspace_bytes =
      workspace_bytes_of_ranks(largest.network, largest.plan, workload.training);
  return {
      .memory = planned_memory_of_ranks(largest.network, largest.plan, model.options),
      .mean_step_s =
          cluster
              ? std::optional(mean_step_seconds(
                    model.network, *cluster, command.partition, workload, model.partition, sizes))
              : std::nullopt};
}

// The first steps of a run, in which more layers are frozen than in those that are planned.
struct FirstSteps {
  Index begin = 1;
  partitioner::FrozenSteps steps;
  MultiScaleFigures figures;  // at the largest size, or the only one
};

std::vector<FirstSteps> first_steps(const PlanCommand& command,
                                    PlannedModel model,
                                    const std::optional<partitioner::ClusterProfile>& cluster,
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
    if (cluster) {
      const auto options = prediction_options(network, command.partition, workload, partition);
      first.figures.mean_step_s = time_shares(network, *cluster, options, partition).step_s();
    }
  }
  return all;
}

Index most_memory(const std::vector<partitioner::MemoryUse>& ranks) {
  Index most = 0;
  for (const partitioner::MemoryUse& use : ranks) {
    most = std::max(most, use.total());
  }
  return most;
}

std::string first_steps_lines(const std::vector<FirstSteps>& all) {
  std::string lines;
  for (const FirstSteps& first : all) {
    lines += fmt::format(
        "steps {} to {} of a run: {} frozen{}, up to {} of memory\n",
        first.begin,
        first.steps.end,
        partitioner::named_layers(0, first.steps.last),
        first.figures.mean_step_s
            ? fmt::format(", {:.3g} s for a step (predicted)", *first.figures.mean_step_s)
            : "",
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
    if (first.figures.mean_step_s) {
      each["step_s"] = *first.figures.mean_step_s;
    }
  }
  return json.dump(-1, ' ', true);
}

// The plan with one more object of JSON.
std::string with_object(const std::string& plan, const char* key, const std::string& object) {
  auto json = nlohmann::ordered_json::parse(plan);
  json[key] = nlohmann::ordered_json::parse(object);
  return json.dump(-1, ' ', true);
}

// What is asked first comes first; tables only where they are asked for.
std::string answer_text(const PlanCommand& command,
                        const partitioner::Network& network,
                        const partitioner::Plan& plan,
                        const partitioner::Partition& partition,
                        const partitioner::ReportOptions& options,
                        const std::optional<Prediction>& prediction,
                        const std::vector<FirstSteps>& at_first) {
  auto memory = planned_memory_of_ranks(network, plan, options);
  for (const FirstSteps& first : at_first) {
    memory = larger_of_ranks(memory, first.figures.memory);
  }
  const auto step = prediction ? std::optional(prediction->answer) : std::nullopt;
  std::string text = plan_answer(step, memory, command.partition.automatic) + "\n" +
                     (command.regions ? plan_table(network, plan, partition, options)
                                      : plan_overview(network, plan, partition, options));
  if (prediction && prediction->explanation) {
    text += "\n" + explanation_table(*prediction->explanation);
  }
  return text;
}

// A file for each plan, by its name: "next best" becomes next-best.toml.
void save_plans(const std::filesystem::path& folder,
                const std::vector<partitioner::ExplainedPlan>& plans) {
  std::error_code unwritable;  // then the first file says so
  std::filesystem::create_directories(folder, unwritable);
  for (const partitioner::ExplainedPlan& plan : plans) {
    std::string name = plan.name;
    std::replace(name.begin(), name.end(), ' ', '-');
    write_atomically(folder / (name + ".toml"), to_text(plan.partition));
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_scale(const PlanCommand& command,
                 const partitioner::Network& network,
                 const Workload& workload) {
  const int described = profiled_devices(command.partition).value_or(1);
  const auto cluster = described_cluster(command.partition, described, printed_messages());
  std::vector<partitioner::ScaledStep> steps;
  for (int devices = 1; devices <= command.scale; devices *= 2) {
    const auto part = cluster_of_size(network, cluster, devices);
    partitioner::SearchOptions options =
        search_options(network, command.partition, workload, devices);
    options.counts_memory = false;
    options.candidates = 1;
    const auto start = std::chrono::steady_clock::now();
    const auto result = search_partition(network, part, options);
    const double planning_s = seconds_since(start);
    steps.push_back({devices,
                     time_shares(network, part, options, result.candidates.front().partition),
                     planning_s});
    if (command.json) {  // a line at once: the next may take long
      fmt::print("{}\n", scale_json(steps.back()));
      std::fflush(stdout);
    }
  }
  if (!command.json) {
    fmt::print("{}", scale_table(steps));
  }
}

// On each device: ranks of one machine share it.
Index cache_bytes(const PlanCommand& command,
                  const partitioner::ModelFile& model,
                  const partitioner::InputSize& size) {
  RenderingRules rules = rendering_rules(model);
  if (!rules.crop) {
    rules = rules_of_size(rules, size);
  }
  return cached_bytes_of_photos(command.photos, needed_detail(rules));
}

// What a cache of photos comes to, and beside which files.
std::string photos_line(const PlanCommand& command, Index bytes) {
  constexpr Index kUsualPhotoBytes = Index{4} << 20;
  return command.photos == 0
             ? ""
             : fmt::format(
                   "\n{} kept decoded: {} on each device, in files of the run folder where "
                   "half of its free memory does not hold them{}\n",
                   counted(command.photos, "photo"),
                   readable_bytes(bytes),
                   bytes <= command.photos * kUsualPhotoBytes
                       ? ""
                       : "; that is more than the photos' own files usually take (train "
                         "--cache off keeps none)");
}

void print_answer(const PlanCommand& command,
                  const PlannedModel& model,
                  const partitioner::Plan& plan,
                  const std::optional<Prediction>& prediction,
                  const std::vector<FirstSteps>& at_first,
                  const std::optional<TrunkFigures>& trunk,
                  const std::optional<partitioner::InputSizes>& sizes,
                  const std::optional<MultiScaleFigures>& scales) {
  const auto& [network, partition, options, photos_bytes] = model;
  if (!command.json) {
    fmt::print("{}{}{}{}{}",
               answer_text(command, network, plan, partition, options, prediction, at_first),
               first_steps_lines(at_first),
               trunk ? trunk_line(*trunk) : "",
               photos_line(command, photos_bytes),
               sizes ? multi_scale_line(*sizes, *scales) : "");
    return;
  }
  std::string json = plan_json(network, plan, options);
  json = prediction ? with_prediction_json(json, *prediction) : json;
  json = at_first.empty() ? json : with_first_steps_json(json, at_first);
  json = trunk ? with_object(json, "trunk_cache", trunk_json(*trunk)) : json;
  json = sizes ? with_object(json, "multi_scale", multi_scale_json(*sizes, *scales)) : json;
  fmt::print("{}\n", json);
}

partitioner::Partition planned_partition(const PlanCommand& command,
                                         const partitioner::Network& network,
                                         const std::optional<partitioner::ClusterProfile>& cluster,
                                         const Workload& workload,
                                         const std::optional<partitioner::InputSizes>& sizes,
                                         int ranks) {
  partitioner::Partition partition = partition_for_sizes(
      network, command.partition, workload.batch, sizes, [&](const partitioner::Network& planned) {
        return command.partition.automatic
                   ? search_automatically(planned, *cluster, command.partition, workload)
                   : chosen_partition(planned, command.partition, ranks, workload.batch);
      });
  if (!command.partition.automatic && command.keeps_state) {
    choose_optimizer(network, *cluster, command.partition, workload, partition);
  }
  return partition;
}

}  // namespace

void run_plan(const PlanCommand& command) {
  expect_usable_threads();
  const partitioner::ModelFile model =
      load_model(command.model, Communicator::self(), printed_messages());
  const partitioner::Network network = frozen(resized(model.network, command.size), command.freeze);
  const Workload workload = workload_of(command, model);
  const auto sizes = input_sizes(model, network, command.multi_scale, command.model);
  if (command.scale > 0) {
    print_scale(command, network, workload);
    return;
  }
  const Index batch = workload.batch;
  const int ranks = ranks_of(command);
  std::optional<partitioner::ClusterProfile> cluster;
  if (command.partition.automatic || command.explain || command.keeps_state ||
      !command.partition.cluster.empty()) {
    cluster = described_cluster(command.partition, ranks, printed_messages());
  }
  partitioner::Partition partition =
      planned_partition(command, network, cluster, workload, sizes, ranks);
  partitioner::Plan plan = make_plan(network, partition, batch);
  if (command.measures_kernels) {
    partition.kernels = fastest_kernels(network, plan);
    limit_workspace(network, command.partition, batch, partition);
    plan = make_plan(network, partition, batch);
  }
  for (const std::string& violation : check(network, plan)) {
    fmt::print(stderr, "tessera: warning: the plan breaks an invariant: {}\n", violation);
  }
  partitioner::ReportOptions options =
      report_options(command.model, network, plan, trained_arrays(model.training));
  options.program_bytes = profiled_program_bytes(command.partition, ranks);
  options.tile_statistics =
      command.batch_norm == BatchNormMode::PerTile && busy_ranks(partition).size() > 1;
  options.memory.decoding_bytes = partitioner::kUsualDecodingBytes;
  options.memory.kept = workload.kept;
  options.memory.cache_bytes =
      cache_bytes(command, model, sizes ? sizes->largest() : partitioner::size_of(network.image));
  const Index photos_bytes = options.memory.cache_bytes;
  // Where more layers learn later, or inputs have several sizes, no maps are kept.
  const auto trunk = frozen_layers(network).at_first.empty() && !sizes
                         ? trunk_figures(command.partition,
                                         network,
                                         workload,
                                         partition,
                                         plan,
                                         cluster,
                                         command.photos,
                                         command.variants)
                         : std::nullopt;
  if (trunk && !trunk->obstacle && command.variants > 0) {
    const auto kept = trunk_bytes_of_ranks(network, plan, command.photos * command.variants, 2);
    options.memory.cache_bytes += *std::max_element(kept.begin(), kept.end());
  }
  if (!command.save.empty()) {
    write_atomically(command.save, to_text(partition), Links::Follow);
  }
  std::optional<Prediction> prediction;
  if (cluster) {
    prediction = predict(command, network, *cluster, workload, partition);
    if (!command.save_baselines.empty()) {
      save_plans(command.save_baselines, prediction->explanation.value().plans);
    }
  }
  std::optional<MultiScaleFigures> scales;
  if (sizes) {
    expect_plans(network, partition, batch, *sizes, command.model);
    scales = multi_scale_figures(command, {network, partition, options}, cluster, workload, *sizes);
  }
  const PlannedModel planned{network, partition, options, photos_bytes};
  const auto at_first = first_steps(command, planned, cluster, workload, sizes);
  print_answer(command, planned, plan, prediction, at_first, trunk, sizes, scales);
}

}  // namespace tessera::engine
