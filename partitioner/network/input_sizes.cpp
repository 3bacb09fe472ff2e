#include "partitioner/network/input_sizes.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

Index scaled_side(Index side, double scale, Index step) {
  const double steps = scale * static_cast<double>(side) / static_cast<double>(step) + 1;
  return std::max<Index>(std::lround(steps), 1) * step;
}

// As in Darknet: what is scaled down is no larger than before, although it is rounded up.
InputSize scaled_size(const InputSize& configured, double scale, Index step) {
  const InputSize size{scaled_side(configured.rows, scale, step),
                       scaled_side(configured.cols, scale, step)};
  const bool larger = size.rows > configured.rows || size.cols > configured.cols;
  return scale < 1 && larger ? configured : size;
}

// Adds the scales between 1 / factor and factor from which on a side has another length.
void add_bounds(Index side, double factor, Index step, std::vector<double>& bounds) {
  const double unit = static_cast<double>(step) / static_cast<double>(side);
  const auto first = static_cast<Index>(std::floor(1 / factor / unit));
  for (Index k = first;; ++k) {
    const double bound = (static_cast<double>(k) + 0.5) * unit;
    if (bound >= factor) {
      return;
    }
    if (std::ssize(bounds) > 4 * kMostInputSizes) {
      throw std::invalid_argument(
          fmt::format("the input would have more than {} sizes: give a smaller factor, or a larger "
                      "resize_step in [net]",
                      kMostInputSizes));
    }
    if (bound > 1 / factor) {
      bounds.push_back(bound);
    }
  }
}

// How much of the scales that are drawn lies between two, both on one side of 1.
double probability_between(double begin, double end, double factor) {
  const double length = begin < 1 ? 1 / begin - 1 / end : end - begin;
  return length / (factor - 1) / 2;
}

}  // namespace

std::string to_text(const InputSize& size) {
  return fmt::format("{}x{}", size.rows, size.cols);
}

InputSizes::InputSizes(const InputSize& configured, double factor, Index step) : factor_(factor) {
  expects(factor > 1 && step > 0 && configured.rows > 0 && configured.cols > 0,
          "sizes differ by a factor above 1");
  std::vector<double> bounds{1 / factor, 1, factor};
  add_bounds(configured.rows, factor, step, bounds);
  add_bounds(configured.cols, factor, step, bounds);
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  const auto add = [this](double begin, const InputSize& size, double probability) {
    spans_.push_back({begin, size});
    const auto known = std::find_if(
        shares_.begin(), shares_.end(), [&size](const Share& share) { return share.size == size; });
    if (known == shares_.end()) {
      shares_.push_back({size, probability});
    } else {
      known->probability += probability;
    }
  };
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const double middle = (bounds[i] + bounds[i + 1]) / 2;
    add(bounds[i],
        scaled_size(configured, middle, step),
        probability_between(bounds[i], bounds[i + 1], factor));
  }
  add(factor, scaled_size(configured, factor, step), 0);
  std::stable_sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
    return a.size.rows * a.size.cols < b.size.rows * b.size.cols;
  });
  if (std::ssize(shares_) > kMostInputSizes) {
    throw std::invalid_argument(
        fmt::format("the input would have {} sizes, at most {} are possible: give a smaller "
                    "factor, or a larger resize_step in [net]",
                    shares_.size(),
                    kMostInputSizes));
  }
}

const InputSize& InputSizes::at(double scale) const {
  const auto after =
      std::upper_bound(spans_.begin(), spans_.end(), scale, [](double value, const Span& span) {
        return value < span.begin;
      });
  return (after == spans_.begin() ? after : after - 1)->size;
}

namespace {

// Pixels of the input to a cell of a map, along one side, as a fraction; 0: a single cell, whatever
// the input.
struct CellSize {
  Index pixels = 0;
  Index cells = 1;
};

// By how much a layer makes the map of its input coarser, and finer.
struct StrideOf {
  struct Change {
    Index coarser = 1;
    Index finer = 1;
  };
  // Of strides that leave a single cell of any map the product would not be a number.
  [[nodiscard]] static Index product(Index a, Index b) {
    constexpr Index kMost = Index{1} << 31;
    return a > 0 && b > kMost / a ? kMost : a * b;
  }
  static Index longer(const PerAxis& stride) { return std::max(stride.rows, stride.cols); }

  Change operator()(const Convolution& layer) const { return {longer(layer.stride)}; }
  Change operator()(const Deconvolution& layer) const { return {1, longer(layer.stride)}; }
  Change operator()(const MaxPool& layer) const { return {longer(layer.stride)}; }
  Change operator()(const Local& layer) const { return {layer.stride}; }
  Change operator()(const SpaceToDepth& layer) const { return {layer.stride}; }
  Change operator()(const Upsample& layer) const { return {1, layer.stride}; }
  Change operator()(const Reorg& layer) const {
    return layer.reverse ? Change{1, layer.stride} : Change{layer.stride};
  }
  Change operator()(const AvgPool& /*layer*/) const { return {0}; }
  Change operator()(const Connected& /*layer*/) const { return {0}; }
  template <class Other>
  Change operator()(const Other& /*layer*/) const {
    return {};
  }
};

}  // namespace

Index total_stride(const Network& network) {
  std::vector<CellSize> cells{{1, 1}};  // by map_slot
  Index largest = 1;
  for (const LayerSpec& layer : network.layers) {
    CellSize input{0, 1};
    for (const int map : layer.inputs) {
      const CellSize& each = cells[static_cast<std::size_t>(map + 1)];
      if (each.pixels * input.cells > input.pixels * each.cells) {
        input = each;
      }
    }
    const StrideOf::Change change = std::visit(StrideOf{}, layer.operation);
    const CellSize& own =
        cells.emplace_back(CellSize{StrideOf::product(input.pixels, change.coarser),
                                    StrideOf::product(input.cells, change.finer)});
    largest = std::max(largest, own.pixels / own.cells);
  }
  return largest;
}

Network with_input(const Network& network, const InputSize& size) {
  Network result = network;
  result.image = {network.image.channels, size.rows, size.cols};
  result.layers.clear();
  for (const LayerSpec& layer : network.layers) {
    try {
      add_layer(result, layer.operation, layer.inputs, layer.line);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format(
          "layer {} ({}): {}", result.size(), kind_name(layer.operation), error.what()));
    }
    result.layers.back().learning = layer.learning;
    result.layers.back().frozen_steps = layer.frozen_steps;
  }
  freeze(result, last_frozen(network));
  return result;
}

namespace {

bool alike(const ParameterShape& a, const ParameterShape& b) {
  return a.channels == b.channels && a.row == b.row;
}

}  // namespace

Network with_input_of_same_parameters(const Network& network, const InputSize& size) {
  Network result = with_input(network, size);
  for (int layer = 0; layer < network.size(); ++layer) {
    const LayerParameters before = layer_parameters(network, layer);
    const LayerParameters now = layer_parameters(result, layer);
    if (!alike(before.weight, now.weight) || !alike(before.bias, now.bias)) {
      throw std::invalid_argument(
          fmt::format("layer {} ({}): it has weights for each place of its input, whose size is "
                      "therefore fixed",
                      layer,
                      kind_name(network.layer(layer).operation)));
    }
  }
  return result;
}

}  // namespace tessera::partitioner
