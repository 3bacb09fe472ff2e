#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/cli/planned_run.h"
#include "engine/files/atomic_file.h"
#include "engine/ops/loops/threads.h"
#include "engine/probe/kernel_trial.h"
#include "engine/session/memory_needs.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/session/training_length.h"
#include "engine/session/trunk_figures.h"
#include "engine/system/exit_code.h"
#include "engine/train/optimizer.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/partition/scaled_partition.h"
#include "partitioner/plan/plan_size.h"
#include "partitioner/search/best_partition.h"
#include "partitioner/text/device_names.h"
#include "partitioner/text/explain.h"
#include "partitioner/text/partition_outline.h"
#include "partitioner/text/plan_answer.h"
#include "partitioner/text/plan_report.h"

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

// Where nothing says how to cut, and there is something to search by, a search does.
PlanCommand with_search(PlanCommand command) {
  PartitionRequest& request = command.partition;
  if ((!request.cluster.empty() || request.memory_limit_bytes) && command.ranks == 0 &&
      request.file.empty() && request.cut == partitioner::CutRequest() && !request.automatic) {
    request.automatic = true;
    command.ranks = profiled_devices(request).value_or(1);
  }
  return command;
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

// What is to be planned, before it is known how to cut it.
struct AskedRun {
  partitioner::Network network;
  partitioner::TrainingOptions training;
  std::optional<partitioner::InputSizes> sizes;
  PlannedPictures pictures;
  Workload workload;
};

AskedRun asked_run(const PlanCommand& command) {
  const partitioner::ModelFile model =
      load_model(command.model, Communicator::self(), printed_messages());
  AskedRun run;
  run.network = frozen(resized(model.network, command.size), command.freeze);
  run.training = training_options(
      {.model = command.model, .batch = command.batch, .subdivisions = command.subdivisions},
      model);
  run.sizes = input_sizes(model, run.network, command.multi_scale, command.model);
  run.pictures = planned_pictures(command, model, run.network, run.sizes);
  run.workload = {.model = command.model,
                  .batch = run.training.batch / run.training.subdivisions,
                  .passes = run.training.subdivisions,
                  .trained = trained_arrays(run.training),
                  .kept = {.is_on = command.keeps_state},
                  .decoding_bytes = run.pictures.decoding_bytes,
                  .data_bytes = run.pictures.data_bytes};
  return run;
}

struct Prediction {
  partitioner::PlanAnswer answer;
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
  Prediction prediction;
  partitioner::PlanAnswer& answer = prediction.answer;
  answer.of =
      answered_step(network, cluster, options, explained(network, cluster, options, partition));
  answer.names = device_names(cluster);
  answer.limits = memory_limits(cluster, options);
  answer.is_searched = command.partition.automatic;
  answer.is_assumed = !profiled_devices(command.partition);
  answer.step_s = answer.of.step.time.step_s();
  answer.images = workload.batch * workload.passes;
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

// The plan with one more object of JSON.
std::string with_object(const std::string& plan, const char* key, const std::string& object) {
  auto json = nlohmann::ordered_json::parse(plan);
  json[key] = nlohmann::ordered_json::parse(object);
  return json.dump(-1, ' ', true);
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

// All that is said of a plan.
struct Findings {
  Prediction prediction;
  std::vector<FirstSteps> at_first;
  std::optional<TrunkFigures> trunk;
  std::optional<MultiScaleFigures> scales;  // where the input has several sizes
};

void print_answer(const PlanCommand& command,
                  const PlannedModel& model,
                  const partitioner::Plan& plan,
                  const AskedRun& run,
                  const Findings& findings) {
  const auto& [network, partition, options] = model;
  const auto& [prediction, at_first, trunk, scales] = findings;
  const auto& explanation = prediction.explanation;
  if (!command.json) {
    fmt::print("{}\n{}{}{}{}{}{}",
               plan_answer(prediction.answer),
               command.regions ? plan_table(network, plan, partition, options)
                               : plan_overview(network, plan, partition, options),
               explanation ? "\n" + explanation_table(*explanation) : "",
               first_steps_lines(at_first),
               trunk ? trunk_line(*trunk) : "",
               pictures_line(run.pictures),
               scales ? multi_scale_line(*run.sizes, *scales) : "");
    return;
  }
  std::string json = plan_json(network, plan, options);
  json = with_object(json, "prediction", answer_json(prediction.answer));
  json = explanation ? with_object(json, "explanation", explanation_json(*explanation)) : json;
  json = at_first.empty() ? json : with_first_steps_json(json, at_first);
  json = trunk ? with_object(json, "trunk_cache", trunk_json(*trunk)) : json;
  json = scales ? with_object(json, "multi_scale", multi_scale_json(*run.sizes, *scales)) : json;
  fmt::print("{}\n", json);
}

struct FoundPartition {
  partitioner::Partition partition;
  std::string why_nothing_fits = {};  // where it is the smallest that was found
};

FoundPartition planned_partition(const PlanCommand& command,
                                 const AskedRun& run,
                                 const partitioner::ClusterProfile& cluster) {
  const Workload& workload = run.workload;
  FoundPartition found;
  const auto find = [&](const partitioner::Network& planned) {
    if (!command.partition.automatic) {
      PartitionRequest request = command.partition;
      request.memory_limit_bytes.reset();  // what is planned is compared with it
      return chosen_partition(planned, request, cluster.size(), workload.batch);
    }
    try {
      return search_automatically(planned, cluster, command.partition, workload);
    } catch (const partitioner::NothingFits& nothing) {
      found.why_nothing_fits = run.sizes ? at_largest(nothing.why(), *run.sizes) : nothing.why();
      const partitioner::Replicas replicas = requested_replicas(command.partition);
      return replicas.count == 1
                 ? nothing.smallest()
                 : replicated(nothing.smallest(), replicas, workload.batch / replicas.count);
    }
  };
  found.partition =
      partition_for_sizes(run.network, command.partition, workload.batch, run.sizes, find);
  if (!command.partition.automatic && command.keeps_state) {
    choose_optimizer(run.network, cluster, command.partition, workload, found.partition);
  }
  return found;
}

// What is counted of memory, without maps that are kept.
partitioner::ReportOptions report_options_of(const PlanCommand& command,
                                             const AskedRun& run,
                                             const partitioner::ClusterProfile& cluster,
                                             const partitioner::Partition& partition,
                                             const partitioner::Plan& plan) {
  partitioner::ReportOptions options =
      report_options(command.model, run.network, plan, run.workload.trained);
  options.program_bytes = program_bytes(cluster);
  options.tile_statistics =
      command.batch_norm == BatchNormMode::PerTile && busy_ranks(partition).size() > 1;
  options.memory.decoding_bytes = run.pictures.decoding_bytes;
  options.memory.data_bytes = run.pictures.data_bytes;
  options.memory.kept = run.workload.kept;
  options.memory.cache_bytes = run.pictures.cached_bytes;
  return options;
}

Findings findings_of(const PlanCommand& command,
                     PlannedModel& model,
                     const partitioner::Plan& plan,
                     const AskedRun& run,
                     const partitioner::ClusterProfile& cluster) {
  const auto& [network, training, sizes, pictures, workload] = run;
  Findings findings;
  // Where more layers learn later, or inputs have several sizes, no maps are kept.
  if (frozen_layers(network).at_first.empty() && !sizes) {
    findings.trunk = trunk_figures(command.partition,
                                   network,
                                   workload,
                                   model.partition,
                                   plan,
                                   cluster,
                                   pictures.count,
                                   command.variants);
  }
  if (findings.trunk && !findings.trunk->obstacle && command.variants > 0) {
    const auto kept = trunk_bytes_of_ranks(network, plan, pictures.count * command.variants, 2);
    model.options.memory.cache_bytes += *std::max_element(kept.begin(), kept.end());
  }
  findings.prediction = predict(command, network, cluster, workload, model.partition);
  partitioner::PlanAnswer& answer = findings.prediction.answer;
  if (sizes) {
    expect_plans(network, model.partition, workload.batch, *sizes, command.model);
    findings.scales = multi_scale_figures(command, model, cluster, workload, *sizes);
    answer.step_s = findings.scales->mean_step_s.value();
  }
  findings.at_first = first_steps(command, model, cluster, workload, sizes);
  answer.memory = needed_memory(
      planned_memory_of_ranks(network, plan, model.options), findings.at_first, findings.scales);
  answer.pictures = pictures.count;
  return findings;
}

// With a line for those who look at neither the answer nor the exit code.
int does_not_fit(const PlanCommand& command) {
  if (command.json) {
    fmt::print(stderr,
               "tessera: {}: does not fit into memory: see \"prediction\"\n",
               printable(command.model));
  }
  return kDoesNotFit;
}

int exit_code_of(const PlanCommand& command, const partitioner::PlanAnswer& answer) {
  const bool is_given = !answer.is_assumed || command.partition.memory_limit_bytes;
  return is_given && !answer.fits() ? does_not_fit(command) : 0;
}

// Of so many ranks that nothing makes their whole plan.
int outline_plan(const PlanCommand& command,
                 const AskedRun& run,
                 const partitioner::ClusterProfile& cluster,
                 const FoundPartition& found) {
  const auto& [network, training, sizes, pictures, workload] = run;
  const partitioner::Partition& partition = found.partition;
  const auto memory_of = [&](const partitioner::Network& sized, const partitioner::Partition& cut) {
    return searched_memory(
        sized, cluster, prediction_options(sized, command.partition, run.workload, cut), cut);
  };
  Prediction prediction = predict(command, network, cluster, workload, partition);
  partitioner::PlanAnswer& answer = prediction.answer;
  answer.memory = memory_of(network, partition);
  answer.why_nothing_fits = found.why_nothing_fits;
  answer.pictures = pictures.count;
  std::optional<MultiScaleFigures> scales;
  if (sizes) {
    const partitioner::Network largest = with_input(network, sizes->largest());
    scales = {.memory = memory_of(largest, scaled(partition, network, largest)),
              .mean_step_s = mean_step_seconds(
                  network, cluster, command.partition, workload, partition, *sizes)};
    answer.memory = needed_memory(std::move(answer.memory), {}, scales);
    answer.step_s = scales->mean_step_s.value();
  }
  if (!command.save.empty()) {
    write_atomically(command.save, to_text(partition), Links::Follow);
  }
  const partitioner::OutlinedPartition outlined{
      command.model, network, partition, workload.batch, answer.memory};
  if (command.json) {
    std::string json = with_object(outline_json(outlined), "prediction", answer_json(answer));
    json = sizes ? with_object(json, "multi_scale", multi_scale_json(*sizes, *scales)) : json;
    fmt::print("{}\n", json);
  } else {
    fmt::print("{}\n{}{}",
               plan_answer(answer),
               outline_text(outlined),
               sizes ? multi_scale_line(*sizes, *scales) : "");
  }
  return exit_code_of(command, answer);
}

}  // namespace

int run_plan(const PlanCommand& given) {
  expect_usable_threads();
  const PlanCommand command = with_search(given);
  const AskedRun run = asked_run(command);
  if (command.scale > 0) {
    print_scale(command, run.network, run.workload);
    return 0;
  }
  const Index batch = run.workload.batch;
  const bool is_warned =
      command.json && (command.partition.automatic || command.explain || command.keeps_state);
  const partitioner::ClusterProfile cluster = described_cluster(
      command.partition, ranks_of(command), is_warned ? printed_messages() : SessionObserver());
  const bool is_planned = partitioner::is_plannable(run.network, cluster.size(), batch);
  if (!is_planned && (command.explain || command.regions || command.measures_kernels ||
                      requested_replicas(command.partition).count > 1 ||
                      !frozen_layers(run.network).at_first.empty())) {
    partitioner::expect_plannable(run.network, cluster.size(), batch);
  }
  FoundPartition found = planned_partition(command, run, cluster);
  if (!is_planned) {
    return outline_plan(command, run, cluster, found);
  }
  partitioner::Partition& partition = found.partition;
  partitioner::Plan plan = make_plan(run.network, partition, batch);
  if (command.measures_kernels) {
    partition.kernels = fastest_kernels(run.network, plan);
    limit_workspace(run.network, command.partition, batch, partition);
    plan = make_plan(run.network, partition, batch);
  }
  for (const std::string& violation : check(run.network, plan)) {
    fmt::print(stderr, "tessera: warning: the plan breaks an invariant: {}\n", violation);
  }
  if (!command.save.empty()) {
    write_atomically(command.save, to_text(partition), Links::Follow);
  }
  PlannedModel model{
      run.network, partition, report_options_of(command, run, cluster, partition, plan)};
  Findings findings = findings_of(command, model, plan, run, cluster);
  partitioner::PlanAnswer& answer = findings.prediction.answer;
  answer.why_nothing_fits = found.why_nothing_fits;
  if (!command.save_baselines.empty()) {
    save_plans(command.save_baselines, findings.prediction.explanation.value().plans);
  }
  print_answer(command, model, plan, run, findings);
  return exit_code_of(command, answer);
}

}  // namespace tessera::engine
