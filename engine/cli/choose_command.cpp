#include <filesystem>
#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/cli/device_choice.h"
#include "engine/cli/partition_chooser.h"
#include "engine/cli/planning.h"
#include "engine/cli/setup.h"
#include "engine/cli/training_length.h"
#include "engine/comm/agreement.h"
#include "engine/data/dataset.h"
#include "engine/files/atomic_file.h"
#include "engine/files/run_files.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// Options are as they are to be for a search of each set of devices.
ChooseCommand with_search(const ChooseCommand& command) {
  ChooseCommand result = command;
  result.train.partition.file = kAutomatic;
  return result;
}

// A rank for each device.
void expect_several_devices(const ChooseCommand& command, int ranks) {
  const std::string& profile = command.train.partition.cluster;
  const int devices = partitioner::read_cluster_profile(profile).size();
  if (ranks != devices || ranks == 1) {
    throw InputError(profile,
                     0,
                     fmt::format("it describes {}, there {} {}: choose needs two devices at least, "
                                 "and a rank for each: mpiexec.mpich -n {} tessera choose ... "
                                 "(--dry-run needs none)",
                                 counted(devices, "device"),
                                 ranks == 1 ? "is" : "are",
                                 counted(ranks, "rank"),
                                 devices));
  }
}

Index pictures_of(const ChooseCommand& command, const partitioner::Network& network, Split split) {
  return list_dataset(command.train.data, split, network.image.channels).size();
}

}  // namespace

void run_choose(const ChooseCommand& command, const Communicator& communicator) {
  if (command.train.run.empty()) {
    throw AgreedError("--run is required, unless there is --dry-run (see tessera choose --help)");
  }
  throw_agreed(communicator,
               problem_of([&] { expect_several_devices(command, communicator.size()); }));
  const ChooseCommand searching = with_search(command);
  PartitionChooser chooser(searching);
  run_train(searching.train, communicator, &chooser);
}

void run_dry_choose(const ChooseCommand& command) {
  const ChooseCommand searching = with_search(command);
  const TrainCommand& train = searching.train;
  const Communicator self = Communicator::self();
  const partitioner::ModelFile model = load_model(train.model, self);
  const partitioner::Network network = frozen(model.network, train.freeze);
  partitioner::TrainingOptions training = training_options(train, model);
  expect_loss(network, train.model);
  const Index pictures = pictures_of(searching, network, Split::Train);
  const TrainingLength length = training_length(train, pictures, training);
  const double testing =
      train.evaluate ? static_cast<double>(pictures_of(searching, network, Split::Test)) : 0;
  const RunSize size{.steps = length.last_step,
                     .epoch_steps = length.epoch_steps,
                     .testing_steps = testing / static_cast<double>(training.batch)};
  const Workload workload{.model = train.model,
                          .batch = training.batch / training.subdivisions,
                          .passes = training.subdivisions,
                          .adam = training.adam};
  const int devices = partitioner::read_cluster_profile(train.partition.cluster).size();
  const DeviceChoice choice(
      searching, network, workload, size.steps, described_cluster(train.partition, devices));
  const partitioner::DeviceTrials trials = choice.trials(size);
  const partitioner::ChoiceReport report = choice.report(trials, false);
  if (!train.run.empty()) {
    std::error_code unwritable;  // then writing says so
    std::filesystem::create_directories(train.run, unwritable);
    write_atomically(std::filesystem::path(train.run) / run_file::kChoice,
                     partitioner::choice_json(report));
  }
  fmt::print("{}", partitioner::choice_table(report));
  choice.expect_choice(trials, false);
  fmt::print("best: {}\n", printable(partitioner::choice_line(report)));
}

}  // namespace tessera::engine
