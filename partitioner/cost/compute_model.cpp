#include "partitioner/cost/compute_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "partitioner/base/layout.h"
#include "partitioner/cost/step_messages.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

const Region kNothing;  // the backward pass of a layer that has none

double as_double(Index value) {
  return static_cast<double>(value);
}

// The cells of `range` widened to multiples of `step`.
Index widened(const Range& range, Index step) {
  const Index begin = range.begin >= 0 ? range.begin / step : -((-range.begin + step - 1) / step);
  return ((range.end + step - 1) / step - begin) * step;
}

Index in_blocks(Index channels) {
  return widened({0, channels}, channel_block(channels));
}

Index tile_side(ConvolutionKernel kernel) {
  switch (kernel) {
    case ConvolutionKernel::Winograd2:
      return 2;
    case ConvolutionKernel::Winograd4:
      return 4;
    default:
      return 1;
  }
}

double seconds_of(const ConvolutionPoint& point, ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::Forward:
      return point.forward_s;
    case ConvolutionPass::BackwardData:
      return point.backward_data_s;
    case ConvolutionPass::BackwardWeights:
      return point.backward_weights_s;
  }
  return 0;
}

// Shapes that lie near each other here run at similar rates.
std::array<double, 5> coordinates(const ConvolutionTask& task) {
  const auto log = [](Index value) { return std::log2(as_double(std::max<Index>(value, 1))); };
  const Region& out = task.output;
  const Index filters = task.shape.filters / task.shape.groups;
  constexpr double kFar = 4;  // another filter or stride counts like 16 times as many channels
  return {log(task.channels / task.shape.groups),
          log(std::min(filters, out.channels.size())),
          log(out.images.size() * out.rows.size() * out.cols.size()) / 2,
          kFar * log(task.shape.size.product()) / 2,
          kFar * log(task.shape.stride.product()) / 2};
}

// Interpolated by inverse squared distance (Shepard 1968): at a measured point it is what was
// measured there, and never beyond the fastest or the slowest. 0 where nothing was measured.
double interpolated_rate(const DeviceProfile& device, const ConvolutionTask& task) {
  if (device.convolutions.empty()) {
    return 0;
  }
  const auto here = coordinates(task);
  double rates = 0;
  double weights = 0;
  for (const ConvolutionPoint& point : device.convolutions) {
    const bool depthwise = task.shape.groups > 1;
    if (point.kernel != task.kernel || (point.groups > 1) != depthwise) {
      continue;
    }
    const ConvolutionTask measured = measured_task(point, task.pass);
    const auto there = coordinates(measured);
    double distance = 0;
    for (std::size_t i = 0; i < here.size(); ++i) {
      distance += (here[i] - there[i]) * (here[i] - there[i]);
    }
    constexpr double kNearest = 1e-12;
    const double weight = 1 / (distance + kNearest);
    rates += weight * counted_flops(measured) / seconds_of(point, task.pass);
    weights += weight;
  }
  return weights > 0 ? rates / weights : 0;
}

// A time that is known, and how much of something took it.
struct Sample {
  double work = 0;
  double seconds = 0;
};

// Times by work, each amount of it once.
class Samples {
 public:
  void add(const Sample& sample) {
    const auto at = std::lower_bound(
        samples_.begin(), samples_.end(), sample, [](const Sample& a, const Sample& b) {
          return a.work < b.work;
        });
    if (at == samples_.end() || at->work != sample.work) {
      samples_.insert(at, sample);
    }
  }

  // Some of the time is there however little the work: so it is taken from the line through the two
  // samples that are nearest. Beyond all samples time grows at most as work does, and at least a
  // quarter as fast. 0 with less than two samples.
  [[nodiscard]] double seconds(double work) const {
    if (samples_.size() < 2) {
      return 0;
    }
    std::size_t above = 1;
    while (above + 1 < samples_.size() && samples_[above].work < work) {
      ++above;
    }
    const Sample& low = samples_[above - 1];
    const Sample& high = samples_[above];
    const double slope = (high.seconds - low.seconds) / (high.work - low.work);
    if (low.work <= work && work <= high.work) {
      return low.seconds + slope * (work - low.work);
    }
    constexpr double kLeastGrowth = 0.25;
    const Sample& end = work < low.work ? low : high;
    const double rate_s = end.seconds / end.work;
    return end.seconds + std::clamp(slope, kLeastGrowth * rate_s, rate_s) * (work - end.work);
  }

