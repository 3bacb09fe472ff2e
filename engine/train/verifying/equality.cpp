#include "engine/train/verifying/equality.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <utility>

#include "engine/base/random.h"
#include "engine/execution/execution.h"
#include "engine/ops/pool/pool.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::engine {

namespace {

using partitioner::Activation;
using partitioner::ParameterKind;

// All that a pass computes, whole, on rank 0.
template <class T>
struct Outcome {
  std::vector<std::vector<T>> maps;         // by layer
  std::map<int, std::vector<T>> argmax;     // of max-pool layers
  std::vector<std::vector<float>> objects;  // of heads: 1 and the object that a cell has got, or 0
  std::map<std::string, std::vector<T>> tensors;  // loss, gradients, statistics
};

// Values are drawn in single precision, so that both precisions compute with the same numbers.
template <class T>
T draw(std::uint64_t seed, std::uint64_t stream, Index element, double deviation) {
  return static_cast<T>(static_cast<float>(
      deviation * random_normal(seed, stream, static_cast<std::uint64_t>(element))));
}

template <class T>
void draw_parameters(ParameterSet<T>& parameters, std::uint64_t seed) {
  std::uint64_t stream = 0;
  for (Parameter<T>& parameter : parameters.all()) {
    ++stream;
    const double row = static_cast<double>(parameter.plan->shape.row);
    for (Index i = 0; i < parameter.values.size(); ++i) {
      const T normal = draw<T>(seed, stream, parameter.held.begin + i, 1);
      switch (parameter.plan->kind) {
        case ParameterKind::Weight:
          parameter.values[i] = draw<T>(seed, stream, parameter.held.begin + i, std::sqrt(2 / row));
          break;
        case ParameterKind::Scale:  // away from 0, of either sign
          parameter.values[i] = (normal < 0 ? T(-1) : T(1)) * (T(0.5) + std::abs(normal) / 2);
          break;
        case ParameterKind::Variance:
          parameter.values[i] = T(0.5) + std::abs(normal);
          break;
        case ParameterKind::Bias:
        case ParameterKind::Mean:
          parameter.values[i] = draw<T>(seed, stream, parameter.held.begin + i, 0.2);
          break;
      }
    }
  }
}

template <class T>
std::vector<T> draw_map(const partitioner::Network& network,
                        int map,
                        Index batch,
                        std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(network.shape(map).volume() * batch));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = draw<T>(seed,
                        static_cast<std::uint64_t>(map) + (std::uint64_t{1} << 32U),
                        static_cast<Index>(i),
                        1);
  }
  return values;
}

// The smallest output that has a loss; 1 without losses.
// The classes that all losses of the network know.
Index fewest_classes(const partitioner::Network& network,
                     const std::vector<partitioner::Loss>& losses) {
  Index fewest = std::numeric_limits<int>::max();
  for (const partitioner::Loss& loss : losses) {
    fewest = std::min(fewest, classes_of(network, loss.layer));
  }
  return fewest;
}

// From 0 to 4 boxes of all sizes, which reach outside the image as real ones do.
std::vector<TargetBox> draw_boxes(Index image, Index classes, std::uint64_t seed) {
  std::vector<TargetBox> boxes;
  const auto draw = [&](std::uint64_t of_box) {
    return random_bits(seed, 4, static_cast<std::uint64_t>(image), of_box);
  };
  const auto fraction = [&](std::uint64_t of_box) {
    constexpr std::uint64_t kSteps = 1U << 20U;
    return static_cast<float>(draw(of_box) % kSteps + 1) / static_cast<float>(kSteps);
  };
  const std::uint64_t count = draw(0) % 5;
  for (std::uint64_t first = 1; boxes.size() < count; first += 5) {
    boxes.push_back({static_cast<int>(draw(first) % static_cast<std::uint64_t>(classes)),
                     fraction(first + 1),
                     fraction(first + 2),
                     fraction(first + 3),
                     fraction(first + 4)});
  }
  return boxes;
}

