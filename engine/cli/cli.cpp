#include "engine/cli/cli.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/comm/agreement.h"
#include "engine/comm/mpi_session.h"
#include "engine/ops/threads.h"

namespace engine {

namespace {

constexpr int kCheckFailed = 1;
constexpr int kInputError = 2;

constexpr const char* kAbout =
    "Trains convolutional networks on several small machines at once: feature maps are cut into "
    "tiles, one a device.\n"
    "Start it with mpiexec.mpich -n RANKS for more than one device; plan and convert need no "
    "mpiexec.";

void add_model(CLI::App& app, std::string& model) {
  app.add_option("MODEL", model, "model file, Darknet's .cfg")->required();
}

void add_partition(CLI::App& app, PartitionChoice& choice) {
  auto* file =
      app.add_option("--partition", choice.file, "partition file (see `tessera plan --save`)");
  auto* grid =
      app.add_option("--grid", choice.grid, "rows x columns of tiles, e.g. 2x3; one tile a rank");
  auto* groups =
      app.add_option("--groups",
                     choice.groups,
                     "layers fused into groups, e.g. 0-3,4-7,8-15 (default: a group a layer)");
  auto* data = app.add_option("--data-parallel-from",
                              choice.data_parallel_from,
                              "from this layer on ranks share out images, not tiles (default: the "
                              "first layer that cannot be tiled)");
  auto* filter = app.add_option("--filter-parallel-from",
                                choice.filter_parallel_from,
                                "from this layer on ranks share out output channels");
  app.add_option(
         "--reader",
         choice.reader,
         "who reads pictures: every rank its own region, or the rank of this number for all")
      ->capture_default_str();
  for (auto* shorthand : {grid, groups, data, filter}) {
    file->excludes(shorthand);
  }
}

void add_pixels(CLI::App& app, std::vector<float>& mean, std::vector<float>& stddev) {
  app.add_option("--mean", mean, "subtracted from pixels of 0..1: one number, or one a channel")
      ->delimiter(',');
  app.add_option("--std", stddev, "pixels are then divided by this")->delimiter(',');
}

const CLI::IsMember& batch_norm_modes() {
  static const CLI::IsMember modes({"sync", "frozen", "tile"});
  return modes;
}

void add_train(CLI::App& program, TrainCommand& command) {
  CLI::App& app =
      *program.add_subcommand("train", "train a model, on one device or tiled over several");
  add_model(app, command.model);
  app.add_option(
         "--data",
         command.data,
         "data set: folder of IDX or CIFAR-10 files, folder per class, or Darknet .data file")
      ->required();
  app.add_option("--run",
                 command.run,
                 "folder for metrics.jsonl, partition.toml, memory.json, checkpoint.safetensors")
      ->required();
  auto* steps =
      app.add_option(
             "--steps", command.steps, "train until this step (default: max_batches of the model)")
          ->check(CLI::PositiveNumber);
  app.add_option("--epochs", command.epochs, "train for this many passes over the data set")
      ->check(CLI::PositiveNumber)
      ->excludes(steps);
  app.add_option("--batch", command.batch, "images a step (default: the model's)")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--subdivisions",
         command.subdivisions,
         "passes a step is divided into, to save memory (default: the model's, 1 with --batch)")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--schedule-steps",
         command.schedule_steps,
         "length of the learning rate's schedule (default: max_batches of the model, else --steps)")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", command.seed, "of weights, order and variation of pictures")
      ->capture_default_str();
  auto* resume = app.add_option("--resume", command.resume, "go on from this checkpoint");
  app.add_option("--weights",
                 command.weights,
                 "start with these weights: .safetensors or Darknet's .weights")
      ->excludes(resume);
  app.add_option("--batch-norm",
                 command.batch_norm,
                 "statistics over the whole batch (sync), running ones (frozen), or each tile's "
                 "own (tile; not exact)")
      ->check(batch_norm_modes())
      ->capture_default_str();
  add_partition(app, command.partition);
  add_pixels(app, command.mean, command.stddev);
  app.add_option("--checkpoint-every",
                 command.checkpoint_every,
                 "steps between checkpoints (default: an epoch)")
      ->check(CLI::PositiveNumber);
  app.add_flag("!--no-eval", command.evaluate, "do not test after each epoch");
  app.add_option(
         "--progress", command.progress, "a line a step, a bar, nothing, or by what the output is")
      ->check(CLI::IsMember({"auto", "line", "bar", "none"}))
      ->capture_default_str();
}