 private:
  std::vector<Sample> samples_;
};

// From what was measured of fewer and more cells and, where the task cuts the filters, of fewer and
// more of these: what is done with the input takes its time however few they are. 0 where that is
// too little.
double seconds_between(const DeviceProfile& device, const ConvolutionTask& task) {
  std::map<Index, Samples> by_filters;
  for (const ConvolutionPoint& point : device.convolutions) {
    if (point.kernel == task.kernel && point.channels == task.channels &&
        point.size == task.shape.size && point.stride == task.shape.stride &&
        point.groups == task.shape.groups) {
      by_filters[point.filters].add(
          {counted_flops(measured_task(point, task.pass)), seconds_of(point, task.pass)});
    }
  }
  const auto as_many = by_filters.find(task.output.channels.size());
  const double seconds =
      as_many == by_filters.end() ? 0 : as_many->second.seconds(counted_flops(task));
  if (seconds > 0 || task.shape.groups > 1) {
    return seconds;
  }
  const auto in_whole_blocks = [&task](const Range& filters) {
    return as_double(widened(filters, channel_block(task.shape.filters)));
  };
  Samples samples;
  ConvolutionTask other = task;
  for (const auto& [filters, by_cells] : by_filters) {
    other.output.channels = {0, filters};
    const double other_s = by_cells.seconds(counted_flops(other));
    if (other_s > 0) {
      samples.add({in_whole_blocks(other.output.channels), other_s});
    }
  }
  return samples.seconds(in_whole_blocks(task.output.channels));
}

double map_bytes(const Region& region) {
  return kScalarBytes * as_double(blocked_volume(region));
}

// A product with a matrix of weights that is read once. Reading them does not go beside
// multiplying, as measured on x86-64.
double connected_seconds(const DeviceProfile& device, Index inputs, const Region& output) {
  const Index weights = inputs * output.channels.size();
  const double flops = 2 * as_double(weights * output.images.size());
  return flops / device.direct_flops_per_s +
         kScalarBytes * as_double(weights) / device.memory_bytes_per_s;
}

// How often a layer takes what an exponential takes beyond other activations, for each cell.
struct Exponentials {
  double forward = 0;
  double backward = 0;
};

Exponentials exponentials_of(const LayerSpec& spec) {
  if (is_head(spec.operation)) {
    return {7, 3};  // one number at a time, and losses; as measured of [yolo] on x86-64
  }
  const Activation activation = activation_of(spec.operation);
  if (!takes_exponential(activation)) {
    return {};
  }
  const double times = activation == Activation::Mish ? 1.5 : 1;  // as measured on x86-64
  if (!slope_needs_input(activation)) {
    return {times, 0};
  }
  // Statistics of gradients take the slopes, with the normalised value that they are taken at, and
  // write what the gradients come to; as measured on x86-64.
  return {times, takes_batch_statistics(spec) ? times + 1 : times};
}

// Behind a pool whose argmax says which cells have a gradient: each takes about twice as long as
// one among all of them, as measured on x86-64.
double share_of_gradients(ConvolutionKernel backward_weights, const Network& network, int layer) {
  if (!weights_from_argmax(backward_weights, network, layer)) {
    return 1;
  }
  const auto& pool = std::get<MaxPool>(network.layer(layer + 1).operation);
  return 2 / as_double(pool.size * pool.size);
}

// Whether the layer is a pool that runs with the layer before it, line by line. What a rank has of
// both can prevent that; this is what all that can be together is taken for.
bool is_fused_pool(const Network& network, int layer) {
  const LayerSpec& spec = network.layer(layer);
  return std::holds_alternative<MaxPool>(spec.operation) && spec.inputs[0] != kImage &&
         fusable_pool(network, spec.inputs[0]) == layer;
}

// Bytes of the layer's inputs and output.
double touched_bytes(const Network& network, int layer, const Region& output) {
  double bytes = map_bytes(output);
  for (std::size_t input = 0; input < network.layer(layer).inputs.size(); ++input) {
    bytes += map_bytes(required_input(network, layer, input, output));
  }
  return bytes;
}

