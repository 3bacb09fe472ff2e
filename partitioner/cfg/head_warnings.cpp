#include "partitioner/cfg/head_warnings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::partitioner {

namespace {

std::string number_text(double number) {
  std::string digits = std::to_string(number);
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits.back() == '.' ? digits.substr(0, digits.size() - 1) : digits;
}

std::string text_of(const Anchor& anchor) {
  return number_text(anchor.width) + " x " + number_text(anchor.height);
}

double larger_side(const Anchor& anchor) {
  return std::max(anchor.width, anchor.height);
}

bool is_fractional(const Anchor& anchor) {
  return anchor.width != std::floor(anchor.width) || anchor.height != std::floor(anchor.height);
}

// The smallest and the largest of anchors.
std::pair<Anchor, Anchor> extremes(const std::vector<Anchor>& anchors) {
  const auto [least, most] = std::minmax_element(
      anchors.begin(), anchors.end(), [](const Anchor& one, const Anchor& other) {
        return larger_side(one) < larger_side(other);
      });
  return {*least, *most};
}

// In cells there is an anchor of about one, and fractions are usual.
void warn_of_cells(CfgOptions& options, const YoloHead& head, const MapShape& map) {
  constexpr double kFewPixels = 2;
  const auto [least, most] = extremes(head.anchors);
  const bool within_map = larger_side(most) <= static_cast<double>(std::max(map.rows, map.cols));
  if (larger_side(least) < kFewPixels ||
      (within_map && std::any_of(head.anchors.begin(), head.anchors.end(), is_fractional))) {
    options.warn("anchors",
                 "[yolo] has them in pixels of the input, and one of " + text_of(least) +
                     " pixels is too small for an object; are these in cells, as [region] has "
                     "them? `tessera anchors` computes them");
  }
}

// In pixels even the smallest has several cells, and the largest more than there are. (Those of a
// network for larger inputs exceed a small map, too, but start with less.)
void warn_of_pixels(CfgOptions& options, const RegionHead& head, const MapShape& map) {
  constexpr double kFewCells = 2;
  const auto [least, most] = extremes(head.anchors);
  if (larger_side(least) > kFewCells &&
      (most.width > static_cast<double>(map.cols) || most.height > static_cast<double>(map.rows))) {
    options.warn("anchors",
                 "[region] has them in cells of its map of " + std::to_string(map.cols) + " x " +
                     std::to_string(map.rows) + ", and one of " + text_of(most) +
                     " is larger; are these in pixels, as [yolo] has them? `tessera anchors "
                     "--stride` computes them");
  }
}

Activation activation_of(const Operation& operation) {
  return std::visit(
      [](const auto& layer) {
        if constexpr (requires { layer.activation; }) {
          return layer.activation;
        } else {
          return Activation::Linear;
        }
      },
      operation);
}

// `activated`: the head takes values that a logistic has made.
void warn_of_activation(CfgOptions& options, const Network& network, bool activated) {
  const int before = network.layers.back().inputs.front();
  if (before == kImage) {
    return;
  }
  const LayerSpec& layer = network.layer(before);
  const Activation activation = activation_of(layer.operation);
  if (activation != Activation::Linear && !(activated && activation == Activation::Logistic)) {
    options.warn("activation",
                 std::string("the head takes ") + (activated ? "logistic" : "linear") +
                     " values, and layer " + std::to_string(before) + " ([" +
                     kind_name(layer.operation) + "], line " + std::to_string(layer.line) +
                     ") has activation=" + activation_name(activation) +
                     ": set activation=" + (activated ? "logistic" : "linear") + " there");
  }
}

}  // namespace

void warn_of_head(CfgOptions& options, const Network& network) {
  const LayerSpec& head = network.layers.back();
  if (const auto* yolo = std::get_if<YoloHead>(&head.operation)) {
    warn_of_cells(options, *yolo, head.output);
    warn_of_activation(options, network, yolo->new_coords);
  } else if (const auto* region = std::get_if<RegionHead>(&head.operation)) {
    warn_of_pixels(options, *region, head.output);
    warn_of_activation(options, network, false);
  } else if (std::holds_alternative<GridHead>(head.operation) ||
             std::holds_alternative<YoloxHead>(head.operation)) {
    warn_of_activation(options, network, false);
  }
}

}  // namespace tessera::partitioner
