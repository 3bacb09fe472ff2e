#include "engine/execution/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "engine/base/random.h"
#include "engine/execution/parameter_chunks.h"
#include "engine/ops/parameters/update.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/channel_makers.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

using partitioner::ParameterKind;
using partitioner::ParameterPlan;

namespace {

const char* suffix(ParameterKind kind) {
  constexpr std::array kNames{"weight", "bias", "bn.scale", "bn.mean", "bn.variance"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Darknet's deviation of a weight: sqrt(2 / inputs of an output cell).
double weight_deviation(const partitioner::Network& network, const ParameterPlan& plan) {
  const Region cell{{0, 1}, {0, 1}, {0, 1}, {0, 1}};
  return std::sqrt(2.0 / static_cast<double>(multiply_adds(network, plan.layer, cell)));
}

// Layers that say objectness and classes to a [yolox] head, most of whose cells see nothing.
std::vector<partitioner::ChannelMaker> makers_of_rare_values(const partitioner::Network& network) {
  std::vector<partitioner::ChannelMaker> makers;
  for (const int head : assigned_heads(network)) {
    const auto of_head =
        channel_makers(network,
                       network.layer(head).inputs.front(),
                       {partitioner::kObjectnessChannel, network.shape(head).channels});
    makers.insert(makers.end(), of_head.begin(), of_head.end());
  }
  return makers;
}

// A logistic makes 1 % of it.
const double kRareBias = -std::log(99.0);

template <class T>
void begin_gradient(Parameter<T>& parameter) {
  set_zero(parameter.gradient.data(), parameter.gradient.size());
  parameter.has_gradient = true;
}

}  // namespace

std::string parameter_name(const ParameterPlan& plan) {
  return fmt::format("layers.{}.{}", plan.layer, suffix(plan.kind));
}

std::vector<Index> parameter_shape(const partitioner::Network& network, const ParameterPlan& plan) {
  if (plan.kind != ParameterKind::Weight && plan.shape.row == 1) {
    return {plan.shape.channels};
  }
  const auto by_taps = [&plan](const partitioner::PerAxis& size) -> std::vector<Index> {
    return {plan.shape.channels, plan.shape.row / size.product(), size.rows, size.cols};
  };
  const partitioner::Operation& operation = network.layer(plan.layer).operation;
  if (const auto* convolution = std::get_if<partitioner::Convolution>(&operation)) {
    return by_taps(convolution->size);
  }
  if (const auto* deconvolution = std::get_if<partitioner::Deconvolution>(&operation)) {
    return by_taps(deconvolution->size);
  }
  return {plan.shape.channels, plan.shape.row};
}

template <class T>
ParameterSet<T>::ParameterSet(const partitioner::Network& network,
                              const partitioner::Plan& plan,
                              const Communicator& communicator,
                              bool training)
    : network_(&network),
      communicator_(&communicator),
      compression_(plan.gradient_reduction.compression),
      transfers_(communicator) {
  for (const ParameterPlan& parameter : plan.parameters) {
    const Range channels = parameter.required[static_cast<std::size_t>(communicator.rank())];
    const Range held{channels.begin * parameter.shape.row, channels.end * parameter.shape.row};
    const bool learns = training && is_learnt(parameter);
    const bool normalized =
        partitioner::layer_parameters(network, parameter.layer).scale.channels > 0 &&
        parameter.kind != ParameterKind::Weight;
    parameters_.push_back(
        {&parameter, normalized, held, Array<T>(held.size()), Array<T>(learns ? held.size() : 0)});
  }
  if (training) {
    make_buckets(plan);
  }
}

template <class T>
void ParameterSet<T>::make_buckets(const partitioner::Plan& plan) {
  const int rank = communicator_->rank();
  for (const partitioner::BucketPlan& bucket : plan.buckets) {
    std::vector<Parameter<T>*> together;
    std::vector<std::size_t> places;
    for (const int i : bucket.parameters) {
      places.push_back(static_cast<std::size_t>(i));
      together.push_back(&parameters_[places.back()]);
    }
    buckets_.push_back({bucket.layers,
                        places,
                        ParameterBucket<T>(together, plan.gradient_reduction, rank),
                        false});
  }
  std::vector<Parameter<T>*> statistics;
  for (Parameter<T>& parameter : parameters_) {
    if (is_running_statistic(*parameter.plan)) {
      statistics.push_back(&parameter);
    }
  }
  statistics_.emplace(statistics, partitioner::GradientReduction{}, rank);
}

template <class T>
ParameterViews<T> ParameterSet<T>::views(int layer) {
  ParameterViews<T> views;
  for (Parameter<T>& parameter : parameters_) {
    if (parameter.plan->layer != layer) {
      continue;
    }
    T* values = parameter.values.data();
    T* gradient = parameter.gradient.data();
    switch (parameter.plan->kind) {
      case ParameterKind::Weight:
        views.weight = values;
        views.weight_gradient = gradient;
        break;
      case ParameterKind::Bias:
        views.bias = values;
        views.bias_gradient = gradient;
        break;
      case ParameterKind::Scale:
        views.scale = values;
        views.scale_gradient = gradient;
        break;
      case ParameterKind::Mean:
        views.mean = values;
        break;
      case ParameterKind::Variance:
        views.variance = values;
        break;
    }
  }
  return views;
}

template <class T>
void ParameterSet<T>::initialize(std::uint64_t seed) {
  const std::vector<partitioner::ChannelMaker> rare = makers_of_rare_values(*network_);
  for (Parameter<T>& parameter : parameters_) {
    const ParameterPlan& plan = *parameter.plan;
    if (plan.kind != ParameterKind::Weight) {
      const bool one = plan.kind == ParameterKind::Scale || plan.kind == ParameterKind::Variance;
      std::fill_n(parameter.values.data(), parameter.values.size(), one ? T(1) : T(0));
      for (const partitioner::ChannelMaker& maker : rare) {
        if (maker.layer == plan.layer && plan.kind == ParameterKind::Bias) {
          const Range held = intersect(maker.channels, parameter.held);
          for (Index i = held.begin; i < held.end; ++i) {
            parameter.values[i - parameter.held.begin] = static_cast<T>(kRareBias);
          }
        }
      }
      continue;
    }
    const double deviation = weight_deviation(*network_, plan);
    const bool normal = layer_traits(network_->layer(plan.layer).operation).rated_as ==
                        partitioner::RatedAs::Convolution;
    const auto layer = static_cast<std::uint64_t>(plan.layer);
    for (Index i = 0; i < parameter.values.size(); ++i) {
      const auto element = static_cast<std::uint64_t>(parameter.held.begin + i);
      const double drawn = normal ? random_normal(seed, layer, element)
                                  : 2 * random_uniform(seed, layer, element) - 1;
      parameter.values[i] = static_cast<T>(deviation * drawn);
    }
  }
}

// Those of weights, which are many, become 0 only where they are not assigned, and where they are
// about to be in cache.
template <class T>
void ParameterSet<T>::clear_gradients() {
  for (Parameter<T>& parameter : parameters_) {
    if (parameter.plan->kind == ParameterKind::Weight) {
      parameter.has_gradient = false;
    } else {
      begin_gradient(parameter);
    }
  }
}

template <class T>
Parameter<T>& ParameterSet<T>::weights_of(int layer) {
  const auto found = std::partition_point(
      parameters_.begin(), parameters_.end(), [layer](const Parameter<T>& parameter) {
        return parameter.plan->layer < layer;
      });
  expects(found != parameters_.end() && found->plan->layer == layer &&
              found->plan->kind == ParameterKind::Weight,
          "the layer has weights");
  return *found;
}

template <class T>
bool ParameterSet<T>::takes_first_weight_gradient(int layer) {
  return !std::exchange(weights_of(layer).has_gradient, true);
}

template <class T>
void ParameterSet<T>::begin_weight_gradient(int layer) {
  begin_gradient(weights_of(layer));
}

template <class T>
void ParameterSet<T>::scale_gradients(double factor) {
  for (Parameter<T>& parameter : parameters_) {
    if (parameter.has_gradient) {
      for (T& value : parameter.gradient.span()) {
        value *= static_cast<T>(factor);
      }
    }
  }
}

template <class T>
double ParameterSet<T>::owned_gradient_squares(Index step) const {
  double sum = 0;
  for (const Parameter<T>& parameter : parameters_) {
    const ParameterPlan& plan = *parameter.plan;
    if (!is_learnt(plan) || !is_updated(plan, step)) {
      continue;
    }
    for (const Range& run : plan.owned[static_cast<std::size_t>(communicator_->rank())]) {
      sum +=
          sum_of_squares(run.size(), parameter.gradient.data() + run.begin - parameter.held.begin);
    }
  }
  return sum;
}

template <class T>
const std::vector<std::size_t>& ParameterSet<T>::in_bucket(int bucket) const {
  return buckets_[static_cast<std::size_t>(bucket)].parameters;
}

template <class T>
void ParameterSet<T>::start_gradients(int bucket, bool normalized) {
  using Already = typename ParameterBucket<T>::Already;
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::reduction_s);
  for (const std::size_t i : in_bucket(bucket)) {
    if (!parameters_[i].has_gradient) {  // this rank has none of the cells
      begin_gradient(parameters_[i]);
    }
  }
  at(bucket).shared.start_reduction(transfers_, normalized ? Already::None : Already::Normalized);
}

template <class T>
void ParameterSet<T>::finish_gradients(int bucket) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::reduction_s);
  at(bucket).shared.finish_reduction(transfers_);
}

