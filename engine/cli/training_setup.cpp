#include "engine/cli/training_setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "engine/cli/own_data.h"
#include "engine/cli/partition_chooser.h"
#include "engine/cli/setup.h"
#include "engine/cli/training_length.h"
#include "engine/cli/training_start.h"
#include "engine/comm/agreement.h"
#include "engine/system/say.h"
#include "engine/train/data_loader.h"
#include "partitioner/report/plan_words.h"

namespace tessera::engine {

namespace {

void expect_fitting_options(const TrainCommand& command, bool chooses) {
  const PartitionChoice& partition = command.partition;
  if (command.monitor == "off" && !command.meters.empty()) {
    throw AgreedError("--meter is read by the monitor: leave out --monitor off");
  }
  if (command.rebalance && !partition.automatic()) {
    throw AgreedError("--rebalance finds partitions as --partition auto does: give that, too");
  }
  if (command.rebalance && partition.replicas > 1) {
    throw AgreedError("--rebalance changes the partition, which --replicas needs to stay");
  }
  if (command.local_after > 0 && partition.sync.rfind("post-local", 0) != 0 &&
      partition.file.empty()) {
    throw AgreedError("--local-after is of --sync post-local:H");
  }
  if ((command.rebalance || chooses) && partitioner::compression_named(partition.gradient_precision)
                                            .value_or(partitioner::Compression::Exact)
                                            .by_runs()) {
    throw AgreedError(
        fmt::format("--gradient-precision {}: what its messages leave out cannot be carried to "
                    "another partition, which {} may go on by",
                    partition.gradient_precision,
                    command.rebalance ? "--rebalance" : "choose"));
  }
  if (command.rebalance && !command.data_map.empty()) {
    throw AgreedError("--rebalance moves work, but not the data that --data-map ties it to");
  }
}

const TrainCommand& fitting(const TrainCommand& command, bool chooses) {
  expect_fitting_options(command, chooses);
  return command;
}

void say_what_is_not_exact(const std::vector<std::string>& words,
                           const Communicator& communicator) {
  on_root(communicator, [&] {
    if (!words.empty()) {
      say(fmt::format("Not exact: {}\n", fmt::join(words, "; ")));
    }
  });
}

}  // namespace

TrainingSetup::TrainingSetup(const TrainCommand& command,
                             const Communicator& communicator,
                             PartitionChooser* chooser)
    : command_(fitting(command, chooser != nullptr)),
      communicator_(communicator),
      model_(model_to_train(command, communicator)),
      training_(agreed(communicator, [&] { return training_options(command, model_); })),
      mapped_(map_of_data()),
      data_(list_before_choosing()),
      needs_(data_ ? std::optional(needs()) : std::nullopt),
      partition_(choose(chooser)),
      plan_(make_plan(model_.network, partition_, places())),
      seed_(training_seed(command, communicator)),
      before_(preparation_before(command, communicator)),
      rules_(training_rules(command, before_, model_, communicator)) {
  if (!command.partition.automatic()) {  // else it was said before the search
    say_what_is_not_exact(inexact(partition_), communicator);
  }
  if (chooser == nullptr) {
    warn_of_idle_ranks(partition_, communicator);
  }
  warn_of_testing_batch(command, model_, communicator);
  if (!data_) {
    data_.emplace(listed_data(DataLoader::reads(plan_, communicator.rank())));
    needs_ = needs();
  }
  expect_memory(model_.network, plan_, planned_options(plan_), communicator);
}

std::optional<MappedData> TrainingSetup::map_of_data() const {
  if (command_.data_map.empty()) {
    return std::nullopt;
  }
  return std::optional<MappedData>(
      std::in_place, command_, pass_images(), training_.subdivisions, communicator_);
}

// Where a search will choose the partition, also by what pictures take.
std::optional<ListedData> TrainingSetup::list_before_choosing() const {
  const auto reads = reads_before_search(command_.partition, communicator_);
  if (!reads) {
    return std::nullopt;
  }
  const auto replicas = agreed(communicator_, [&] { return parse_replicas(command_.partition); });
  say_what_is_not_exact(partitioner::inexact_words(
                            model_.network,
                            replicas,
                            partitioner::compression_named(command_.partition.gradient_precision)
                                .value_or(partitioner::Compression::Exact)),
                        communicator_);
  return listed_data(*reads);
}

ListedData TrainingSetup::listed_data(bool reads) const {
  DataChoice choice{.path = command_.data,
                    .model = command_.model,
                    .training = true,
                    .testing = command_.evaluate,
                    .skip_broken = command_.skip_broken};
  if (mapped_) {
    choice.path = path_of_rank(command_.data, communicator_.rank());
    choice.own = mapped_->own_part();
    expect_own_path(choice.path, communicator_);
  }
  return ListedData(std::move(choice), model_.network, reads, communicator_);
}

DataNeeds TrainingSetup::needs() const {
  DataNeeds needs = data_->needs(rendering_rules(model_));
  needs.data_bytes += mapped_ ? mapped_->background_bytes() : 0;
  expect_data_fits(needs, command_.partition.memory_limit_mib << 20U);
  return needs;
}

partitioner::Partition TrainingSetup::choose(PartitionChooser* chooser) const {
  throw_agreed(communicator_, problem_of([&] { expect_loss(model_.network, command_.model); }));
  if (chooser != nullptr) {
    partitioner::TrainingOptions training = training_;
    const Index steps = training_length(command_, data_->training_pictures(), training).last_step;
    return chooser->first_partition(model_.network, workload(), steps, communicator_);
  }
  return mapped_ ? mapped_partition()
                 : agreed_partition(
                       model_.network, command_.partition, workload(pass_images()), communicator_);
}

// Each rank with as many images of a pass as its part of the data set asks for.
partitioner::Partition TrainingSetup::mapped_partition() const {
  const PartitionChoice choice = MappedData::choice(command_.partition);
  partitioner::Partition shared = mapped_->shared(
      agreed_partition(model_.network, choice, workload(pass_images()), communicator_));
  throw_agreed(communicator_, problem_of([&] {
                 validate(shared, model_.network, places(), "--data-map");
                 limit_workspace(model_.network, choice, places(), shared);
               }));
  return shared;
}

std::shared_ptr<BatchSource> TrainingSetup::source(std::optional<Dataset> dataset,
                                                   Split split) const {
  return agreed(communicator_, [&]() -> std::shared_ptr<BatchSource> {
    if (!dataset) {
      return nullptr;
    }
    BatchOptions options{rules_, pass_images(), seed_, split};
    if (mapped_) {
      mapped_->share(options, *dataset);
    }
    return std::make_shared<BatchSource>(std::move(*dataset), options, command_.model);
  });
}

TrainingLength TrainingSetup::settle_length(Index pictures) {
  return training_length(command_, pictures, training_);
}

// What the plan has room for: where shares of ranks change from pass to pass, more than a pass has.
Index TrainingSetup::places() const {
  return mapped_ ? mapped_->places() : pass_images();
}

Workload TrainingSetup::workload(Index images) const {
  return {.model = command_.model,
          .batch = images,
          .passes = training_.subdivisions,
          .adam = training_.adam,
          .decoding_bytes = needs_ ? needs_->decoding_bytes : 0,
          .data_bytes = needs_ ? needs_->data_bytes : 0};
}

partitioner::ReportOptions TrainingSetup::planned_options(const partitioner::Plan& plan) const {
  partitioner::ReportOptions options =
      report_options(command_.model, model_.network, plan, training_.adam);
  options.memory.picture_batches += command_.evaluate ? 1 : 0;  // those to test with
  options.memory.decoding_bytes = needs_ ? needs_->decoding_bytes : 0;
  options.memory.data_bytes = needs_ ? needs_->data_bytes : 0;
  return options;
}

std::vector<std::string> TrainingSetup::inexact(const partitioner::Partition& partition) const {
  return partitioner::inexact_words(
      model_.network, partition.replicas, partition.gradient_reduction.compression);
}

}  // namespace tessera::engine