// What a convolution reads of its input, inside the map.
Region read_cells(const Network& network, int layer, const Region& output) {
  if (output.empty()) {
    return {};
  }
  const MapShape& map = network.shape(network.layer(layer).inputs[0]);
  const Region region = required_input(network, layer, 0, output);
  return intersect(region, {region.images, {0, map.channels}, {0, map.rows}, {0, map.cols}});
}

// A pass of a transposed convolution, as one of the convolution from its output to its input.
ConvolutionTask other_way(const Deconvolution& deconvolution,
                          const MapShape& in,
                          ConvolutionPass pass,
                          const Region& output,
                          const Region& input) {
  const Convolution shape{.filters = in.channels,
                          .size = deconvolution.size,
                          .stride = deconvolution.stride,
                          .padding = deconvolution.padding};
  const ConvolutionPass other = pass == ConvolutionPass::Forward ? ConvolutionPass::BackwardData
                                : pass == ConvolutionPass::BackwardData ? ConvolutionPass::Forward
                                                                        : pass;
  return {shape, output.channels.size(), ConvolutionKernel::Direct, other, input, output};
}

// A pass of one of the network's convolutions. Only the way back to the data asks what is read.
ConvolutionTask task_of(const Network& network,
                        int layer,
                        ConvolutionKernel kernel,
                        ConvolutionPass pass,
                        const Region& output) {
  const LayerSpec& spec = network.layer(layer);
  if (const auto* deconvolution = std::get_if<Deconvolution>(&spec.operation)) {
    return other_way(*deconvolution,
                     network.shape(spec.inputs[0]),
                     pass,
                     output,
                     read_cells(network, layer, output));
  }
  return {std::get<Convolution>(spec.operation),
          network.shape(spec.inputs[0]).channels,
          kernel,
          pass,
          output,
          pass == ConvolutionPass::BackwardData ? read_cells(network, layer, output) : Region{}};
}

// Where a network begins, and above frozen layers, the gradient of the input is not needed.
bool wants_input_gradient(const Network& network, const LayerSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), [&](int map) {
    return map != kImage && network.takes_gradient(map);
  });
}

}  // namespace

ConvolutionTask measured_task(const ConvolutionPoint& point, ConvolutionPass pass) {
  Convolution shape;
  shape.filters = point.filters;
  shape.size = point.size;
  shape.stride = point.stride;
  shape.groups = point.groups;
  const auto read = [&](Index outputs) {
    return Range{0, (outputs - 1) * point.stride + point.size};
  };
  return {shape,
          point.channels,
          point.kernel,
          pass,
          {{0, 1}, {0, point.filters}, {0, point.rows}, {0, point.cols}},
          {{0, 1}, {0, point.channels}, read(point.rows), read(point.cols)}};
}

double counted_flops(const ConvolutionTask& task) {
  const auto& [shape, channels, kernel, pass, output, input] = task;
  if (output.empty()) {
    return 0;
  }
  const Index side = tile_side(kernel);
  // Winograd's tiles are of what is made, which is more than the output by what windows reach over.
  const Region& made = pass == ConvolutionPass::BackwardData && side > 1 ? input : output;
  const double cells = as_double(output.images.size() * widened(made.rows, side) *
                                 widened(made.cols, side) * shape.size.product());
  const Index filters = shape.filters / shape.groups;
  const Index inputs = channels / shape.groups;
  if (filters == 1 &&
      inputs == 1) {  // depthwise: blocks of channels, each with a filter of its own
    return 2 * cells * as_double(widened(output.channels, channel_block(shape.filters)));
  }
  if (shape.groups > 1) {
    const double groups = as_double(output.channels.size()) / as_double(filters);
    const Index products = pass == ConvolutionPass::BackwardData ? in_blocks(inputs) * filters
                                                                 : inputs * in_blocks(filters);
    return 2 * cells * groups * as_double(products);
  }
  const Index products = pass == ConvolutionPass::BackwardData
                             ? in_blocks(inputs) * output.channels.size()
                             : inputs * widened(output.channels, channel_block(shape.filters));
  return 2 * cells * as_double(products);
}

