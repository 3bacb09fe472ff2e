#include "tests/support/random_tensors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "engine/base/random.h"
#include "engine/execution/parameters.h"

namespace tessera::tests {

using partitioner::kImage;
using partitioner::ParameterKind;

namespace {

NamedTensor filled(const std::vector<Index>& shape,
                   const std::function<double(std::uint64_t)>& value) {
  NamedTensor tensor{.shape = shape, .values = {}};
  Index count = 1;
  for (const Index extent : shape) {
    count *= extent;
  }
  for (Index i = 0; i < count; ++i) {
    // Numbers that single precision holds too, so that both precisions start from the same.
    tensor.values.push_back(
        static_cast<double>(static_cast<float>(value(static_cast<std::uint64_t>(i)))));
  }
  return tensor;
}

std::vector<Index> shape_of(const partitioner::Network& network, int map, Index batch) {
  const partitioner::MapShape& shape = network.shape(map);
  return {batch, shape.channels, shape.rows, shape.cols};
}

double parameter_value(const partitioner::ParameterPlan& plan, double normal) {
  switch (plan.kind) {
    case ParameterKind::Weight:
      return normal * std::sqrt(2.0 / static_cast<double>(plan.shape.row));
    case ParameterKind::Scale:
      return normal < 0 ? normal - 0.3 : normal + 0.3;
    case ParameterKind::Variance:
      return 0.2 + normal * normal;
    case ParameterKind::Bias:
    case ParameterKind::Mean:
      break;
  }
  return 0.3 * normal;
}

bool is_gradient(const std::string& name) {
  return name != "output" && !name.ends_with(".mean") && !name.ends_with(".variance");
}

}  // namespace

NamedTensors random_tensors(const partitioner::Network& network, Index batch, std::uint64_t seed) {
  NamedTensors tensors;
  std::uint64_t tensor = 0;
  const auto normal = [&](std::uint64_t i) { return engine::random_normal(seed, tensor, i); };
  tensors["input"] = filled(shape_of(network, kImage, batch), normal);
  ++tensor;
  tensors["output_gradient"] = filled(shape_of(network, network.size() - 1, batch), normal);
  const partitioner::Plan plan = make_plan(network, single_tile(network), batch);
  for (const partitioner::ParameterPlan& parameter : plan.parameters) {
    ++tensor;
    tensors[engine::parameter_name(parameter)] =
        filled(engine::parameter_shape(network, parameter),
               [&](std::uint64_t i) { return parameter_value(parameter, normal(i)); });
  }
  return tensors;
}

double largest_magnitude(const NamedTensor& tensor) {
  double largest = 0;
  for (const double value : tensor.values) {
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

double largest_difference(const NamedTensor& found, const NamedTensor& expected) {
  if (found.shape != expected.shape || found.values.size() != expected.values.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double largest = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double difference = std::abs(found.values[i] - expected.values[i]);
    if (std::isnan(difference)) {
      return std::numeric_limits<double>::infinity();
    }
    largest = std::max(largest, difference);
  }
  return largest;
}

std::string differences(const NamedTensors& found,
                        const NamedTensors& expected,
                        const Bounds& bounds) {
  std::ostringstream text;
  if (found.size() != expected.size()) {
    text << found.size() << " tensors instead of " << expected.size() << '\n';
  }
  double largest = 1;
  for (const auto& [name, tensor] : expected) {
    largest = std::max(largest, is_gradient(name) ? largest_magnitude(tensor) : 0);
  }
  for (const auto& [name, tensor] : expected) {
    const auto place = found.find(name);
    if (place == found.end()) {
      text << name << " is missing\n";
      continue;
    }
    const double magnitude = largest_magnitude(tensor);
    const double difference = largest_difference(place->second, tensor);
    if (difference > bounds.relative * std::max(magnitude, bounds.share * largest)) {
      text << name << " differs by " << difference << ", its largest element is " << magnitude
           << '\n';
    }
  }
  return text.str();
}

}  // namespace tessera::tests
