#include "engine/train/optimizer.h"

#include <cmath>

#include "engine/execution/parameter_chunks.h"
#include "engine/ops/parameters/update.h"

namespace tessera::engine {

namespace {

Index updated_elements(const partitioner::ParameterPlan& plan, int rank) {
  Index elements = 0;
  for (const Range& run : plan.updated[static_cast<std::size_t>(rank)]) {
    elements += run.size();
  }
  return elements;
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(const partitioner::TrainingOptions& options,
                        const ParameterSet<T>& parameters,
                        int rank)
    : options_(options), rank_(rank) {
  for (const Parameter<T>& parameter : parameters.all()) {
    const Index updated = is_learnt(*parameter.plan) ? updated_elements(*parameter.plan, rank) : 0;
    states_.push_back({Array<T>(updated), Array<T>(options.adam ? updated : 0)});
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
  return {adam, {rate, static_cast<T>(options_.momentum), decay}};
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
  update(rules(*parameter.plan, step),
         states_[i],
         {at, at + elements.size()},
         gradient,
         parameter.values.data() + elements.begin - parameter.held.begin);
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
Index Optimizer<T>::bytes() const {
  Index bytes = 0;
  for (const OptimizerState<T>& state : states_) {
    bytes += state.first.bytes() + state.second.bytes();
  }
  return bytes;
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace tessera::engine