template <class T>
void ParameterSet<T>::start_values(int bucket) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::reduction_s);
  at(bucket).shared.start_all_gather(transfers_);
  at(bucket).values_under_way = true;
}

template <class T>
void ParameterSet<T>::finish_values(int bucket) {
  if (std::exchange(at(bucket).values_under_way, false)) {
    const ExchangeTimer timer(*communicator_, &ExchangeTimes::reduction_s);
    finish_all_gather(at(bucket));
  }
}

template <class T>
void ParameterSet<T>::finish_all_gather(Bucket& bucket) {
  const auto update = [&](Parameter<T>& parameter, const Range& elements, const T* gradient) {
    const auto place = std::find_if(bucket.parameters.begin(),
                                    bucket.parameters.end(),
                                    [&](std::size_t i) { return &parameters_[i] == &parameter; });
    update_(*place, elements, gradient);
  };
  bucket.shared.finish_all_gather(transfers_, update);
}

// Values of the first layers have been sent first.
template <class T>
void ParameterSet<T>::finish_values() {
  for (int bucket = buckets() - 1; bucket >= 0; --bucket) {
    finish_values(bucket);
  }
}

template <class T>
void ParameterSet<T>::start_statistics() {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::reduction_s);
  statistics_->start_all_gather(transfers_);
}

