#include "engine/train/data_loader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/random.h"
#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "partitioner/plan/image_shares.h"

namespace tessera::engine {

namespace {

// Calls visit(image, channel, row) for each row of the region, in (N, C, H, W) order.
template <class Visit>
void for_each_row(const Region& region, Visit visit) {
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index c = region.channels.begin; c < region.channels.end; ++c) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        visit(n, c, row);
      }
    }
  }
}

}  // namespace

DataLoader::DataLoader(std::optional<BatchSource> source,
                       const partitioner::Plan& plan,
                       const Communicator& communicator)
    : DataLoader(source ? std::make_shared<const BatchSource>(std::move(*source)) : nullptr,
                 plan,
                 communicator) {}

DataLoader::DataLoader(std::shared_ptr<const BatchSource> source,
                       const partitioner::Plan& plan,
                       const Communicator& communicator)
    : source_(std::move(source)),
      plan_(&plan),
      communicator_(&communicator),
      exchange_(communicator, plan.targets),
      targets_(static_cast<std::size_t>(plan.batch)) {
  expects((source_ != nullptr) == reads(plan, communicator.rank()),
          "a source where the plan reads");
}

DataLoader::DataLoader(RandomPictures pictures,
                       const partitioner::Plan& plan,
                       const Communicator& communicator)
    : random_(pictures),
      plan_(&plan),
      communicator_(&communicator),
      exchange_(communicator, plan.targets),
      targets_(class_targets(std::vector<int>(static_cast<std::size_t>(plan.batch)))) {}

DataLoader::Batch DataLoader::read(const BatchSource& source,
                                   Index step,
                                   const Region& region,
                                   std::vector<float> pixels) {
  Batch batch{step, region, {}, std::move(pixels), {}, std::nullopt};
  batch.problem = problem_of([&] {
    batch.targets = source.targets(step);
    batch.pixels.resize(static_cast<std::size_t>(region.volume()));
    if (!region.empty()) {
      batch.reading = source.read_region(step, region, batch.pixels);
    }
  });
  return batch;
}

void DataLoader::read_ahead(Index step, const Region& region) {
  upcoming_ = std::async(std::launch::async,
                         [source = source_, step, region, pixels = std::move(spare_)]() mutable {
                           return read(*source, step, region, std::move(pixels));
                         });
}

void DataLoader::finish_reading() const {
  if (upcoming_.valid()) {
    upcoming_.wait();
  }
}

// The batch that was read ahead, if it is this one.
DataLoader::Batch DataLoader::next(Index step, const Region& region) {
  if (upcoming_.valid()) {
    Batch batch = upcoming_.get();
    if (batch.step == step && batch.region == region) {
      return batch;
    }
    spare_ = std::move(batch.pixels);
  }
  return read(*source_, step, region, std::move(spare_));
}

std::vector<Index> DataLoader::shared_images(Index step) const {
  const std::vector<Index> images = shares()->images(step);
  return source_->options().part == BatchOptions::kAllParts
             ? std::vector<Index>{std::accumulate(images.begin(), images.end(), Index{0})}
             : images;
}

Region DataLoader::region_after(Index step, const Region& region) const {
  if (sizes_ != nullptr) {
    const auto next = sizes_->at((step + 1) / passes_);
    return partitioner::image_region(next->network, next->plan, communicator_->rank());
  }
  if (shares() == nullptr) {
    return region;
  }
  const auto rank = static_cast<std::size_t>(communicator_->rank());
  Region next = region;
  next.images = image_shares(shared_images(step + 1), *plan_)[rank].computed;
  return next;
}

// On rank 0: each rank knows those of its own images.
void DataLoader::gather_targets(Index step) {
  const auto owned = image_shares(shared_images(step), *plan_);
  std::vector<partitioner::Message> messages;
  for (std::size_t rank = 1; rank < owned.size(); ++rank) {
    if (!owned[rank].owned.empty()) {
      messages.push_back(
          {static_cast<int>(rank), 0, partitioner::Payload::images(owned[rank].owned)});
    }
  }
  TargetExchange(*communicator_, std::move(messages)).run(targets_);
}