double step_multiply_adds(const Network& network,
                          int layer,
                          const ConvolutionKernels& kernels,
                          const Region& computed,
                          const Region& backward) {
  const LayerSpec& spec = network.layer(layer);
  const Region& back = spec.has_backward ? backward : kNothing;
  if (layer_traits(spec.operation).rated_as != RatedAs::Convolution) {
    return 0;
  }
  const auto pass_multiply_adds =
      [&](ConvolutionKernel kernel, ConvolutionPass pass, const Region& output) {
        return counted_flops(task_of(network, layer, kernel, pass, output)) / 2;
      };
  double sum = pass_multiply_adds(kernels.forward, ConvolutionPass::Forward, computed) +
               pass_multiply_adds(kernels.backward_weights, ConvolutionPass::BackwardWeights, back);
  if (wants_input_gradient(network, spec)) {
    sum += pass_multiply_adds(kernels.backward_data, ConvolutionPass::BackwardData, back);
  }
  return sum;
}

double convolution_seconds(const DeviceProfile& device, const ConvolutionTask& task) {
  if (task.output.empty()) {
    return 0;
  }
  const double seconds = seconds_between(device, task);
  if (seconds > 0) {
    return seconds;
  }
  double rate = interpolated_rate(device, task);
  if (rate == 0 && tile_side(task.kernel) > 1) {
    // The rate is that of tiles of 4x4; those of 2x2 multiply 16 / 9 times as often.
    rate = device.winograd_flops_per_s * (tile_side(task.kernel) == 2 ? 9.0 / 16 : 1);
  } else if (rate == 0) {
    rate = device.direct_flops_per_s;
  }
  return counted_flops(task) / rate;
}

LayerSeconds layer_seconds(const Network& network,
                           int layer,
                           const ConvolutionKernels& kernels,
                           const DeviceProfile& device,
                           const Region& computed,
                           const Region& backward) {
  LayerSeconds seconds;
  if (computed.empty()) {
    return seconds;
  }
  const LayerSpec& spec = network.layer(layer);
  const Region& back = spec.has_backward ? backward : kNothing;
  const bool data = wants_input_gradient(network, spec);
  const RatedAs rated_as = layer_traits(spec.operation).rated_as;
  PassRates rates = normalizes(spec.operation) ? device.normalize : device.activate;
  double forward_bytes = map_bytes(computed);
  double backward_bytes = back.empty() ? 0 : map_bytes(back);
  if (rated_as == RatedAs::Convolution) {
    const auto run = [&](ConvolutionKernel kernel, ConvolutionPass pass, const Region& output) {
      return convolution_seconds(device, task_of(network, layer, kernel, pass, output));
    };
    seconds.forward_s = run(kernels.forward, ConvolutionPass::Forward, computed);
    seconds.backward_weights_s =
        run(kernels.backward_weights, ConvolutionPass::BackwardWeights, back) *
        share_of_gradients(kernels.backward_weights, network, layer);
    seconds.backward_data_s =
        data ? run(kernels.backward_data, ConvolutionPass::BackwardData, back) : 0;
  } else if (rated_as == RatedAs::Product) {
    const Index features = multiply_adds(network, layer, {{0, 1}, {0, 1}, {0, 1}, {0, 1}});
    seconds.forward_s = connected_seconds(device, features, computed);
    seconds.backward_weights_s = back.empty() ? 0 : connected_seconds(device, features, back);
    seconds.backward_data_s = data ? seconds.backward_weights_s : 0;
  } else if (is_fused_pool(network, layer)) {
    rates = device.pool;
  } else {
    rates = rated_as == RatedAs::Pool ? device.pool : device.elementwise;
    forward_bytes = touched_bytes(network, layer, computed);
    backward_bytes = back.empty() ? 0 : touched_bytes(network, layer, back);
  }
  const Exponentials exponentials = exponentials_of(spec);
  seconds.other_forward_s =
      forward_bytes / rates.forward_bytes_per_s +
      exponentials.forward * map_bytes(computed) / device.exponential.forward_bytes_per_s;
  seconds.other_backward_s =
      backward_bytes / rates.backward_bytes_per_s +
      exponentials.backward * map_bytes(back) / device.exponential.backward_bytes_per_s;
  if (fusable_pool(network, layer) != kNoLayer) {
    constexpr double kPooledPart = 0.5;  // few cells have a gradient; as measured on x86-64
    seconds.other_backward_s *= kPooledPart;
  }
  return seconds;
}

}  // namespace tessera::partitioner
