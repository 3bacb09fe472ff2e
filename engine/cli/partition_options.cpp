#include "engine/cli/partition_options.h"

#include <fmt/format.h>

#include "engine/cli/common_options.h"
#include "engine/cli/help.h"

namespace tessera::engine {

namespace {

constexpr const char* kAutomatic = "auto";

// What --kernels takes beside the rules where kernels can be timed: the fastest of a trial.
constexpr const char* kMeasuredKernels = "measured";

std::vector<std::string> kernel_choices(bool may_measure) {
  std::vector<std::string> choices{"direct", "winograd", "usual", "reference"};
  if (may_measure) {
    choices.emplace_back(kMeasuredKernels);
  }
  return choices;
}

CLI::Option* add_mebibytes(CLI::App& app,
                           const char* name,
                           std::optional<Index>& bytes,
                           const std::string& help) {
  const auto read = [&bytes](const Index& mebibytes) { bytes = mebibytes << 20U; };
  return app.add_option_function<Index>(name, read, help)
      ->type_name("MIB")
      ->check(whole_number(1, kMostCount));
}

// What --partition auto looks for.
void add_search(CLI::App& app, PartitionRequest& request) {
  add_text(app,
           "--cluster FILE",
           request.cluster,
           "profile of devices and links, for --partition auto and for the predictions of `plan` "
           "(default: the host file that HYDRA_HOST_FILE names, with .cluster.toml appended; else "
           "Raspberry Pi 3 are assumed)");
  add_memory_limit(
      app,
      request,
      "memory that a device may use, for --partition auto and for `plan`, which says whether it is "
      "enough (default: as in its profile)");
  const auto read = [&request](const std::string& name) {
    request.objective = partitioner::objective_named(name);
  };
  add_read(app,
           "--objective HOW",
           read,
           "with --partition auto: minimise the time of a step, the largest memory of any device, "
           "the energy of a step or its energy-delay product (default: time)")
      ->check(CLI::IsMember({"time", "memory", "energy", "edp"}));
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

CLI::Option* add_memory_limit(CLI::App& app, PartitionRequest& request, const char* help) {
  return add_mebibytes(app, "--memory-limit", request.memory_limit_bytes, help);
}

void add_execution(CLI::App& app, PartitionRequest& request, bool* measures_kernels) {
  app.option_defaults()->group(kPartitionGroup);
  add_read(
      app,
      "--reader RANK",
      [&request](const std::string& text) { request.reader = partitioner::parse_reader(text); },
      "the rank that reads pictures for all, or \"every\": each reads its own part (default: "
      "every)");
  const auto read_kernels = [&request, measures_kernels](const std::string& name) {
    request.kernels = partitioner::kernel_rule_named(name);
    if (measures_kernels != nullptr) {
      *measures_kernels = name == kMeasuredKernels;
    }
  };
  app.add_option_function<std::string>(
         "--kernels",
         read_kernels,
         fmt::format(
             "how convolutions are computed: direct (the same bits for any partition), winograd "
             "(3x3 in fewer multiplications), usual (winograd where it pays), reference (slow, for "
             "comparison); default: {}, or what the partition file says",
             request.default_kernels == partitioner::KernelRule::Direct ? "direct" : "usual"))
      ->check(CLI::IsMember(kernel_choices(measures_kernels != nullptr)));
  add_mebibytes(app,
                "--workspace",
                request.workspace_bytes,
                "limit on the kernels' scratch memory: kernels that need more are replaced by ones "
                "that need less (default: no limit)");
  app.option_defaults()->group(kUsualGroup);
}

void add_partition(CLI::App& app,
                   PartitionRequest& request,
                   const char* default_grid,
                   bool* measures_kernels) {
  app.option_defaults()->group(kPartitionGroup);
  const auto read_file = [&request](const std::string& text) {
    request.automatic = text == kAutomatic;
    request.file = request.automatic ? "" : text;
  };
  auto* file = add_read(app,
                        "--partition FILE",
                        read_file,
                        "partition file (see `tessera plan --save`), or auto: the one predicted to "
                        "be fastest on the cluster");
  add_search(app, request);
  auto* grid = add_read(
      app,
      "--grid RxC",
      [&request](const std::string& text) {
        request.cut.grid = partitioner::parse_grid(text, "--grid");
      },
      fmt::format("rows x columns of tiles, one per rank, for example 2x3 (default: {})",
                  default_grid));
  auto* groups = add_read(
      app,
      "--groups A-B,...",
      [&request](const std::string& text) {
        request.cut.groups = partitioner::parse_groups(text, "--groups");
      },
      "layers fused into groups, for example 0-3,4-7,8 (default: one group per layer)");
  const auto read_recompute = [&request](const std::string& text) {
    request.cut.recompute_all = text == "all";
    request.cut.recompute = request.cut.recompute_all
                                ? partitioner::GroupRanges{}
                                : partitioner::parse_groups(text, "--recompute");
  };
  auto* recompute = add_read(app,
                             "--recompute A-B,...",
                             read_recompute,
                             "groups whose maps are recomputed for the backward pass instead of "
                             "kept, to save memory; or all");
  const auto add_layer = [&](const char* name, int& layer, const char* help) {
    return app.add_option(name, layer, help)
        ->type_name("LAYER")
        ->check(whole_number(0, kMostCount));
  };
  auto* data = add_layer("--data-parallel-from",
                         request.cut.data_parallel_from,
                         "from this layer on, divide images among ranks instead of tiles (default: "
                         "the first layer that cannot be tiled)");
  auto* filter = add_layer("--filter-parallel-from",
                           request.cut.filter_parallel_from,
                           "from this layer on, divide output channels among ranks");
  add_execution(app, request, measures_kernels);
  for (auto* shorthand : {grid, groups, recompute, data, filter}) {
    file->excludes(shorthand);
  }
}

void add_gradient_precision(CLI::App& app, PartitionRequest& request) {
  const CLI::Validator known = known_compression();
  const auto read = [&request](const std::string& text) {
    request.gradient_precision = partitioner::compression_named(text);
  };
  auto* option =
      add_read(app,
               "--gradient-precision HOW",
               read,
               "how gradients and parameters travel: exact, half (16 bits), topk:F (the largest "
               "share F), sign (a bit each), low-rank:R (factors of R columns); all but exact with "
               "error feedback (default: exact, or what the partition file says)")
          ->check(known)
          ->group(kPartitionGroup);
  app.add_option_function<std::string>("--sums", read)  // an older name
      ->group("")
      ->excludes(option)
      ->check(known);
}

void add_replicas(CLI::App& app, PartitionRequest& request, const char* group) {
  app.add_option("--replicas",
                 request.cut.replicas,
                 "divide the ranks into R groups of equal size that hold the model each and share "
                 "the images of each pass; other options say how one is cut (default: 1)")
      ->type_name("R")
      ->check(whole_number(1, partitioner::kMostRanks))
      ->group(group);
}

void add_synchronisation(CLI::App& app, PartitionRequest& request, const char* group) {
  add_gradient_precision(app, request);
  add_replicas(app, request, group);
  const auto read = [&request](const std::string& text) {
    request.cut.sync = partitioner::parse_synchronisation(text);
  };
  add_read(app,
           "--sync HOW",
           read,
           "how replicas are synchronised: every-step (exact), local:H (parameters averaged every "
           "H steps), post-local:H (gradients every step at first, then local:H), parameter-rank:S "
           "(a parameter server on the first replica, at most S steps stale), gossip (random "
           "pairs); default: every-step")
      ->check(accepted_by(
          [](const std::string& text) { (void)partitioner::parse_synchronisation(text); }))
      ->group(group);
}

}  // namespace tessera::engine