std::optional<std::string> DataLoader::load_from_source(Index step,
                                                        Execution<float>& execution,
                                                        const Needs& needs) {
  if (shares() != nullptr) {
    execution.set_images(shared_images(step));
  }
  const Region all = execution.image_region(communicator_->rank());
  const Region region = needs.pictures ? all : Region{};
  most_pixels_ = std::max(most_pixels_, region.volume());
  Batch batch = next(step, region);
  most_decoding_ = std::max(most_decoding_, batch.reading.decoding_bytes);
  pictures_read_ += batch.reading.pictures;
  if (!batch.problem) {
    targets_ = std::move(batch.targets);
    unreadable_ = std::move(batch.reading.unreadable);
    if (needs.pictures) {
      copy_in(std::as_const(batch.pixels).data(), region, execution.image());
    }
  } else if (shares() != nullptr) {
    targets_ = Targets(static_cast<std::size_t>(execution.plan().batch));
  }
  spare_ = std::move(batch.pixels);
  read_ahead(step + 1, needs.next_ones ? region_after(step, all) : Region{});
  return std::move(batch.problem);
}

void DataLoader::load_random(Execution<float>& execution) {
  const Region region = execution.image_region(communicator_->rank());
  if (std::ssize(spare_) != region.volume()) {
    const partitioner::MapShape& shape = execution.network().image;
    spare_.clear();
    spare_.reserve(static_cast<std::size_t>(region.volume()));
    for_each_row(region, [&](Index n, Index c, Index row) {
      const auto line = static_cast<std::uint64_t>((n * shape.channels + c) * shape.rows + row);
      for (Index col = region.cols.begin; col < region.cols.end; ++col) {
        spare_.push_back(static_cast<float>(
            random_uniform(random_->seed, line, static_cast<std::uint64_t>(col))));
      }
    });
    most_pixels_ = std::max(most_pixels_, region.volume());
  }
  copy_in(std::as_const(spare_).data(), region, execution.image());
}

std::optional<std::string> DataLoader::load(Index step,
                                            Execution<float>& execution,
                                            const Needs& needs) {
  if (random_) {
    load_random(execution);
    return std::nullopt;
  }
  std::optional<std::string> problem;
  if (source_) {
    problem = load_from_source(step, execution, needs);
  }
  exchange_.run(targets_);
  if (shares() != nullptr && source_->options().split == Split::Test) {
    gather_targets(step);
  }
  return problem;
}

std::vector<Index> DataLoader::of_reader(std::vector<Index> mine) const {
  const auto reader = plan_->reader.single_rank();
  return reader ? std::move(communicator_->of_ranks(mine)[static_cast<std::size_t>(*reader)])
                : mine;
}

// By item, variant and whether it is plain; the last one is that of places that show nothing.
std::vector<Index> DataLoader::shown_images(Index step) const {
  std::vector<Index> numbers;
  if (source_) {
    const Index pictures = source_->dataset().size();
    const Index variants = source_->variants();
    for (const BatchSource::ShownImage& shown : source_->shown_images(step)) {
      numbers.push_back(shown.item < 0 ? 2 * variants * pictures
                                       : (shown.variant + (shown.plain ? variants : 0)) * pictures +
                                             shown.item);
    }
  }
  return of_reader(std::move(numbers));
}

Index DataLoader::images_to_show() const {
  std::vector<Index> mine;
  if (source_) {
    mine = {2 * source_->variants() * source_->dataset().size() + 1};
  }
  return of_reader(std::move(mine)).at(0);
}

Index DataLoader::size() const {
  if (shares() != nullptr) {
    return shares()->size();
  }
  const Index mine = source_ ? source_->dataset().size() : 0;
  return communicator_->of_ranks(mine)[static_cast<std::size_t>(plan_->reader.first_rank())];
}

Index DataLoader::passes() const {
  return shares() != nullptr ? shares()->passes() : (size() + plan_->batch - 1) / plan_->batch;
}

std::vector<std::string> DataLoader::class_names() const {
  auto of_ranks = lists_of_ranks(
      *communicator_, source_ ? source_->dataset().class_names() : std::vector<std::string>());
  return std::move(of_ranks[static_cast<std::size_t>(plan_->reader.first_rank())]);
}

}  // namespace tessera::engine
