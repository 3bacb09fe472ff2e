#include "engine/train/carried_state.h"

#include <algorithm>

#include "engine/execution/parameter_regrid.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

std::vector<float> copy_of(const Array<float>& array) {
  return {array.data(), array.data() + array.size()};
}

// Elements that a rank owns of what it holds, run after run.
std::vector<float> owned_part(const Parameter<float>& parameter, int rank) {
  std::vector<float> values;
  for (const PlacedRun& run : owned_values(*parameter.plan)) {
    if (run.rank == rank) {
      const float* const begin = parameter.values.data() + run.at;
      values.insert(values.end(), begin, begin + run.elements.size());
    }
  }
  return values;
}

}  // namespace

CarriedState::CarriedState(const partitioner::Plan& plan, Trainer* trainer) {
  for (const partitioner::ParameterPlan& parameter : plan.parameters) {
    tensors_.push_back({parameter, {}, {}, {}, {}});
  }
  if (trainer == nullptr) {
    return;
  }
  steps_ = trainer->steps_done();
  latest_losses_ = trainer->latest_losses();
  trained_ = trainer->optimizer().trained();
  const auto& parameters = trainer->execution().parameters().all();
  const int rank = trainer->execution().communicator().rank();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    tensors_[i].values = owned_part(parameters[i], rank);
    tensors_[i].first = copy_of(trainer->optimizer().states()[i].first);
    tensors_[i].second = copy_of(trainer->optimizer().states()[i].second);
    tensors_[i].average = copy_of(trainer->optimizer().states()[i].average);
  }
}

void CarriedState::give(const partitioner::Plan& plan,
                        Trainer* trainer,
                        const Communicator& communicator) const {
  expects(plan.parameters.size() == tensors_.size(), "plans are of the same network");
  const Index steps = communicator.share(steps_);
  const partitioner::TrainedArrays trained = communicator.share(trained_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    const partitioner::ParameterPlan& now = plan.parameters[i];
    const auto carry = [&](const std::vector<float>& mine,
                           const std::vector<PlacedRun>& from,
                           const std::vector<PlacedRun>& to,
                           Array<float> OptimizerState<float>::*state) {
      float* place = nullptr;
      if (trainer != nullptr) {
        place = state == nullptr ? trainer->execution().parameters().all()[i].values.data()
                                 : (trainer->optimizer().states()[i].*state).data();
      }
      regrid_elements(communicator, from, mine.data(), to, place);
    };
    carry(tensor.values, owned_alone(tensor.plan), held_values(now), nullptr);
    const std::vector<PlacedRun> from = owned_states(tensor.plan);
    const std::vector<PlacedRun> to = all_states(now);
    if (is_learnt(tensor.plan) && is_learnt(now)) {
      carry(tensor.first, from, to, &OptimizerState<float>::first);
      if (trained.adam) {
        carry(tensor.second, from, to, &OptimizerState<float>::second);
      }
    }
    if (trained.averages && !now.frozen && !tensor.plan.frozen) {
      carry(tensor.average, from, to, &OptimizerState<float>::average);
    } else if (trained.averages && !now.frozen) {  // what has begun to learn
      carry(tensor.values, owned_alone(tensor.plan), to, &OptimizerState<float>::average);
    }
  }
  const std::vector<double> losses = communicator.of_ranks(latest_losses_).front();
  if (trainer != nullptr) {
    trainer->resume_at(steps, false, losses);
  }
}

}  // namespace tessera::engine
