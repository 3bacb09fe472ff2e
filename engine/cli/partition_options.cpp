#include "engine/cli/partition_options.h"

#include <fmt/format.h>

#include "engine/cli/common_options.h"
#include "engine/cli/help.h"

namespace tessera::engine {

namespace {

std::vector<std::string> kernel_choices(bool plans) {
  std::vector<std::string> choices{"direct", "winograd", "usual", "reference"};
  if (plans) {
    choices.emplace_back(kMeasuredKernels);
  }
  return choices;
}

// What --partition auto looks for.
std::vector<CLI::Option*> add_search(CLI::App& app, PartitionChoice& choice) {
  auto* cluster = add_text(app,
                           "--cluster",
                           choice.cluster,
                           "FILE",
                           "profile of devices and links, for --partition auto and for the "
                           "predictions of `plan` (default: the host file that HYDRA_HOST_FILE "
                           "names, with .cluster.toml appended; else equal devices are assumed)");
  auto* limit = add_memory_limit(
      app,
      choice,
      "with --partition auto: memory that a device may use (default: as in its profile)");
  auto* objective = app.add_option("--objective",
                                   choice.objective,
                                   "with --partition auto: minimise the time of a step, the "
                                   "largest memory of any device, the energy of a step or its "
                                   "energy-delay product (default: time)")
                        ->type_name("HOW")
                        ->check(CLI::IsMember({"time", "memory", "energy", "edp"}));
  return {cluster, limit, objective};
}

CLI::Validator known_compression() {
  const auto check = [](const std::string& text) {
    return partitioner::compression_named(text)
               ? std::string()
               : fmt::format("\"{}\" is none of {}, with F above 0 up to 1 and R from 1 to {}",
                             text,
                             partitioner::kCompressionForms,
                             partitioner::kMostLowRank);
  };
  return CLI::Validator(check, "");
}

}  // namespace

CLI::Option* add_memory_limit(CLI::App& app, PartitionChoice& choice, const char* help) {
  return app.add_option("--memory-limit", choice.memory_limit_mib, help)
      ->type_name("MIB")
      ->check(whole_number(1, kMostCount));
}

void add_execution(CLI::App& app, PartitionChoice& choice, bool plans) {
  auto* reader = add_text(app,
                          "--reader",
                          choice.reader,
                          "RANK",
                          "the rank that reads pictures for all, or \"every\": each reads its own "
                          "part (default: every)");
  auto* kernels =
      app.add_option(
             "--kernels",
             choice.kernels,
             fmt::format(
                 "how convolutions are computed: direct (the same bits for any partition), "
                 "winograd (3x3 in fewer multiplications), usual (winograd where it pays), "
                 "reference (slow, for comparison); default: {}, or what the partition file says",
                 choice.default_kernels == partitioner::KernelRule::Direct ? "direct" : "usual"))
          ->check(CLI::IsMember(kernel_choices(plans)));
  auto* workspace = app.add_option("--workspace",
                                   choice.workspace_mib,
                                   "limit on the kernels' scratch memory: kernels that need more "
                                   "are replaced by ones that need less (default: no limit)")
                        ->type_name("MIB")
                        ->check(whole_number(1, kMostCount));
  for (auto* option : {reader, kernels, workspace}) {
    option->group(kPartitionGroup);
  }
}

void add_partition(CLI::App& app, PartitionChoice& choice, const char* default_grid, bool plans) {
  auto* file = add_text(app,
                        "--partition",
                        choice.file,
                        "FILE",
                        "partition file (see `tessera plan --save`), or auto: the one predicted to "
                        "be fastest on the cluster");
  const std::vector<CLI::Option*> search = add_search(app, choice);
  auto* grid =
      add_text(app,
               "--grid",
               choice.grid,
               "RxC",
               fmt::format("rows x columns of tiles, one per rank, for example 2x3 (default: {})",
                           default_grid));
  auto* groups =
      add_text(app,
               "--groups",
               choice.groups,
               "A-B,...",
               "layers fused into groups, for example 0-3,4-7,8 (default: one group per layer)");
  auto* recompute = add_text(app,
                             "--recompute",
                             choice.recompute,
                             "A-B,...",
                             "groups whose maps are recomputed for the backward pass instead of "
                             "kept, to save memory; or all");
  const auto add_layer = [&](const char* name, int& layer, const char* help) {
    return app.add_option(name, layer, help)
        ->type_name("LAYER")
        ->check(whole_number(0, kMostCount));
  };
  auto* data = add_layer("--data-parallel-from",
                         choice.data_parallel_from,
                         "from this layer on, divide images among ranks instead of tiles (default: "
                         "the first layer that cannot be tiled)");
  auto* filter = add_layer("--filter-parallel-from",
                           choice.filter_parallel_from,
                           "from this layer on, divide output channels among ranks");
  add_execution(app, choice, plans);
  for (auto* shorthand : {grid, groups, recompute, data, filter}) {
    file->excludes(shorthand);
  }
  for (auto* option : {file, grid, groups, recompute, data, filter}) {
    option->group(kPartitionGroup);
  }
  for (auto* option : search) {
    option->group(kPartitionGroup);
  }
}

void add_gradient_precision(CLI::App& app, PartitionChoice& choice) {
  const CLI::Validator known = known_compression();
  auto* option = app.add_option("--gradient-precision",
                                choice.gradient_precision,
                                "how gradients and parameters travel: exact, half (16 bits), "
                                "topk:F (the largest share F), sign (a bit each), low-rank:R "
                                "(factors of R columns); all but exact with error feedback "
                                "(default: exact, or what the partition file says)")
                     ->type_name("HOW")
                     ->check(known)
                     ->group(kPartitionGroup);
  add_alias(app, "--sums", choice.gradient_precision, option)->check(known);
}

CLI::Option* add_replicas(CLI::App& app, PartitionChoice& choice) {
  return app
      .add_option("--replicas",
                  choice.replicas,
                  "divide the ranks into R groups of equal size that hold the model each and share "
                  "the images of each pass; the other options say how one is cut (default: 1)")
      ->type_name("R")
      ->check(whole_number(1, partitioner::kMostRanks));
}

CLI::Option* add_sync(CLI::App& app, PartitionChoice& choice) {
  return app
      .add_option("--sync",
                  choice.sync,
                  "how replicas are tied: every-step (exact), local:H (parameters averaged every H "
                  "steps), post-local:H (gradients every step at first, then local:H), "
                  "parameter-rank:S (updates by the first replica, S steps old), gossip "
                  "(random pairs); default: every-step")
      ->type_name("HOW")
      ->check(accepted_by(
          [](const std::string& text) { (void)partitioner::parse_synchronisation(text); }));
}

}  // namespace tessera::engine