Targets draw_targets(Index batch, Index classes, std::uint64_t seed) {
  Targets targets;
  for (Index n = 0; n < batch; ++n) {
    const auto label = static_cast<int>(random_bits(seed, 3, static_cast<std::uint64_t>(n)) %
                                        static_cast<std::uint64_t>(classes));
    targets.push_back(ImageTargets{.label = label, .boxes = draw_boxes(n, classes, seed)});
  }
  return targets;
}

template <class T>
void copy_argmax(View<const ArgmaxOffset> argmax, const Region& region, View<T> to) {
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index c = region.channels.begin; c < region.channels.end; ++c) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          to.at(n, c, row, col) = static_cast<T>(argmax.at(n, c, row, col));
        }
      }
    }
  }
}

template <class T>
void gather_maps(Execution<T>& execution, Outcome<T>& outcome) {
  const partitioner::Network& network = execution.network();
  const int rank = execution.communicator().rank();
  for (int layer = 0; layer < network.size(); ++layer) {
    outcome.maps.push_back(execution.gather_map(layer));
    if (network.layer(layer).has_backward &&
        layer_traits(network.layer(layer).operation).keeps_argmax) {
      const Region& owned = execution.plan().tile(layer, rank).owned;
      Tensor<T> argmax(owned);
      copy_argmax(execution.argmax(layer), owned, argmax.view());
      outcome.argmax[layer] = execution.gather_cells(layer, argmax.view());
    }
  }
}

// In the channel of objectness of each head that objects are assigned to, 0 elsewhere.
template <class T>
std::vector<float> gather_objects(Execution<T>& execution, int layer) {
  const Region& owned = execution.plan().tile(layer, execution.communicator().rank()).owned;
  Tensor<T> objects(owned);
  const HeadAssignment& assigned = *execution.assigned(layer);
  for (std::size_t n = 0; n < assigned.size(); ++n) {
    for (const AssignedCell& cell : assigned[n]) {
      objects.view().at(
          static_cast<Index>(n), partitioner::kObjectnessChannel, cell.at.row, cell.at.col) =
          static_cast<T>(cell.object + 1);
    }
  }
  const std::vector<T> whole = execution.gather_cells(layer, View<const T>(objects.view()));
  return {whole.begin(), whole.end()};
}

template <class T>
Outcome<T> run(const EqualityOptions& options,
               const partitioner::Partition& partition,
               const Communicator& communicator) {
  const partitioner::Network& network = options.network;
  const partitioner::Plan plan = make_plan(network, partition, options.batch);
  Execution<T> execution(network,
                         plan,
                         communicator,
                         {.image_gradient = true, .keep_maps = true, .norm = options.norm});
  ParameterSet<T>& parameters = execution.parameters();
  draw_parameters(parameters, options.seed);
  const bool root = communicator.rank() == 0;
  const int last = network.size() - 1;
  execution.scatter_image(
      root ? draw_map<T>(network, partitioner::kImage, options.batch, options.seed)
           : std::vector<T>{});
  const std::vector<partitioner::Loss> losses = partitioner::losses(network);
  const Targets targets =
      draw_targets(options.batch, fewest_classes(network, losses), options.seed);
  Pass pass;
  pass.seed = options.seed;
  pass.targets = losses.empty() ? nullptr : &targets;
  pass.loss_scale = 1 / static_cast<double>(options.batch);
  pass.ends_step = true;
  execution.forward(pass);
  Outcome<T> outcome;
  gather_maps(execution, outcome);
  execution.clear_output_gradient();
  if (!losses.empty()) {
    outcome.tensors["loss"] = {
        static_cast<T>(execution.exchange_loss(pass).loss.mean(pass.loss_scale))};
    for (const int head : assigned_heads(network)) {
      outcome.objects.push_back(gather_objects(execution, head));
    }
  } else {
    execution.scatter_output_gradient(
        root ? draw_map<T>(network, last, options.batch, options.seed + 1) : std::vector<T>{});
  }
  execution.backward(pass);
  execution.finish_gradients(pass);
  if (network.takes_gradient(partitioner::kImage)) {
    outcome.tensors["input gradient"] = execution.gather_gradient(partitioner::kImage);
  }
  for (const Parameter<T>& parameter : parameters.all()) {
    const bool learnt = is_learnt(*parameter.plan);
    const std::string name = parameter_name(*parameter.plan) + (learnt ? " gradient" : "");
    outcome.tensors[name] =
        parameters.gather(parameter, learnt ? parameter.gradient.data() : parameter.values.data());
  }
  return outcome;
}

