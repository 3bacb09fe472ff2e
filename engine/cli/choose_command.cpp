#include <filesystem>
#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/comm/agreement.h"
#include "engine/files/atomic_file.h"
#include "engine/ops/loops/threads.h"
#include "engine/run_files/names.h"
#include "engine/session/device_choice.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// A rank for each device.
void expect_several_devices(const TrainingRequest& request, int ranks) {
  const std::string& profile = request.partition.cluster;
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

}  // namespace

void run_choose(const ChooseCommand& command, const Communicator& communicator) {
  const TrainingRequest request = started_request(command.train);
  if (request.run.empty()) {
    throw AgreedError("--run is required, unless there is --dry-run (see tessera choose --help)");
  }
  if (request.devices) {  // not where a supervisor goes on with other ones
    throw_agreed(communicator,
                 problem_of([&] { expect_several_devices(request, communicator.size()); }));
  }
  run_train(command.train, communicator);
}

void run_dry_choose(const ChooseCommand& command) {
  expect_usable_threads();
  const TrainingRequest& request = command.train.request;
  const PredictedChoice predicted = predict_choice(request, printed_messages());
  if (!request.run.empty()) {
    std::error_code unwritable;  // then writing says so
    std::filesystem::create_directories(request.run, unwritable);
    write_atomically(std::filesystem::path(request.run) / run_file::kChoice,
                     partitioner::choice_json(predicted.report));
  }
  fmt::print("{}", partitioner::choice_table(predicted.report));
  if (predicted.problem) {
    throw InputError(*predicted.problem);
  }
  fmt::print("best: {}\n", printable(partitioner::choice_line(predicted.report)));
}

}  // namespace tessera::engine
