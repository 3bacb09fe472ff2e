#include "engine/train/optimizer.h"

#include <cmath>

#include "engine/ops/parameters/update.h"

namespace tessera::engine {

namespace {

// Calls visit(first of the rank's state, first held, count) for each run of elements that the rank
// owns.
template <class T, class Visit>
void for_each_owned_run(const Parameter<T>& parameter, int rank, Visit visit) {
  Index at = 0;
  for (const Range& run : parameter.plan->owned[static_cast<std::size_t>(rank)]) {
    visit(at, run.begin - parameter.held.begin, run.size());
    at += run.size();
  }
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(const partitioner::TrainingOptions& options,
                        const ParameterSet<T>& parameters,
                        int rank)
    : options_(options), rank_(rank) {
  for (const Parameter<T>& parameter : parameters.all()) {
    Index owned = 0;
    if (is_learnt(*parameter.plan)) {
      for_each_owned_run(parameter, rank, [&owned](Index, Index, Index count) { owned += count; });
    }
    states_.push_back({Array<T>(owned), Array<T>(options.adam ? owned : 0)});
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

// `owned` of the elements that the rank owns.
template <class T>
void Optimizer<T>::update(const Rules& rules,
                          OptimizerState<T>& state,
                          const Range& owned,
                          const T* gradient,
                          T* value) const {
  T* first = state.first.data() + owned.begin;
  if (options_.adam) {
    update_by(rules.adam, owned.size(), gradient, first, state.second.data() + owned.begin, value);
  } else {
    update_by(rules.momentum, owned.size(), gradient, first, value);
  }
}

template <class T>
void Optimizer<T>::update(ParameterSet<T>& parameters, std::size_t i, Index step) {
  Parameter<T>& parameter = parameters.all()[i];
  if (!is_updated(*parameter.plan, step)) {
    return;
  }
  const Rules of_step = rules(*parameter.plan, step);
  for_each_owned_run(parameter, rank_, [&](Index at, Index held, Index count) {
    update(of_step,
           states_[i],
           {at, at + count},
           parameter.gradient.data() + held,
           parameter.values.data() + held);
  });
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