template <class T>
double largest(const std::vector<T>& values) {
  double most = 0;
  for (const T value : values) {
    most = std::max(most, std::abs(static_cast<double>(value)));
  }
  return most;
}

// The largest difference over `scale`; infinite where one of them all is not a number or overflows.
template <class A, class B>
double difference(const std::vector<A>& a, const std::vector<B>& b, double scale) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = difference <= most ? most : (difference < INFINITY ? difference : INFINITY);
  }
  if (!std::isfinite(most) || !std::isfinite(scale)) {
    return INFINITY;
  }
  return scale == 0 ? most : most / scale;
}

template <class A, class B>
Index count_flipped_signs(const std::vector<A>& a, const std::vector<B>& b) {
  Index count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += (a[i] > 0) != (b[i] > 0);
  }
  return count;
}

Index count_different_bits(const std::vector<float>& a, const std::vector<float>& b) {
  Index count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
  }
  return count;
}

bool has_kink(const partitioner::LayerSpec& spec) {
  const auto kinked = [](Activation activation) {
    return activation == Activation::Relu || activation == Activation::Leaky ||
           activation == Activation::Relu6 || activation == Activation::Ramp ||
           activation == Activation::HardSigmoid || activation == Activation::HardSwish;
  };
  return kinked(activation_of(spec.operation));
}

bool bits_must_agree(const partitioner::Network& network, const partitioner::Partition& partition) {
  for (const ConvolutionKernels& kernels : partition.kernels) {
    if (winograd_side(kernels.forward) > 0) {
      return false;
    }
  }
  for (const partitioner::LayerSpec& spec : network.layers) {
    if (normalizes(spec.operation)) {
      return false;
    }
  }
  return true;
}

struct Outcomes {
  Outcome<double> tiled_double;
  Outcome<double> one_double;
  Outcome<float> tiled_single;
  Outcome<float> one_single;
};

// What a tensor's differences are measured by: its largest element. A gradient that is 0 but for
// rounding, such as that of a shift which the next normalisation takes out again, is measured by
// those of its layer, or by those of all.
class Scales {
 public:
  explicit Scales(const std::map<std::string, std::vector<double>>& tensors) {
    for (const auto& [name, values] : tensors) {
      if (name.ends_with("gradient")) {
        double& of_layer = of_layer_[layer(name)];
        of_layer = std::max(of_layer, largest(values));
        of_all_ = std::max(of_all_, of_layer);
      }
    }
  }

  [[nodiscard]] double of(const std::string& name, const std::vector<double>& reference) const {
    constexpr double kZeroInLayer = 1e-4;
    constexpr double kZero = 1e-9;
    if (!name.ends_with("gradient")) {
      return largest(reference);
    }
    return std::max(
        {largest(reference), kZeroInLayer * of_layer_.at(layer(name)), kZero * of_all_});
  }

 private:
  // "layers.3" of "layers.3.bias gradient".
  static std::string layer(const std::string& name) {
    return name.substr(0, name.find('.', name.find('.') + 1));
  }

  std::map<std::string, double> of_layer_;
  double of_all_ = 0;
};

// Adds the line of a tensor, which `values` finds in an outcome.
template <class Values>
void compare_tensor(const std::string& name,
                    double scale,
                    const Outcomes& outcomes,
                    const Values& values,
                    EqualityReport& report) {
  const std::vector<double>& reference = values(outcomes.one_double);
  EqualityLine line{name,
                    difference(values(outcomes.tiled_double), reference, scale),
                    difference(values(outcomes.tiled_single), reference, scale),
                    difference(values(outcomes.one_single), reference, scale)};
  const bool flipped = report.flipped_signs + report.flipped_argmax + report.other_objects > 0;
  const double single_bound =
      std::max(kSingleErrorRatio * line.one_tile_single_error, flipped ? kFlipBound : kSingleFloor);
  const double double_bound =
      std::max(kDoubleBound, kSingleErrorRatio * kDoubleRounding * line.one_tile_single_error);
  line.within_bounds = line.double_difference <= double_bound && std::isfinite(line.single_error) &&
                       line.single_error <= single_bound;
  report.lines.push_back(line);
}

