#include "engine/cli/commands.h"
#include "engine/cli/common_options.h"
#include "engine/cli/partition_options.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// How long to train, and how many images at a time.
void add_course(CLI::App& app, TrainingRequest& request) {
  auto* steps = add_count(
      app, "--steps", request.steps, "train until this step (default: the model's max_batches)");
  add_count(app, "--epochs", request.epochs, "number of passes over the data set")->excludes(steps);
  add_count(app, "--batch", request.batch, "images per step (default: the model's)");
  add_subdivisions(app, request.subdivisions);
  add_count(
      app,
      "--schedule-steps",
      request.schedule_steps,
      "length of the schedule of rate and last epochs (default: max_batches, else the length of "
      "training)");
}

void add_cache(CLI::App& app,
               const std::string& name,
               PictureCacheRequest& cache,
               const std::string& help) {
  using Place = PictureCacheRequest::Place;
  const auto read = [&cache](const std::string& text) {
    cache = text == "memory" ? PictureCacheRequest{Place::Memory}
            : text == "off"  ? PictureCacheRequest{Place::Off}
                             : PictureCacheRequest{Place::Folder, text};
  };
  add_read(app, name + " HOW", read, help)->check(accepted_by([](const std::string& text) {
    if (text.empty()) {
      throw InputError("expected memory, off or a folder");
    }
  }));
}

// All of training but how to cut. Returns --run.
CLI::Option* add_training(CLI::App& app, TrainCommand& command) {
  TrainingRequest& request = command.request;
  add_model(app, request.model);
  add_text(app,
           "--data DATA",
           request.data,
           "folder of IDX, CIFAR, VOC, COCO or YOLO files or a folder per class, data.yaml, .data "
           "file")
      ->required();
  auto* run =
      add_text(app, "--run DIR", request.run, "folder for checkpoints, metrics and reports");
  app.add_flag("--force", request.replace, "replace an earlier run in that folder");
  add_course(app, request);
  add_seed(
      app,
      request.seed,
      "seed of weights, shuffling and augmentation (default: the resumed checkpoint's, else 1)");
  auto* resume = add_text(
      app, "--resume FILE", request.resume, "continue from this checkpoint or a folder's newest");
  add_text(
      app,
      "--weights FILE",
      request.weights,
      "start with these weights: a checkpoint, a run folder, or Darknet's .weights, whole or of "
      "the first layers")
      ->excludes(resume);
  add_freeze(app, request.freeze, true);
  add_multi_scale(app, request.multi_scale);
  add_count(app,
            "--augment-variants",
            request.augment_variants,
            "augment each picture in N ways, in turn by epoch (default: anew in each epoch)");
  add_batch_norm(app,
                 request.batch_norm,
                 "batch statistics, running statistics, or each tile's own (not exact)");
  add_count(app,
            "--checkpoint-every",
            request.checkpoint_every,
            "steps between checkpoints (default: an epoch)");
  auto* no_eval = app.add_flag_callback(
      "--no-eval", [&request] { request.evaluate = false; }, "do not test after each epoch");
  add_count(
      app,
      "--patience",
      request.patience,
      "end after this many tests in a row without a better accuracy (default: at the last step)")
      ->excludes(no_eval);
  add_skip_broken(app, request.skip_broken);
  add_allow_unlabelled(app, request.allow_unlabelled);
  add_cache(
      app,
      "--cache",
      request.cache,
      "keep decoded pictures: memory, a FOLDER or off (default: memory, else in the run's folder)");
  add_cache(app,
            "--trunk-cache",
            request.trunk_cache,
            "likewise maps of frozen layers (default: memory)");
  add_choice(app,
             "--progress",
             command.progress,
             {"auto", "line", "bar", "none"},
             "auto: a bar on a terminal, else lines");
  add_choice<bool>(app,
                   "--monitor",
                   request.monitor,
                   {{"on", true}, {"off", false}},
                   "record each device once a second");
  add_meters(app, request.meters, "cluster=shelly:URL");
  add_pixels(app, request.mean, request.stddev);
  return run;
}

}  // namespace

void add_options(CLI::App& app, TrainCommand& command) {
  TrainingRequest& request = command.request;
  add_training(app, command)->required();
  add_text(app,
           "--data-map FILE",
           request.data_map,
           "ranks hold their own data; FILE (from `tessera balance --out`) lists the samples to "
           "move; {rank} in --data is the rank's number");
  constexpr Index kMostSeconds = 86400;
  auto* rebalance = app.add_flag_callback(
      "--rebalance",
      [&request] {
        request.rebalance_window_s =
            request.rebalance_window_s.value_or(static_cast<double>(kUsualRebalanceWindow_s));
      },
      "with --partition auto: adapt the partition to the speeds that devices turn out to have");
  app.add_option_function<Index>(
         "--rebalance-every",
         [&request](const Index& seconds) {
           request.rebalance_window_s = static_cast<double>(seconds);
         },
         "seconds of steps in which the speed of devices is measured, for --rebalance")
      ->type_name("SECONDS")
      ->check(whole_number(1, kMostSeconds))
      ->default_str(std::to_string(kUsualRebalanceWindow_s))
      ->needs(rebalance);
  add_partition(app, request.partition);
  add_synchronisation(app, request.partition, kUsualGroup);
  add_count(
      app,
      "--local-after",
      request.local_after,
      "with --sync post-local:H: steps in which gradients are averaged (default: half of the run)");
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_options(CLI::App& app, ChooseCommand& command) {
  TrainingRequest& request = command.train.request;
  DeviceRequest& devices = request.devices.emplace();
  add_text(app, "--cluster FILE", request.partition.cluster, "profile of devices and links")
      ->required();
  const auto read_objective = [&devices](const std::string& name) {
    devices.objective = partitioner::objective_named(name).value();
  };
  add_read(app,
           "--objective HOW",
           read_objective,
           "minimise the time of the run, the power that the devices take, the energy of the run, "
           "or energy times time")
      ->check(CLI::IsMember({"time", "power", "energy", "edp"}))
      ->required();
  add_number(app, "--deadline S", devices.deadline_s, "seconds that the run may take");
  add_number(app, "--power-limit W", devices.power_limit_w, "watts that the devices may take");
  app.add_flag("--count-idle",
               devices.count_idle,
               "devices that do not train take their idle power (default: they are off)");
  app.add_flag(
      "--try-all", devices.try_all, "try each set of devices, whatever is predicted for it");
  app.add_flag("--dry-run", command.dry_run, "rank by predictions only; needs no mpiexec");
  add_memory_limit(app, request.partition, "memory that a device may use (default: its profile's)");
  add_training(app, command.train);
  add_execution(app, request.partition);
  add_gradient_precision(app, request.partition);
  add_stall_timeout(app, command.train.stall_timeout_s);
}

}  // namespace tessera::engine
