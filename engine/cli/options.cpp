#include "engine/cli/options.h"

#include <charconv>
#include <fmt/format.h>

#include "engine/cli/help.h"
#include "engine/power/meter_spec.h"
#include "partitioner/balance/balance.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kMostCount = 1'000'000'000;  // steps, images, ranks
constexpr Index kMostThreads = 1024;
constexpr Index kMostScale = 4096;
constexpr Index kMostStallTimeout = 86400;
constexpr Index kMostSeed = 0x7fffffffffffffff;  // checkpoints keep it as a signed number

CLI::Validator whole_number(Index least, Index most) {
  const auto check = [least, most](const std::string& text) {
    Index value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    const bool good = error == std::errc() && stopped == end && value >= least && value <= most;
    return good ? std::string()
                : fmt::format("\"{}\" is not an integer from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator number(double least, double most) {
  const auto check = [least, most](const std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    const bool good = error == std::errc() && stopped == end && value >= least && value <= most;
    return good ? std::string()
                : fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Option* add_text(CLI::App& app,
                      const char* name,
                      std::string& value,
                      const char* type,
                      const std::string& help) {
  return app.add_option(name, value, help)->type_name(type);
}

template <class Count>
CLI::Option* add_count(
    CLI::App& app, const char* name, Count& value, const char* help, Index most = kMostCount) {
  auto* option = app.add_option(name, value, help)->type_name("N")->check(whole_number(1, most));
  return value > 0 ? option->capture_default_str() : option;
}

void add_choice(CLI::App& app,
                const char* name,
                std::string& value,
                const std::vector<std::string>& choices,
                const char* help) {
  app.add_option(name, value, help)
      ->type_name("HOW")
      ->check(CLI::IsMember(choices))
      ->capture_default_str();
}

template <class Seed>
CLI::Option* add_seed(CLI::App& app, Seed& seed, const char* help) {
  return app.add_option("--seed", seed, help)->type_name("N")->check(whole_number(0, kMostSeed));
}

void add_model(CLI::App& app, std::string& model) {
  add_text(app, "MODEL", model, "", "model file, Darknet's .cfg")->required();
}

void add_size(CLI::App& app, std::string& size) {
  add_text(app, "--size", size, "HxW", "input size, if other than the model's");
}

void add_freeze(CLI::App& app, std::string& layer) {
  add_text(app,
           "--freeze",
           layer,
           "LAYER",
           "freeze the layers up to this one, counted from 0: they do not change and have no "
           "backward pass; or none (default: those with stopbackward=1 in the model file, and all "
           "before them)");
}

void add_json(CLI::App& app, bool& json, const char* help) {
  app.add_flag("--json", json, help);
}

void add_weights(CLI::App& app, std::string& weights) {
  add_text(
      app, "--weights", weights, "FILE", "checkpoint.safetensors, or a file in Darknet's .weights")
      ->required();
}

std::vector<std::string> kernel_choices(bool plans) {
  std::vector<std::string> choices{"direct", "winograd", "usual", "reference"};
  if (plans) {
    choices.emplace_back(kMeasuredKernels);
  }
  return choices;
}

// What bounds a partition beside its cut.
std::vector<CLI::Option*> add_execution(CLI::App& app, PartitionChoice& choice, bool plans) {
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
  return {reader, kernels, workspace};
}

CLI::Option* add_memory_limit(CLI::App& app, PartitionChoice& choice, const char* help) {
  return app.add_option("--memory-limit", choice.memory_limit_mib, help)
      ->type_name("MIB")
      ->check(whole_number(1, kMostCount));
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

void add_partition(CLI::App& app,
                   PartitionChoice& choice,
                   const char* default_grid = "as square as possible",
                   bool plans = false) {
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

// See comm/watchdog.h.
void add_stall_timeout(CLI::App& app, Index& seconds) {
  app.add_option("--stall-timeout",
                 seconds,
                 "exit with code 75 if a rank has not answered for this long (default: 60)")
      ->type_name("SECONDS")
      ->check(whole_number(1, kMostStallTimeout));
}

CLI::Validator meter_specification() {
  const auto check = [](const std::string& text) {
    try {
      (void)parse_meter(text);
    } catch (const partitioner::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  return CLI::Validator(check, "");
}

// `example` is one more of a meter.
void add_meters(CLI::App& app, std::vector<std::string>& meters, const char* example) {
  app.add_option("--meter",
                 meters,
                 fmt::format("meter of electric power, [HOST=]KIND[:ARGUMENT], such as hwmon, "
                             "command:PROGRAM or {}; can be repeated (default: auto)",
                             example))
      ->type_name("SPEC")
      ->allow_extra_args(false)
      ->check(meter_specification());
}

// An older name of an option: accepted, and not in the help.
CLI::Option* add_alias(CLI::App& app, const char* name, std::string& value, CLI::Option* option) {
  return app.add_option(name, value)->group("")->excludes(option);
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

constexpr Index kMostReplicas = partitioner::kMostRanks;

CLI::Option* add_replicas(CLI::App& app, PartitionChoice& choice) {
  return app
      .add_option("--replicas",
                  choice.replicas,
                  "divide the ranks into R groups of equal size that hold the model each and share "
                  "the images of each pass; the other options say how one is cut (default: 1)")
      ->type_name("R")
      ->check(whole_number(1, kMostReplicas));
}

CLI::Validator known_sync() {
  const auto check = [](const std::string& text) {
    try {
      (void)partitioner::parse_synchronisation(text);
    } catch (const partitioner::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  return CLI::Validator(check, "");
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
      ->check(known_sync());
}

void add_pixels(CLI::App& app, std::vector<float>& mean, std::vector<float>& stddev) {
  app.add_option(
         "--mean", mean, "subtracted from pixel values in 0..1: one number, or one per channel")
      ->type_name("X,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--std", stddev, "pixels are then divided by this")
      ->type_name("X,...")
      ->delimiter(',')
      ->allow_extra_args(false);
}

// How long to train, and how many images at a time.
void add_course(CLI::App& app, TrainCommand& command) {
  auto* steps = add_count(
      app, "--steps", command.steps, "train until this step (default: the model's max_batches)");
  add_count(app, "--epochs", command.epochs, "number of passes over the data set")->excludes(steps);
  add_count(app, "--batch", command.batch, "images per step (default: the model's)");
  add_count(app,
            "--subdivisions",
            command.subdivisions,
            "passes a step is divided into, to save memory (default: the model's, 1 with --batch)");
  add_count(app,
            "--schedule-steps",
            command.schedule_steps,
            "length of the learning rate schedule (default: the model's max_batches, else the "
            "length of training)");
}

void add_skip_broken(CLI::App& app, bool& skip_broken) {
  app.add_flag(
      "--skip-broken", skip_broken, "skip missing or damaged pictures; decodes all pictures first");
}

// All of training but how to cut. Returns --run.
CLI::Option* add_training(CLI::App& app, TrainCommand& command) {
  add_model(app, command.model);
  add_text(app,
           "--data",
           command.data,
           "DATA",
           "folder of IDX or CIFAR files, folder per class, or Darknet .data file")
      ->required();
  auto* run =
      add_text(app, "--run", command.run, "DIR", "folder for checkpoints, metrics and reports");
  app.add_flag("--force", command.force, "replace an earlier run in that folder");
  add_course(app, command);
  add_seed(
      app,
      command.seed,
      "seed of weights, shuffling and augmentation (default: the resumed checkpoint's, else 1)");
  auto* resume = add_text(app, "--resume", command.resume, "FILE", "continue from this checkpoint");
  add_text(app,
           "--weights",
           command.weights,
           "FILE",
           "start with these weights: a checkpoint, or a file in Darknet's .weights")
      ->excludes(resume);
  add_freeze(app, command.freeze);
  add_choice(app,
             "--batch-norm",
             command.batch_norm,
             {"sync", "frozen", "tile"},
             "batch statistics, running statistics, or each tile's own (not exact)");
  add_count(app,
            "--checkpoint-every",
            command.checkpoint_every,
            "steps between checkpoints (default: an epoch)");
  auto* no_eval = app.add_flag_callback(
      "--no-eval", [&command] { command.evaluate = false; }, "do not test after each epoch");
  add_count(app,
            "--patience",
            command.patience,
            "end after this many tests in a row without a better accuracy (default: at the last "
            "step)")
      ->excludes(no_eval);
  add_skip_broken(app, command.skip_broken);
  add_choice(app,
             "--progress",
             command.progress,
             {"auto", "line", "bar", "none"},
             "one line per step, or a bar; auto: a bar on a terminal");
  add_choice(app, "--monitor", command.monitor, {"on", "off"}, "record each device once a second");
  add_meters(app, command.meters, "cluster=shelly:URL");
  add_pixels(app, command.mean, command.stddev);
  return run;
}

void add_train(CLI::App& program, TrainCommand& command) {
  CLI::App& app =
      *program.add_subcommand("train", "train a model, on one device or tiled over several");
  add_training(app, command)->required();
  add_text(app,
           "--data-map",
           command.data_map,
           "FILE",
           "each rank has data of its own, of which samples move to other ranks first as this file "
           "of `tessera balance --out` says; {rank} in --data is the number of the rank");
  auto* rebalance = app.add_flag("--rebalance",
                                 command.rebalance,
                                 "with --partition auto: find another partition where devices turn "
                                 "out to be slower or faster than their profile says");
  constexpr Index kMostSeconds = 86400;
  add_count(app,
            "--rebalance-every",
            command.rebalance_s,
            "seconds of steps in which the speed of devices is measured, for --rebalance",
            kMostSeconds)
      ->type_name("SECONDS")
      ->needs(rebalance);
  add_partition(app, command.partition);
  add_gradient_precision(app, command.partition);
  add_replicas(app, command.partition);
  add_sync(app, command.partition);
  add_count(app,
            "--local-after",
            command.local_after,
            "with --sync post-local:H: steps in which gradients are averaged (default: half of the "
            "run)");
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_choose(CLI::App& program, ChooseCommand& command) {
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  CLI::App& app = *program.add_subcommand(
      "choose", "choose the devices of a cluster to train on, by short trials, and train");
  TrainCommand& train = command.train;
  add_text(app, "--cluster", train.partition.cluster, "FILE", "profile of devices and links")
      ->required();
  app.add_option("--objective",
                 command.objective,
                 "minimise the time of the run, the power that the devices take, the energy of "
                 "the run, or energy times time")
      ->type_name("HOW")
      ->check(CLI::IsMember({"time", "power", "energy", "edp"}))
      ->required();
  app.add_option("--deadline", command.deadline_s, "seconds that the run may take")
      ->type_name("S")
      ->check(number(kLeast, kMost));
  app.add_option("--power-limit", command.power_limit_w, "watts that the devices may take")
      ->type_name("W")
      ->check(number(kLeast, kMost));
  app.add_flag("--count-idle",
               command.count_idle,
               "devices that do not train take their idle power (default: they are off)");
  app.add_flag(
      "--try-all", command.try_all, "try each set of devices, whatever is predicted for it");
  app.add_flag("--dry-run", command.dry_run, "rank by predictions only; needs no mpiexec");
  add_memory_limit(app, train.partition, "memory that a device may use (default: its profile's)");
  add_training(app, train);
  add_execution(app, train.partition, false);
  add_gradient_precision(app, train.partition);
  add_stall_timeout(app, train.stall_timeout_s);
}

void add_eval(CLI::App& program, EvalCommand& command) {
  CLI::App& app =
      *program.add_subcommand("eval", "evaluate a trained model on the test part of a data set");
  add_model(app, command.model);
  add_text(app, "--data", command.data, "DATA", "data set, as for train")->required();
  add_skip_broken(app, command.skip_broken);
  add_weights(app, command.weights);
  add_count(app, "--batch", command.batch, "images at a time (default: 32)");
  add_json(app, command.json, "print JSON: accuracy, loss, pictures, top5, classes, confusion");
  add_pixels(app, command.mean, command.stddev);
  add_partition(app, command.partition);
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_check_data(CLI::App& program, CheckDataCommand& command) {
  CLI::App& app = *program.add_subcommand("check-data",
                                          "find all problems of a data set; decodes every picture");
  add_text(app, "DATA", command.data, "", "data set, as for train")->required();
  add_text(app, "--model", command.model, "FILE", "also check that it fits this model file");
  add_skip_broken(app, command.skip_broken);
  add_json(app, command.json, "print JSON: pictures of each class, all problems");
}

// A list of numbers, one per device.
template <class Number>
CLI::Option* add_numbers(CLI::App& app,
                         const char* name,
                         std::vector<Number>& numbers,
                         const CLI::Validator& each,
                         const char* help) {
  return app.add_option(name, numbers, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,N,...")
      ->check(each);
}

void add_balance(CLI::App& program, BalanceCommand& command) {
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  CLI::App& app = *program.add_subcommand(
      "balance", "choose which samples to move between devices before training");
  add_text(app,
           "MODEL",
           command.model,
           "",
           "model file, whose training time per sample is predicted for each device");
  add_text(app, "--cluster", command.cluster, "FILE", "profile of devices and links")->required();
  add_numbers(app,
              "--samples",
              command.samples,
              whole_number(0, partitioner::kMostSamples),
              "samples on each device now (default: those of --classes)");
  app.add_option("--sample-bytes", command.sample_bytes, "bytes of a sample")
      ->type_name("B")
      ->check(number(kLeast, kMost))
      ->required();
  app.add_option("--epochs", command.epochs, "epochs to train")
      ->type_name("E")
      ->check(number(kLeast, kMost))
      ->required();
  add_numbers(app,
              "--seconds-per-sample",
              command.seconds_per_sample,
              number(kLeast, kMost),
              "training time of each device, instead of MODEL");
  add_numbers(app,
              "--capacity",
              command.capacity,
              whole_number(0, partitioner::kMostSamples),
              "samples that each device can hold");
  auto* shards = app.add_option("--shard-size",
                                command.shard_size,
                                "samples move in whole shards of so many (default: 1)")
                     ->type_name("N")
                     ->check(whole_number(1, partitioner::kMostSamples));
  auto* classes = add_text(
      app,
      "--classes",
      command.classes,
      "FILE",
      "give each device of each class what it is of all samples: a CSV with the samples of "
      "each class on each device, device,CLASS,... in its first line");
  app.add_option("--class-tolerance",
                 command.class_tolerance,
                 "how far the share of a class on a device may be from its share of all samples, "
                 "relative to that")
      ->type_name("X")
      ->check(number(0, kMost))
      ->needs(classes)
      ->capture_default_str();
  shards->excludes(classes);
  add_choice(app,
             "--method",
             command.method,
             {"exact", "greedy"},
             "whose moves to print and to write; both are compared");
  add_text(app, "--out", command.out, "FILE", "write the moves as a data map (TOML)");
  add_json(app, command.json, "print JSON: moves, t_move_s, t_epoch_s, total_s, lower_bound_s");
}

void add_predict(CLI::App& program, PredictCommand& command) {
  CLI::App& app = *program.add_subcommand("predict", "classify pictures");
  add_model(app, command.model);
  app.add_option("PICTURES",
                 command.pictures,
                 "pictures, IDX files, text files with one path per line, and folders, which are "
                 "searched recursively")
      ->type_name("")
      ->required();
  add_weights(app, command.weights);
  add_text(app, "--names", command.names, "FILE", "text file with one class name per line");
  add_text(app,
           "--out",
           command.out,
           "DIR",
           "new folder for annotated pictures (PNG), each with its class and probability below");
  add_count(app, "--top", command.top, "number of classes to list");
  add_count(app, "--batch", command.batch, "images at a time (default: up to 8)");
  add_json(app, command.json, "print a JSON object for each picture");
  add_pixels(app, command.mean, command.stddev);
  add_partition(app, command.partition);
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_plan(CLI::App& program, PlanCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "plan", "show what a partition implies: regions, messages, work, memory");
  add_model(app, command.model);
  add_count(app,
            "--ranks",
            command.ranks,
            "number of ranks (default: one per tile of the grid)",
            partitioner::kMostRanks);
  add_count(app, "--batch", command.batch, "images per pass (default: the model's)");
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_text(
      app, "--save", command.save, "FILE", "write the partition to this file, for --partition");
  add_json(app, command.json, "print JSON");
  app.add_flag("--regions",
               command.regions,
               "also print tables of each group, each rank's regions and each kind of memory");
  auto* explain = app.add_flag("--explain",
                               command.explain,
                               "also show where the predicted time of a step goes, compared with "
                               "other partitions and other numbers of devices");
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  auto* samples = add_numbers(app,
                              "--samples",
                              command.samples,
                              whole_number(0, partitioner::kMostSamples),
                              "with --explain: samples that lie on each device, to compare "
                              "training on them as they lie and after moving some");
  auto* bytes = app.add_option("--sample-bytes", command.sample_bytes, "bytes of such a sample")
                    ->type_name("B")
                    ->check(number(kLeast, kMost));
  samples->needs(explain)->needs(bytes);
  bytes->needs(samples);
  app.add_option("--epochs", command.epochs, "epochs that are trained on them (default: 1)")
      ->type_name("E")
      ->check(number(kLeast, kMost))
      ->needs(samples);
  auto* baselines =
      add_text(app,
               "--save-baselines",
               command.save_baselines,
               "DIR",
               "write the partitions that --explain compares to this folder, one file each");
  baselines->needs(explain);
  add_alias(app, "--save-rivals", command.save_baselines, baselines)->needs(explain);
  add_count(app,
            "--scale",
            command.scale,
            "instead of a plan: predicted steps of the best partitions for 1, 2, 4, ... up to this "
            "many devices, ignoring memory limits; with --json one object per line",
            kMostScale);
  add_partition(app, command.partition, "as square as possible", true);
  add_gradient_precision(app, command.partition);
  add_replicas(app, command.partition)->group(kPartitionGroup);
  add_sync(app, command.partition)->group(kPartitionGroup);
}

void add_time(CLI::App& program, TimeCommand& command) {
  CLI::App& app = *program.add_subcommand("time", "measure a training step on random pictures");
  add_model(app, command.model);
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_count(app, "--batch", command.batch, "images per step");
  add_count(app,
            "--threads",
            command.threads,
            "threads per rank (default: OMP_NUM_THREADS, else the machine's processors divided "
            "among its ranks)",
            kMostThreads);
  add_count(app, "--steps", command.steps, "steps to measure, after one warm-up step");
  app.add_flag("--parts",
               command.parts,
               "also show where the time of an average rank went, next to the prediction if there "
               "is a cluster profile");
  app.add_flag("--layers",
               command.layers,
               "also show each layer's computing time: on an average rank, on the slowest, and as "
               "predicted if there is a cluster profile");
  add_text(app,
           "--trace",
           command.trace,
           "FILE",
           "write a trace of the last step: every action of every rank, and its predicted time "
           "where there is a profile. Open it with https://ui.perfetto.dev. Ranks start that step "
           "together, and times are from there");
  app.add_flag("--monitor",
               command.monitor,
               "look at the devices meanwhile, as `train` does, and say what that takes");
  add_json(app, command.json, "print JSON");
  add_partition(app, command.partition);
  add_gradient_precision(app, command.partition);
  add_replicas(app, command.partition)->group(kPartitionGroup);
  add_sync(app, command.partition)->group(kPartitionGroup);
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_probe(CLI::App& program, ProbeCommand& command) {
  CLI::App& app =
      *program.add_subcommand("probe", "measure devices and links, and write a cluster profile");
  auto* model = add_text(app,
                         "MODEL",
                         command.model,
                         "",
                         "model file whose convolutions to time (default: a standard set)");
  app.add_option("--size", command.size, "input size, if other than the model's")
      ->type_name("HxW")
      ->needs(model);
  auto* out = add_text(app, "--out", command.out, "FILE", "where to write the profile");
  add_text(app,
           "--hostfile",
           command.hostfile,
           "FILE",
           "the cluster's host file; the profile is written to FILE.cluster.toml (default: "
           "cluster.toml in the current folder)")
      ->excludes(out);
  app.add_flag("--force", command.force, "replace an existing profile");
  app.add_flag("--apart",
               command.apart,
               "describe each device by its own measurements, even where several are alike");
  add_count(app, "--threads", command.threads, "threads per rank, as for time", kMostThreads);
  app.add_option("--kernels", command.kernels, "convolution kernels to time")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"direct", "winograd2", "winograd4"}))
      ->default_str("direct,winograd4");
  constexpr Index kMostSeconds = 86400;
  add_count(app,
            "--seconds",
            command.seconds,
            "approximate time to spend; with less, large convolutions are left out",
            kMostSeconds);
  add_meters(app, command.meters, "pi1=shelly:URL");
  add_json(app,
           command.json,
           "print JSON: devices, groups of alike devices, link, what was left out, file");
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_top(CLI::App& program, TopCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "top", "watch a training run: devices, step time, memory, loss, events; q quits");
  add_text(app, "DIR", command.run, "", "folder of a run, as in train --run DIR")->required();
  app.add_flag(
      "--once",
      command.once,
      "print the current state and exit (default where standard output is not a terminal)");
  app.add_flag(
      "--ascii", command.ascii, "draw with ASCII characters (default: if the locale is not UTF-8)");
}

void add_check(CLI::App& program, CheckCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "check", "compare a partition with a single tile; exit code 1 if they differ");
  add_model(app, command.model);
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_count(app, "--batch", command.batch, "images");
  add_seed(app, command.seed, "seed of the random weights and pictures")->capture_default_str();
  add_partition(app, command.partition);
  add_replicas(app, command.partition)->group(kPartitionGroup);
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_gradients(CLI::App& program, GradientsCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "gradients", "compute a vector-Jacobian product, to compare with other frameworks");
  add_model(app, command.model);
  add_text(app,
           "--in",
           command.in,
           "FILE",
           "safetensors: input, output_gradient, layers.I.weight, .bias, .bn.scale, .bn.mean, "
           ".bn.variance")
      ->required();
  add_text(app,
           "--out",
           command.out,
           "FILE",
           "safetensors: output, input_gradient, gradients, running statistics")
      ->required();
  add_freeze(app, command.freeze);
  add_choice(app,
             "--batch-norm",
             command.batch_norm,
             {"sync", "frozen", "tile"},
             "batch statistics, running statistics as constants, or statistics of each tile alone");
  add_choice(app,
             "--precision",
             command.precision,
             {"single", "double"},
             "precision of the computation; double writes F64, and reads F64 or F32");
  add_partition(app, command.partition, "1x1");
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_convert(CLI::App& program, ConvertCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "convert", "convert weights between .safetensors and Darknet's .weights");
  add_model(app, command.model);
  add_text(app, "--from", command.from, "FILE", "weights to read")->required();
  add_text(app, "--to", command.to, "FILE", "file to write, .weights or .safetensors")->required();
}

void add_report(CLI::App& program, ReportCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "report", "write a page about a run: what it learnt, where its time and energy went");
  add_text(app, "DIR", command.run, "", "folder of the run, also while it is going")->required();
  add_text(app, "--out", command.out, "FILE", "the page (default: DIR/report.html)");
  add_text(app, "--title", command.title, "TEXT", "its title (default: the model's name)");
}

}  // namespace

void add_commands(CLI::App& program, Commands& commands) {
  add_train(program, commands.train);
  add_choose(program, commands.choose);
  add_eval(program, commands.eval);
  add_predict(program, commands.predict);
  add_plan(program, commands.plan);
  add_time(program, commands.time);
  add_probe(program, commands.probe);
  add_top(program, commands.top);
  add_check(program, commands.check);
  add_gradients(program, commands.gradients);
  add_convert(program, commands.convert);
  add_report(program, commands.report);
  add_check_data(program, commands.check_data);
  add_balance(program, commands.balance);
}

}  // namespace tessera::engine