void compare_tensors(const Outcomes& outcomes, EqualityReport& report) {
  const Scales scales(outcomes.one_double.tensors);
  for (const auto& entry : outcomes.one_double.tensors) {
    const std::string& name = entry.first;
    compare_tensor(
        name,
        scales.of(name, entry.second),
        outcomes,
        [&](const auto& outcome) -> const auto& { return outcome.tensors.at(name); },
        report);
  }
  for (std::size_t layer = 0; layer < outcomes.one_double.maps.size(); ++layer) {
    compare_tensor(
        fmt::format("layers.{} output", layer),
        largest(outcomes.one_double.maps[layer]),
        outcomes,
        [&](const auto& outcome) -> const auto& { return outcome.maps[layer]; },
        report);
  }
}

// Whether each is the place of a cell in a window of a pool.
bool is_in_windows(const std::vector<float>& argmax,
                   const partitioner::Network& network,
                   int layer) {
  const auto* pool = std::get_if<partitioner::MaxPool>(&network.layer(layer).operation);
  const Index cells = pool != nullptr ? pool->size * pool->size
                                      : network.shape(network.layer(layer).inputs[0]).channels;
  return std::all_of(argmax.begin(), argmax.end(), [&](float place) {
    return place >= 0 && place < static_cast<float>(cells);
  });
}

void compare_maps(const partitioner::Network& network,
                  const Outcomes& outcomes,
                  EqualityReport& report) {
  for (int layer = 0; layer < network.size(); ++layer) {
    const auto i = static_cast<std::size_t>(layer);
    const auto& one = outcomes.one_single.maps[i];
    report.cells += static_cast<Index>(one.size());
    report.different_bits += count_different_bits(outcomes.tiled_single.maps[i], one);
    if (has_kink(network.layer(layer))) {
      report.flipped_signs += count_flipped_signs(outcomes.tiled_single.maps[i], one);
      report.single_flipped_signs += count_flipped_signs(one, outcomes.one_double.maps[i]);
    }
  }
  for (std::size_t i = 0; i < outcomes.one_single.objects.size(); ++i) {
    const std::vector<float>& one = outcomes.one_single.objects[i];
    report.other_objects += count_different_bits(outcomes.tiled_single.objects[i], one);
    report.single_other_objects += count_different_bits(one, outcomes.one_double.objects[i]);
  }
  for (const auto& [layer, argmax] : outcomes.one_single.argmax) {
    const std::vector<float>& tiled = outcomes.tiled_single.argmax.at(layer);
    report.flipped_argmax += count_different_bits(tiled, argmax);
    if (!is_in_windows(tiled, network, layer)) {  // which no rounding makes
      report.lines.push_back(
          {fmt::format("layers.{} argmax", layer), INFINITY, INFINITY, 0, false});
    }
    const std::vector<float> reference(outcomes.one_double.argmax.at(layer).begin(),
                                       outcomes.one_double.argmax.at(layer).end());
    report.single_flipped_argmax += count_different_bits(argmax, reference);
  }
}

}  // namespace

EqualityReport check_equality(const EqualityOptions& options, const Communicator& communicator) {
  Outcomes outcomes;
  outcomes.tiled_double = run<double>(options, options.partition, communicator);
  outcomes.tiled_single = run<float>(options, options.partition, communicator);
  EqualityReport report;
  if (communicator.rank() != 0) {
    return report;
  }
  partitioner::Partition one = partitioner::single_tile(options.network);
  one.kernels = options.partition.kernels;
  outcomes.one_double = run<double>(options, one, Communicator::self());
  outcomes.one_single = run<float>(options, one, Communicator::self());
  compare_maps(options.network, outcomes, report);
  compare_tensors(outcomes, report);
  report.bits_must_agree = bits_must_agree(options.network, options.partition);
  report.within_bounds = !(report.bits_must_agree && report.different_bits > 0);
  for (const EqualityLine& line : report.lines) {
    report.within_bounds = report.within_bounds && line.within_bounds;
  }
  return report;
}

}  // namespace tessera::engine
