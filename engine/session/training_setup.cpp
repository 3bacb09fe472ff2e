#include "engine/session/training_setup.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/recovery/device_name.h"
#include "engine/session/memory_needs.h"
#include "engine/session/model_setup.h"
#include "engine/session/own_data.h"
#include "engine/session/partition_chooser.h"
#include "engine/session/training_length.h"
#include "engine/session/training_start.h"
#include "engine/train/data_loader.h"
#include "engine/train/metrics/make_metric.h"
#include "engine/train/optimizer.h"
#include "partitioner/network/losses.h"
#include "partitioner/text/plan_words.h"

namespace tessera::engine {

namespace {

// What libraries and fonts take that draw text on a detector's pictures, see engine/drawing.
constexpr Index kDrawnTextBytes = Index{12} << 20U;

const std::string kBefore = "earlier in this run: ";

void expect_carried_precision(const partitioner::Compression& precision,
                              bool rebalances,
                              bool chooses) {
  if ((rebalances || chooses) && precision.by_runs()) {
    throw AgreedError(
        fmt::format("--gradient-precision {}: what its messages leave out cannot be carried to "
                    "another partition, which {} may go on by",
                    to_text(precision),
                    rebalances ? "--rebalance" : "choose"));
  }
}

// What a partition file says, where the run is to go on by others.
void expect_changeable(const partitioner::Partition& partition) {
  if (partition.replicas.count > 1) {
    throw AgreedError("--rebalance cannot go on from a partition file with [replicas]");
  }
  expect_carried_precision(partition.gradient_reduction.compression, true, false);
}

void expect_fitting_options(const TrainingRequest& request, bool chooses) {
  const PartitionRequest& partition = request.partition;
  if (!request.monitor && !request.meters.empty()) {
    throw AgreedError("--meter is read by the monitor: leave out --monitor off");
  }
  const bool rebalances = request.rebalance_window_s.has_value();
  if (rebalances && !partition.automatic && partition.file.empty()) {
    throw AgreedError(
        "--rebalance finds partitions as --partition auto does: give that, too, or a partition "
        "file to begin with");
  }
  if (rebalances && partition.cut.replicas.value_or(1) > 1) {
    throw AgreedError(
        "--rebalance cannot be combined with --replicas, whose partition must not change");
  }
  const bool post_local =
      partition.cut.sync && partition.cut.sync->mode == partitioner::SyncMode::PostLocal;
  if (request.local_after > 0 && !post_local && partition.file.empty()) {
    throw AgreedError("--local-after requires --sync post-local:H");
  }
  expect_carried_precision(
      partition.gradient_precision.value_or(partitioner::Compression::Exact), rebalances, chooses);
  if (rebalances && !request.data_map.empty()) {
    throw AgreedError(
        "--rebalance moves work between devices, and --data-map keeps it where the data lie: leave "
        "out one of them");
  }
}

void expect_no_variants(Index variants, const TrainingRequest& request) {
  if (variants > 0) {
    throw AgreedError(fmt::format(
        "{}--augment-variants {}: a variant is drawn by the number of its picture in the whole "
        "data set, which ranks with data of their own do not know: leave out --data-map, or start "
        "without variants",
        request.augment_variants > 0 ? "" : request.resume + " was trained with ",
        variants));
  }
}

void say_what_is_not_exact(const std::vector<std::string>& words,
                           const Communicator& communicator,
                           const SessionObserver& observer) {
  on_root(communicator, [&] {
    if (!words.empty()) {
      observer.say(fmt::format("Not exact: {}\n", fmt::join(words, "; ")));
    }
  });
}

partitioner::StateKeeping state_keeping(const std::string& folder,
                                        const Communicator& communicator) {
  if (folder.empty()) {
    return {};
  }
  return {.is_on = true, .devices = texts_of_ranks(communicator, device_name(folder))};
}

}  // namespace

TrainingSetup::TrainingSetup(const TrainingRequest& request,
                             const RunEnvironment& environment,
                             const Communicator& communicator,
                             const SessionObserver& observer,
                             PartitionChooser* chooser)
    : request_(request),
      environment_(environment),
      communicator_(communicator),
      observer_(observer) {
  const bool chooses = chooser != nullptr;
  expect_fitting_options(request, chooses);
  program_bytes_ = program_bytes_of_ranks(communicator);  // before anything below takes memory
  model_ = model_to_train(request, communicator, observer);
  record_before_ = record_to_resume(request, model_.network, communicator);
  training_ =
      agreed(communicator, [&] { return training_options(request, model_, record_before_); });
  kept_ = state_keeping(environment.state_folder, communicator);
  sizes_ = sizes_of_inputs(chooses);
  if (!request.data_map.empty()) {
    expect_no_variants(augment_variants(), request);
    mapped_.emplace(request, batch_norm(), pass_images(), training_.subdivisions, communicator);
  }
  settle_partition(chooser);
  seed_ = training_seed(request, communicator);
  settle_input_schedule();
  heaviest_ = heaviest_plans(partition_);
  before_ = preparation_before(request, communicator);
  rules_ = training_rules(request, before_, model_, communicator, observer);
  say_what_is_unusual(chooses);
  if (!data_) {  // a partition that is asked for says who reads
    list_data(DataLoader::reads(plan_, communicator.rank()));
  }
  const bool may_change_partition = chooses || request.rebalance_window_s;
  caching_.emplace(caching_choice(may_change_partition), *needs_, communicator, observer);
  trunk_caching_.emplace(
      trunk_caching_choice(may_change_partition), model_.network, plan_, communicator, observer);
  expect_memory(planned_memory(partition_),
                request.model,
                communicator,
                sizes_ ? fmt::format("or train on inputs smaller than {} (--multi-scale FACTOR, "
                                     "or off)",
                                     to_text(sizes_->largest()))
                       : "");
}

// A search looks at what pictures take, too, and leaves the reader as it is.
void TrainingSetup::settle_partition(PartitionChooser* chooser) {
  if (const auto reads = reads_before_search(request_.partition, communicator_)) {
    const auto replicas =
        agreed(communicator_, [&] { return requested_replicas(request_.partition); });
    const auto compression =
        request_.partition.gradient_precision.value_or(partitioner::Compression::Exact);
    say_what_is_not_exact(
        inexact(replicas, compression, communicator_.size() > 1), communicator_, observer_);
    list_data(*reads);
  }
  partition_ = choose(chooser);
  plan_ = make_plan(model_.network, partition_, places());
}

void TrainingSetup::say_what_is_unusual(bool chooses) const {
  if (request_.rebalance_window_s) {
    expect_changeable(partition_);
  }
  if (!request_.partition.automatic) {  // else it was said before the search
    say_what_is_not_exact(inexact(partition_), communicator_, observer_);
  }
  if (!chooses) {
    warn_of_idle_ranks(partition_, communicator_, observer_);
  }
  warn_of_testing_batch(request_, model_, communicator_, observer_);
  if (batch_norm() != BatchNormMode::Frozen) {
    warn_of_single_values(
        request_, model_.network, plan_, batch_norm(), pass_images(), communicator_, observer_);
  }
}

std::optional<partitioner::InputSizes> TrainingSetup::sizes_of_inputs(bool chooses) const {
  std::optional<double> asked = request_.multi_scale;
  if (!asked && record_before_) {
    asked = record_before_->multi_scale;
    if (*asked != model_.augmentation.random) {
      const std::string before = multi_scale_text(*asked);
      observer_.warn(fmt::format("{} was trained with --multi-scale {}, {} says random={}: it goes "
                                 "on with {}",
                                 request_.resume,
                                 before,
                                 request_.model,
                                 model_.augmentation.random,
                                 before),
                     communicator_);
    }
  }
  const bool rebalances = request_.rebalance_window_s.has_value();
  auto sizes = agreed(communicator_,
                      [&] { return input_sizes(model_, model_.network, asked, request_.model); });
  if (sizes && (chooses || rebalances)) {
    throw AgreedError(
        fmt::format("{} compares the time of steps, and multi-scale training ({}) has inputs of "
                    "several sizes: give --multi-scale off",
                    rebalances ? "--rebalance" : "choose",
                    asked ? "--multi-scale" : "random in the model file"));
  }
  return sizes;
}

void TrainingSetup::settle_input_schedule() {
  if (!sizes_) {
    return;
  }
  throw_agreed(communicator_, problem_of([&] {
                 expect_plans(model_.network, partition_, places(), *sizes_, request_.model);
               }));
  schedule_.emplace(*sizes_, seed_, largest_input_from(training_.max_batches));
}

PhasePlan TrainingSetup::phase_in(Index step, const partitioner::Partition& partition) const {
  PhasePlan phase{.network = network_in_step(model_.network, step), .plan = {}};
  phase.plan = make_plan(phase.network, partition, places());
  if (schedule_) {
    phase.sizes = std::make_shared<SizedPlans>(phase.network, partition, places(), *schedule_);
  }
  return phase;
}

PhasePlan TrainingSetup::first_phase_in(Index step) {
  plan_ = {};
  heaviest_.clear();
  return phase_in(step, partition_);
}

std::vector<partitioner::SizedPlan> TrainingSetup::heaviest_plans(
    const partitioner::Partition& partition) const {
  std::vector<partitioner::SizedPlan> plans;
  for (partitioner::Network& network : networks_in_turn(model_.network)) {
    if (sizes_) {
      plans.push_back(sized_plan(network, partition, places(), sizes_->largest()));
    } else {
      partitioner::Plan plan = make_plan(network, partition, places());
      plans.push_back({std::move(network), partition, std::move(plan)});
    }
  }
  return plans;
}

std::vector<partitioner::MemoryUse> TrainingSetup::planned_memory(
    const partitioner::Partition& partition) const {
  std::vector<partitioner::MemoryUse> most(static_cast<std::size_t>(partition.ranks));
  const auto add = [&](const std::vector<partitioner::SizedPlan>& plans) {
    for (const auto& [network, cut, plan] : plans) {
      most = larger_of_ranks(
          most, planned_memory_of_ranks(network, plan, planned_options(network, plan)));
    }
  };
  add(heaviest_.empty() ? heaviest_plans(partition) : heaviest_);
  return most;
}

std::string TrainingSetup::described_sizes(const std::optional<double>& predicted_s) const {
  return sizes_ ? multi_scale_line(*sizes_, {planned_memory(partition_), predicted_s}) : "";
}

void TrainingSetup::list_data(bool reads) {
  DataChoice choice{.path = request_.data,
                    .model = request_.model,
                    .training = true,
                    .testing = request_.evaluate,
                    .skip_broken = request_.skip_broken,
                    .allow_unlabelled = request_.allow_unlabelled,
                    .kept_folder = environment_.state_folder};
  if (mapped_) {
    choice.path = path_of_rank(request_.data, communicator_.rank());
    choice.own = mapped_->own_part();
    expect_own_path(choice.path, communicator_);
  }
  data_.emplace(std::move(choice), model_.network, reads, communicator_, observer_);
  const RenderingRules rules = rendering_rules(model_);
  needs_ = data_->needs(sizes_ ? rules_of_size(rules, sizes_->largest()) : rules);
  needs_->data_bytes += mapped_ ? mapped_->background_bytes() : 0;
  expect_data_fits(*needs_, request_.partition.memory_limit_bytes.value_or(0));
}

partitioner::Partition TrainingSetup::choose(PartitionChooser* chooser) const {
  throw_agreed(communicator_, problem_of([&] { expect_loss(model_.network, request_.model); }));
  if (chooser != nullptr) {
    partitioner::TrainingOptions training = training_;
    const Index steps = training_length(request_, data_->training_pictures(), training).last_step;
    return chooser->first_partition(model_.network, workload(), steps, communicator_);
  }
  return mapped_ ? mapped_partition()
                 : partition_for_sizes(model_.network,
                                       request_.partition,
                                       pass_images(),
                                       sizes_,
                                       [&](const partitioner::Network& network) {
                                         return agreed_partition(network,
                                                                 request_.partition,
                                                                 workload(pass_images()),
                                                                 communicator_,
                                                                 observer_);
                                       });
}

// Each rank with as many images of a pass as its part of the data set asks for.
partitioner::Partition TrainingSetup::mapped_partition() const {
  const PartitionRequest by_images = MappedData::cut_by_images(request_.partition);
  partitioner::Partition shared = mapped_->shared(agreed_partition(
      model_.network, by_images, workload(pass_images()), communicator_, observer_));
  throw_agreed(communicator_, problem_of([&] {
                 validate(shared, model_.network, places(), "--data-map");
                 limit_workspace(model_.network, by_images, places(), shared);
               }));
  return shared;
}

OpenedData TrainingSetup::open_data() {
  const partitioner::MemoryUse planned =
      planned_memory(partition_)[static_cast<std::size_t>(communicator_.rank())];
  return std::move(*data_).open(planned.of_network() + planned.decoding);
}

std::shared_ptr<BatchSource> TrainingSetup::source(std::optional<Dataset> dataset,
                                                   Split split) const {
  return agreed(communicator_, [&]() -> std::shared_ptr<BatchSource> {
    if (!dataset) {
      return nullptr;
    }
    BatchOptions options{rules_, pass_images(), seed_, split};
    options.cache = caching_->cache();
    if (split == Split::Train) {
      options.passes = training_.subdivisions;
      options.variants = augment_variants();
    }
    if (schedule_ && split == Split::Train) {
      options.sizes = std::make_shared<const InputSchedule>(*schedule_);
    }
    if (mapped_) {
      mapped_->share(options, *dataset);
    }
    return std::make_shared<BatchSource>(std::move(*dataset), options, request_.model);
  });
}

TrainingLength TrainingSetup::settle_length(Index pictures) {
  return training_length(request_, pictures, training_);
}

// What the plan has room for: where shares of ranks change from pass to pass, more than a pass has.
Index TrainingSetup::places() const {
  return mapped_ ? mapped_->places() : pass_images();
}

Workload TrainingSetup::workload(Index images) const {
  return {.model = request_.model,
          .batch = images,
          .passes = training_.subdivisions,
          .trained = trained_arrays(training_),
          .kept = kept_,
          .decoding_bytes = needs_ ? needs_->decoding_bytes : 0,
          .data_bytes = needs_ ? needs_->data_bytes : 0,
          .judging_bytes = judging_bytes(images)};
}

Index TrainingSetup::judging_bytes(Index images) const {
  if (!needs_ || needs_->tested_pictures == 0) {
    return 0;
  }
  const Index fonts = is_detector(model_.network) ? kDrawnTextBytes : 0;
  return engine::judging_bytes(model_.network, images, needs_->tested_pictures) + fonts;
}

partitioner::ReportOptions TrainingSetup::planned_options(const partitioner::Network& network,
                                                          const partitioner::Plan& plan) const {
  partitioner::ReportOptions options =
      report_options(request_.model, network, plan, trained_arrays(training_));
  options.tile_statistics =
      batch_norm() == BatchNormMode::PerTile && busy_ranks(partition_).size() > 1;
  options.program_bytes = program_bytes_;
  options.memory.picture_batches += request_.evaluate ? 1 : 0;  // those to test with
  options.memory.kept = kept_;
  options.memory.decoding_bytes = needs_ ? needs_->decoding_bytes : 0;
  options.memory.data_bytes = needs_ ? needs_->data_bytes : 0;
  options.memory.judging_bytes = judging_bytes(plan.batch);
  options.memory.cache_bytes = (caching_ ? caching_->planned_bytes() : 0) +
                               (trunk_caching_ ? trunk_caching_->planned_bytes() : 0);
  return options;
}

std::vector<std::string> TrainingSetup::inexact(const partitioner::Partition& partition) const {
  return inexact(partition.replicas,
                 partition.gradient_reduction.compression,
                 busy_ranks(partition).size() > 1);
}

std::vector<std::string> TrainingSetup::inexact(const partitioner::Replicas& replicas,
                                                const partitioner::Compression& compression,
                                                bool several_tiles) const {
  std::vector<std::string> words =
      partitioner::inexact_words(model_.network,
                                 replicas,
                                 several_tiles ? compression : partitioner::Compression::Exact,
                                 several_tiles && batch_norm() == BatchNormMode::PerTile);
  for (const std::string& before :
       record_before_ ? record_before_->inexact : std::vector<std::string>()) {
    const bool known = std::find(words.begin(), words.end(), before) != words.end();
    const bool of_before = before.starts_with(kBefore);
    if (!known) {
      words.push_back(of_before ? before : kBefore + before);
    }
  }
  return words;
}

BatchNormMode TrainingSetup::batch_norm() const {
  const auto& layers = model_.network.layers;
  if (std::none_of(layers.begin(), layers.end(), partitioner::takes_batch_statistics)) {
    return BatchNormMode::Sync;  // all modes are the same
  }
  return request_.batch_norm.value_or(record_before_ ? record_before_->batch_norm
                                                     : BatchNormMode::Sync);
}

Index TrainingSetup::augment_variants() const {
  return request_.augment_variants > 0 || !record_before_ ? request_.augment_variants
                                                          : record_before_->augment_variants;
}

TrainingRecord TrainingSetup::record(Index pictures, const std::string& data_digest) const {
  const partitioner::Replicas& replicas = partition_.replicas;
  return {.images = training_.batch,
          .subdivisions = training_.subdivisions,
          .pictures = pictures,
          .data_digest = data_digest,
          .schedule_steps = depends_on_length(training_) ? training_.max_batches : 0,
          .batch_norm = batch_norm(),
          // Nothing travels between tiles of one rank.
          .gradient_precision =
              to_text(busy_ranks(partition_).size() > 1 ? partition_.gradient_reduction.compression
                                                        : partitioner::Compression::Exact),
          .sync = to_text(replicas.sync),
          .replicas = replicas.independent() ? replicas.count : 1,
          .multi_scale = sizes_ ? sizes_->factor() : 0,
          .augment_variants = augment_variants(),
          .settings = training_settings(training_, model_.augmentation, model_.network),
          .inexact = inexact(partition_)};
}

}  // namespace tessera::engine
