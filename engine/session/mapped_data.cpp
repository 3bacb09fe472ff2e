#include "engine/session/mapped_data.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/comm/mpi_session.h"
#include "engine/moving/move_lists.h"
#include "engine/run_files/names.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/plan/image_shares.h"

namespace tessera::engine {

namespace {

constexpr const char* kOption = "--data-map";

void refuse(bool condition, const std::string& why) {
  if (condition) {
    throw AgreedError(why);
  }
}

}  // namespace

MappedData::MappedData(const TrainingRequest& request,
                       BatchNormMode batch_norm,
                       Index images,
                       Index passes,
                       const Communicator& communicator)
    : communicator_(communicator), file_(request.data_map) {
  std::optional<std::string> text;
  on_root(communicator, [&] { text = partitioner::read_data_map(file_); });
  text = communicator.agree(text);
  map_ = agreed(communicator, [&] { return partitioner::parse_data_map(*text, file_); });
  refuse(std::ssize(map_.before) != communicator.size(),
         fmt::format("{}: the data map is of {}, there are {}: start as many",
                     file_,
                     counted(std::ssize(map_.before), "device"),
                     counted(communicator.size(), "rank")));
  const std::vector<Index> after = samples_after(map_);
  const Index all = std::accumulate(after.begin(), after.end(), Index{0});
  constexpr Index kMostSamples = (Index{1} << 31U) - 1;
  refuse(all < 1 || all > kMostSamples,
         fmt::format("{}: there are {} samples, expected 1 to {}", file_, all, kMostSamples));
  training_ = std::make_shared<const DataShares>(
      DataShares::for_training(after, images, {samples_staying(map_), map_.share_while_moving}));
  expect_fitting_options(request, batch_norm);
  if (request.resume.empty() && MpiSession::threads_may_call()) {
    // The loader reads a pass ahead.
    early_steps_ = std::max<Index>(0, (training_->early_passes() - 1) / passes);
  }
}

void MappedData::expect_fitting_options(const TrainingRequest& request,
                                        BatchNormMode batch_norm) const {
  refuse(request.skip_broken,
         "--skip-broken: a data map counts samples, and would count others on a rank that skips "
         "some: remove broken pictures (`tessera check-data` lists them)");
  refuse(request.partition.automatic,
         "--partition auto: with a data map each rank trains on its own pictures, so only images "
         "can be cut, and the map says how many each rank has: leave out --partition");
  refuse(requested_replicas(request.partition).independent(),
         "--sync: with a data map the shares of a batch differ, and replicas that are apart need "
         "equal ones: leave out --sync or --data-map");
  const std::vector<Index>& fewest = training_->fewest_images();
  for (std::size_t rank = 0; rank < fewest.size(); ++rank) {
    refuse(
        batch_norm == BatchNormMode::PerTile && fewest[rank] == 0 && training_->sizes()[rank] > 0,
        fmt::format("--batch-norm tile: rank {} has so few samples that it has none in some "
                    "batches, and no statistics of its own there: raise --batch, or leave out "
                    "--batch-norm",
                    rank));
  }
}

OwnPart MappedData::own_part() const {
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  return {map_.before[rank], training_->sizes()[rank]};
}

PartitionRequest MappedData::cut_by_images(PartitionRequest request) {
  if (!request.says_how_to_cut()) {
    request.cut.grid = {1, 1};
    request.cut.data_parallel_from = 0;
  }
  return request;
}

partitioner::Partition MappedData::shared(const partitioner::Partition& chosen) const {
  return agreed(communicator_,
                [&] { return with_image_shares(chosen, training_->most_images(), kOption); });
}

Index MappedData::places() const {
  const std::vector<Index>& most = training_->most_images();
  return std::accumulate(most.begin(), most.end(), Index{0});
}

void MappedData::make_room(Dataset& training) const {
  training.reserve(training_->sizes()[static_cast<std::size_t>(communicator_.rank())]);
}

void MappedData::begin_move(const std::string& run,
                            const MoveObserver& observer,
                            const std::shared_ptr<BatchSource>& training) {
  const SampleMoveOptions options{.map = file_,
                                  .folder = std::filesystem::path(run) / "samples" /
                                            fmt::format("rank-{}", communicator_.rank()),
                                  .in_background = early_steps_ > 0};
  move_ = std::make_unique<DataMove>(map_, options, observer, training, communicator_);
}

void MappedData::finish_move(Index steps, const SessionObserver& observer) {
  moved_ = move_->finish(steps);
  moving_bytes_ = early_steps_ > 0 ? move_->bytes() : 0;
  move_.reset();
  on_root(communicator_, [&] {
    observer.say(fmt::format("pictures that each rank trains on: {}\n",
                             fmt::join(training_->sizes(), ", ")));
  });
}

void MappedData::test_on(Index pictures, const SessionObserver& observer) {
  const std::vector<Index> sizes = communicator_.of_ranks(pictures);
  testing_ =
      std::make_shared<const DataShares>(DataShares::for_testing(sizes, training_->most_images()));
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    if (sizes[rank] > 0 && training_->most_images()[rank] == 0) {
      observer.warn(
          fmt::format("rank {} has no pictures to train on and stays idle: its {} for testing are "
                      "left out",
                      rank,
                      counted(sizes[rank], "picture")),
          communicator_);
    }
  }
  refuse(testing_->size() == 0,
         "no rank that trains has pictures for testing: add some, or give --no-eval");
}

void MappedData::share(BatchOptions& options, const Dataset& dataset) const {
  options.shares = options.split == Split::Train ? training_ : testing_;
  options.part = communicator_.rank();
  if (options.split == Split::Train) {
    options.leaving = items_that_leave(map_, dataset, options.part, file_);
  }
}

void warn_of_other_data_map(const std::string& resume,
                            const std::string& now,
                            const Communicator& communicator,
                            const SessionObserver& observer) {
  if (resume.empty() || communicator.rank() != 0) {
    return;
  }
  const std::filesystem::path file =
      std::filesystem::path(resume).parent_path() / run_file::kDataMap;
  std::error_code error;
  const bool had_one = std::filesystem::exists(file, error);
  std::string before;
  if (had_one && problem_of([&] { before = partitioner::read_data_map(file); })) {
    return;  // what cannot be read cannot be compared
  }
  if (before != now) {
    observer.warn(fmt::format("{}: its run had {} data map: pictures are shuffled differently",
                              resume,
                              !had_one      ? "no"
                              : now.empty() ? "a"
                                            : "another"));
  }
}

}  // namespace tessera::engine
