#include "engine/train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "engine/execution/parameter_chunks.h"
#include "engine/ops/parameters/update.h"

namespace tessera::engine {

namespace {

Index elements_of(const std::vector<Range>& runs) {
  Index elements = 0;
  for (const Range& run : runs) {
    elements += run.size();
  }
  return elements;
}

// Calls visit(count, values, averages) for some of the rank's runs: those that it owns, or updates.
template <class Parameters, class States, class Visit>
void for_each_average(Parameters& parameters,
                      States& states,
                      std::vector<std::vector<Range>> partitioner::ParameterPlan::*runs,
                      int rank,
                      Visit visit) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    auto& parameter = parameters.all()[i];
    const partitioner::ParameterPlan& plan = *parameter.plan;
    if (states[i].average.size() == 0) {
      continue;
    }
    for (const Range& run : (plan.*runs)[static_cast<std::size_t>(rank)]) {
      visit(run.size(),
            parameter.values.data() + run.begin - parameter.held.begin,
            states[i].average.data() + place_in_state(plan, rank, run));
    }
  }
}

}  // namespace

partitioner::TrainedArrays trained_arrays(const partitioner::TrainingOptions& training) {
  return {.adam = training.adam, .averages = training.ema_decay > 0};
}

template <class T>
Optimizer<T>::Optimizer(const partitioner::TrainingOptions& options,
                        const ParameterSet<T>& parameters,
                        int rank)
    : options_(options), rank_(rank) {
  const auto own = static_cast<std::size_t>(rank);
  for (const Parameter<T>& parameter : parameters.all()) {
    const partitioner::ParameterPlan& plan = *parameter.plan;
    const Index updated = plan.frozen ? 0 : elements_of(plan.updated[own]);
    const Index learnt = is_learnt(plan) ? updated : 0;
    states_.push_back({Array<T>(learnt),
                       Array<T>(options.adam ? learnt : 0),
                       Array<T>(trained().averages ? updated : 0)});
  }
}

template <class T>
void Optimizer<T>::update(ParameterSet<T>& parameters, Index step) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (is_learnt(*parameters.all()[i].plan)) {
      update(parameters, i, step);
    }
  }
}

// The rules for one parameter in one step.
template <class T>
struct Optimizer<T>::Rules {
  AdamRule<T> adam;
  MomentumRule<T> momentum;
};

template <class T>
typename Optimizer<T>::Rules Optimizer<T>::rules(const partitioner::ParameterPlan& plan,
                                                 Index step) const {
  const T rate = static_cast<T>(learning_rate(options_, step) * plan.learning.rate_factor);
  const bool decays = plan.kind == partitioner::ParameterKind::Weight;
  const T decay = decays ? static_cast<T>(options_.decay) : T(0);
  const double steps = static_cast<double>(step);
  const AdamRule<T> adam{
      static_cast<T>(static_cast<double>(rate) / (1 - std::pow(options_.adam_beta1, steps))),
      static_cast<T>(options_.adam_beta1),
      static_cast<T>(options_.adam_beta2),
      static_cast<T>(1 / (1 - std::pow(options_.adam_beta2, steps))),
      static_cast<T>(options_.adam_epsilon),
      options_.decoupled_decay ? T(0) : decay,
      options_.decoupled_decay ? T(1) - rate * decay : T(1)};
  return {adam, {rate, static_cast<T>(options_.momentum), decay, options_.nesterov}};
}

// `places` in the arrays of the state.
template <class T>
void Optimizer<T>::update(const Rules& rules,
                          OptimizerState<T>& state,
                          const Range& places,
                          const T* gradient,
                          T* value) const {
  T* first = state.first.data() + places.begin;
  if (options_.adam) {
    T* second = state.second.data() + places.begin;
    update_by(rules.adam, places.size(), gradient, first, second, value);
  } else {
    update_by(rules.momentum, places.size(), gradient, first, value);
  }
}

template <class T>
void Optimizer<T>::update(ParameterSet<T>& parameters, std::size_t i, Index step) {
  Parameter<T>& parameter = parameters.all()[i];
  if (!is_updated(*parameter.plan, step)) {
    return;
  }
  const Rules of_step = rules(*parameter.plan, step);
  for (const Range& run : parameter.plan->owned[static_cast<std::size_t>(rank_)]) {
    const Index at = place_in_state(*parameter.plan, rank_, run);
    const Index held = run.begin - parameter.held.begin;
    update(of_step,
           states_[i],
           {at, at + run.size()},
           parameter.gradient.data() + held,
           parameter.values.data() + held);
  }
}

template <class T>
void Optimizer<T>::update(ParameterSet<T>& parameters,
                          std::size_t i,
                          Index step,
                          const Range& elements,
                          const T* gradient) {
  Parameter<T>& parameter = parameters.all()[i];
  if (!is_updated(*parameter.plan, step)) {
    return;
  }
  const Index at = place_in_state(*parameter.plan, rank_, elements);
  T* const values = parameter.values.data() + elements.begin - parameter.held.begin;
  update(rules(*parameter.plan, step), states_[i], {at, at + elements.size()}, gradient, values);
  if (trained().averages) {
    average_by(static_cast<T>(1 - ema_decay(options_, step)),
               elements.size(),
               values,
               states_[i].average.data() + at);
  }
}

template <class T>
void Optimizer<T>::update(const partitioner::ParameterPlan& plan,
                          std::size_t i,
                          Index step,
                          const T* gradient,
                          T* values) {
  if (!is_updated(plan, step)) {
    return;
  }
  OptimizerState<T>& state = states_[i];
  update(rules(plan, step), state, {0, state.first.size()}, gradient, values);
}

template <class T>
void Optimizer<T>::begin_averages(const ParameterSet<T>& parameters) {
  const auto begin = [](Index count, const T* values, T* averages) {
    std::copy_n(values, count, averages);
  };
  for_each_average(parameters, states_, &partitioner::ParameterPlan::updated, rank_, begin);
}

template <class T>
void Optimizer<T>::average(const ParameterSet<T>& parameters, Index step) {
  const auto share = static_cast<T>(1 - ema_decay(options_, step));
  const auto move = [share](Index count, const T* values, T* averages) {
    average_by(share, count, values, averages);
  };
  for_each_average(parameters, states_, &partitioner::ParameterPlan::owned, rank_, move);
}

template <class T>
void Optimizer<T>::swap_averages(ParameterSet<T>& parameters) {
  const auto swap = [](Index count, T* values, T* averages) {
    std::swap_ranges(values, values + count, averages);
  };
  for_each_average(parameters, states_, &partitioner::ParameterPlan::owned, rank_, swap);
}

template <class T>
Index Optimizer<T>::bytes() const {
  Index bytes = 0;
  for (const OptimizerState<T>& state : states_) {
    bytes += state.first.bytes() + state.second.bytes() + state.average.bytes();
  }
  return bytes;
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace tessera::engine