void add_eval(CLI::App& program, EvalCommand& command) {
  CLI::App& app =
      *program.add_subcommand("eval", "test a trained model on the test half of a data set");
  add_model(app, command.model);
  app.add_option("--data", command.data, "data set, as for train")->required();
  app.add_option("--weights", command.weights, "checkpoint.safetensors or Darknet's .weights")
      ->required();
  app.add_option("--batch", command.batch, "images at a time")->check(CLI::PositiveNumber);
  add_partition(app, command.partition);
  add_pixels(app, command.mean, command.stddev);
  app.add_flag("--json", command.json, "for programs");
}

void add_predict(CLI::App& program, PredictCommand& command) {
  CLI::App& app = *program.add_subcommand("predict", "say what is in pictures");
  add_model(app, command.model);
  app.add_option(
         "PICTURES", command.pictures, "a JPEG, PNG or IDX file, a list of them, or a folder")
      ->required();
  app.add_option("--weights", command.weights, "checkpoint.safetensors or Darknet's .weights")
      ->required();
  app.add_option("--names", command.names, "text file with the name of a class a line");
  app.add_option("--top", command.top, "how many classes to name")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_partition(app, command.partition);
  add_pixels(app, command.mean, command.stddev);
  app.add_flag("--json", command.json, "an object a line, for programs");
}

void add_plan(CLI::App& program, PlanCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "plan", "print what a partition means: regions, messages, work, memory");
  add_model(app, command.model);
  add_partition(app, command.partition);
  app.add_option(
         "--ranks", command.ranks, "ranks there are (default: as many as the grid has tiles)")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", command.batch, "images a pass (default: the model's)")
      ->check(CLI::PositiveNumber);
  app.add_option("--size", command.size, "input of another size, HxW");
  app.add_option("--save", command.save, "write the partition to this file, for --partition");
  app.add_flag("--json", command.json, "for programs");
}

void add_time(CLI::App& program, TimeCommand& command) {
  CLI::App& app = *program.add_subcommand("time", "measure a training step on random pictures");
  add_model(app, command.model);
  app.add_option("--size", command.size, "input of another size, HxW");
  app.add_option("--batch", command.batch, "images a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option(
         "--threads", command.threads, "of each rank (default: OMP_NUM_THREADS, else all cores)")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", command.steps, "steps to measure, after one that is not")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_partition(app, command.partition);
  app.add_flag("--json", command.json, "for programs");
}

void add_check(CLI::App& program, CheckCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "check", "compare a partition with one tile; exit code 1 where they differ");
  add_model(app, command.model);
  add_partition(app, command.partition);
  app.add_option("--size", command.size, "input of another size, HxW");
  app.add_option("--batch", command.batch, "images")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", command.seed, "of random weights and pictures")->capture_default_str();
}

void add_gradients(CLI::App& program, GradientsCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "gradients", "vector-Jacobian product, for comparing with other frameworks");
  add_model(app, command.model);
  app.add_option("--in",
                 command.in,
                 "safetensors: input, output_gradient, layers.I.weight, .bias, .bn.scale, "
                 ".bn.mean, .bn.variance")
      ->required();
  app.add_option(
         "--out", command.out, "safetensors: output, input_gradient, gradients, running statistics")
      ->required();
  app.add_option("--batch-norm",
                 command.batch_norm,
                 "statistics of the batch, or running ones as constants")
      ->check(batch_norm_modes())
      ->capture_default_str();
  app.add_option("--precision", command.precision, "scalar to compute with")
      ->check(CLI::IsMember({"single", "double"}))
      ->capture_default_str();
  add_partition(app, command.partition);
}

