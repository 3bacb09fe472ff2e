#include "engine/cli/train_options.h"

#include "engine/cli/common_options.h"
#include "engine/cli/partition_options.h"

namespace tessera::engine {

namespace {

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

}  // namespace

void add_train(CLI::App& program, TrainCommand& command) {
  CLI::App& app =
      *program.add_subcommand("train", "train a model, on one device or tiled over several");
  add_training(app, command)->required();
  add_text(
      app,
      "--data-map",
      command.data_map,
      "FILE",
      "each rank has data of its own, of which samples move to other ranks as this file of "
      "`tessera balance --out` says, before or during the first steps; {rank} in --data is the "
      "number of the rank");
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
      ->check(real_number(kLeastQuantity, kMostQuantity));
  app.add_option("--power-limit", command.power_limit_w, "watts that the devices may take")
      ->type_name("W")
      ->check(real_number(kLeastQuantity, kMostQuantity));
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

}  // namespace tessera::engine