template <class T>
void ParameterSet<T>::finish_statistics() {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::reduction_s);
  statistics_->finish_all_gather(transfers_, {});
}

template <class T>
std::vector<Array<T>*> ParameterSet<T>::error_feedback() {
  std::vector<Array<T>*> all;
  for (Bucket& bucket : buckets_) {
    for (Array<T>* errors : bucket.shared.error_feedback()) {
      all.push_back(errors);
    }
  }
  return all;
}

template <class T>
std::vector<T> ParameterSet<T>::gather(const Parameter<T>& parameter, const T* held) const {
  std::vector<T> whole;
  whole.reserve(communicator_->rank() == 0 ? static_cast<std::size_t>(parameter.size()) : 0);
  gather_chunks(*communicator_, owned_values(*parameter.plan), held, [&](std::span<const T> chunk) {
    whole.insert(whole.end(), chunk.begin(), chunk.end());
  });
  return whole;
}

template <class T>
void ParameterSet<T>::scatter(Parameter<T>& parameter, const std::vector<T>& whole, T* held) const {
  scatter_chunks(
      *communicator_, held_values(*parameter.plan), held, [&](Index begin, std::span<T> chunk) {
        std::copy_n(whole.data() + begin, chunk.size(), chunk.begin());
      });
}

template <class T>
Index ParameterSet<T>::value_bytes() const {
  Index bytes = 0;
  for (const Parameter<T>& parameter : parameters_) {
    bytes += parameter.values.bytes();
  }
  return bytes;
}

template <class T>
Index ParameterSet<T>::gradient_bytes() const {
  Index bytes = 0;
  for (const Parameter<T>& parameter : parameters_) {
    bytes += parameter.gradient.bytes();
  }
  return bytes;
}

template <class T>
Index ParameterSet<T>::message_bytes() const {
  Index bytes = statistics_ ? statistics_->bytes() : 0;
  for (const Bucket& bucket : buckets_) {
    bytes += bucket.shared.bytes();
  }
  return bytes;
}

template class ParameterSet<float>;
template class ParameterSet<double>;

}  // namespace tessera::engine