void add_convert(CLI::App& program, ConvertCommand& command) {
  CLI::App& app =
      *program.add_subcommand("convert", "weights between .safetensors and Darknet's .weights");
  add_model(app, command.model);
  app.add_option("--from", command.from, "weights to read")->required();
  app.add_option("--to", command.to, "file to write, .weights or .safetensors")->required();
}

struct Commands {
  TrainCommand train;
  EvalCommand eval;
  PredictCommand predict;
  PlanCommand plan;
  TimeCommand time;
  CheckCommand check;
  GradientsCommand gradients;
  ConvertCommand convert;
};

int run_alone(const std::function<void()>& work) {
  try {
    work();
    return 0;
  } catch (const partitioner::InputError& error) {
    fmt::print(stderr, "tessera: {}\n", error.what());
    return kInputError;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tessera: internal error: {}\n", error.what());
    return kCheckFailed;
  }
}

// Runs work on all ranks. An AgreedError is one on all of them, so each may end in order; anything
// else may be this rank's alone, so it takes the others down with it.
int run_together(int argc, char** argv, const std::function<int(const Communicator&)>& work) {
  std::optional<MpiSession> session;
  try {
    session.emplace(argc, argv);
    const Communicator world = Communicator::world();
    share_processors(world.ranks_on_this_machine());
    try {
      return work(world);
    } catch (const AgreedError& error) {
      if (world.rank() == 0) {
        fmt::print(stderr, "tessera: {}\n", error.what());
      }
      return kInputError;
    }
  } catch (const partitioner::InputError& error) {
    fmt::print(stderr, "tessera: {}\n", error.what());
    if (session) {
      MpiSession::abort(kInputError);
    }
    return kInputError;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tessera: internal error: {}\n", error.what());
    if (session) {
      MpiSession::abort(kCheckFailed);
    }
    return kCheckFailed;
  }
}

int run_command(const CLI::App& program, const Commands& commands, int argc, char** argv) {
  if (program.got_subcommand("plan")) {
    return run_alone([&] { run_plan(commands.plan); });
  }
  if (program.got_subcommand("convert")) {
    return run_alone([&] { run_convert(commands.convert); });
  }
  return run_together(argc, argv, [&](const Communicator& world) {
    if (program.got_subcommand("check")) {
      return run_check(commands.check, world) ? 0 : kCheckFailed;
    }
    if (program.got_subcommand("train")) {
      run_train(commands.train, world);
    } else if (program.got_subcommand("eval")) {
      run_eval(commands.eval, world);
    } else if (program.got_subcommand("predict")) {
      run_predict(commands.predict, world);
    } else if (program.got_subcommand("time")) {
      run_time(commands.time, world);
    } else {
      run_gradients(commands.gradients, world);
    }
    return 0;
  });
}

// The rank that mpiexec gave this process, without asking MPI: errors of the command line are the
// same on all ranks and said by one.
bool speaks() {
  const char* rank = std::getenv("PMI_RANK");  // NOLINT(concurrency-mt-unsafe): no threads yet
  return rank == nullptr || std::string_view(rank) == "0";
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App program(kAbout, "tessera");
  program.require_subcommand(1);
  program.set_version_flag("--version", "tessera 0.1.0");
  Commands commands;
  add_train(program, commands.train);
  add_eval(program, commands.eval);
  add_predict(program, commands.predict);
  add_plan(program, commands.plan);
  add_time(program, commands.time);
  add_check(program, commands.check);
  add_gradients(program, commands.gradients);
  add_convert(program, commands.convert);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return speaks() ? program.exit(help) : 0;
  } catch (const CLI::ParseError& error) {
    if (speaks()) {
      fmt::print(stderr, "tessera: {} (see tessera --help)\n", error.what());
    }
    return kInputError;
  }
  return run_command(program, commands, argc, argv);
}

}  // namespace engine
