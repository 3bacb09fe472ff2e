#include "engine/train/feed.h"

#include <cstring>
#include <utility>

#include "engine/comm/agreement.h"

namespace engine {

namespace {

constexpr int kTruthTag = 4;  // below those of an execution

}  // namespace

Feed::Feed(std::optional<BatchSource> source,
           const partitioner::Plan& plan,
           const Communicator& communicator)
    : source_(std::move(source)),
      plan_(&plan),
      communicator_(&communicator),
      truth_(communicator, plan.truth, kTruthTag),
      labels_(static_cast<std::size_t>(plan.batch)) {
  partitioner::expects(source_.has_value() == reads(plan, communicator.rank()),
                       "a source where the plan reads");
}

std::optional<std::string> Feed::load(Index step, Execution<float>& execution) {
  auto problem = problem_of([&] {
    if (!source_) {
      return;
    }
    labels_ = source_->labels(step);
    const Region region = execution.image_region(communicator_->rank());
    pixels_.resize(static_cast<std::size_t>(region.volume()));
    if (!region.empty()) {
      source_->read_region(step, region, pixels_);
      copy_in(std::as_const(pixels_).data(), region, execution.image());
    }
  });
  std::vector<float> truth(labels_.begin(), labels_.end());
  const View<float> view{truth.data(), {{0, plan_->batch}, {0, 1}, {0, 1}, {0, 1}}, 1};
  truth_.start_copy(view);
  truth_.finish_copy(view);
  labels_.assign(truth.begin(), truth.end());
  return problem;
}

Index Feed::size() const {
  const Index mine = source_ ? source_->dataset().size() : 0;
  const auto all = communicator_->gather_all(bytes_of(&mine, 1));
  Index size = 0;
  std::memcpy(
      &size, all[static_cast<std::size_t>(std::max(plan_->reader, 0))].data(), sizeof(size));
  return size;
}

}  // namespace engine
