#include "engine/onnx/import_weights.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/execution/parameters.h"
#include "engine/files/tensor_check.h"
#include "engine/ops/norm/inverse_deviation.h"

namespace tessera::engine {

namespace {

using partitioner::NormRule;
using partitioner::ParameterKind;

// Input channels of a weight (K, C, ...) in the order of the layer.
std::vector<float> reordered(const std::vector<float>& weight,
                             Index filters,
                             const std::vector<int>& order) {
  const std::size_t channels = order.size();
  const std::size_t cells = weight.size() / (static_cast<std::size_t>(filters) * channels);
  std::vector<float> result(weight.size());
  for (std::size_t k = 0; k < static_cast<std::size_t>(filters); ++k) {
    for (std::size_t c = 0; c < channels; ++c) {
      const auto to = static_cast<std::size_t>(order[c]);
      std::copy_n(weight.begin() + static_cast<std::ptrdiff_t>((k * channels + c) * cells),
                  cells,
                  result.begin() + static_cast<std::ptrdiff_t>((k * channels + to) * cells));
    }
  }
  return result;
}

class ParameterValues {
 public:
  ParameterValues(const OnnxFile& file, const NormRule& rule) : file_(file), rule_(rule) {}

  // Those of one parameter of a layer that has or has not a normalisation.
  [[nodiscard]] std::vector<float> values(const ImportedParameters& source,
                                          const partitioner::ParameterPlan& plan,
                                          bool normalizes) const {
    std::vector<float> values;
    if (source.norm && !normalizes) {
      values = folded_in(source, plan);
    } else if (plan.kind == ParameterKind::Weight) {
      values = numbers_of<float>(source.weight);
      if (!source.channel_order.empty()) {
        values = reordered(values, plan.shape.channels, source.channel_order);
      }
    } else if (normalizes && source.norm) {
      values = of_norm(source, plan.kind);
    } else {
      values = of_plain_layer(source, plan, normalizes);
    }
    if (plan.kind == ParameterKind::Weight && source.weight_factor != 1) {
      for (float& value : values) {
        value *= source.weight_factor;
      }
    }
    for (const float value : values) {
      const bool is_variance = plan.kind == ParameterKind::Variance;
      if (!std::isfinite(value) || (is_variance && value < 0)) {
        file_.refuse(fmt::format("a {} of node '{}' is {}: expected {}finite numbers",
                                 is_variance                          ? "variance"
                                 : plan.kind == ParameterKind::Weight ? "weight"
                                                                      : "parameter",
                                 source.node,
                                 number_text(value),
                                 is_variance ? "positive, " : ""));
      }
    }
    return values;
  }

 private:
  [[nodiscard]] std::vector<float> of_plain_layer(const ImportedParameters& source,
                                                  const partitioner::ParameterPlan& plan,
                                                  bool normalizes) const {
    const auto channels = static_cast<std::size_t>(plan.shape.channels);
    switch (plan.kind) {
      case ParameterKind::Scale: {
        const double one = normalizes ? 1 / inverse_deviation(rule_, 1) : 1;
        return std::vector<float>(channels, static_cast<float>(one));
      }
      case ParameterKind::Variance:
        return std::vector<float>(channels, 1);
      case ParameterKind::Bias:
        if (source.bias) {
          return numbers_of<float>(*source.bias);
        }
        [[fallthrough]];
      default:
        return std::vector<float>(channels, 0);
    }
  }

  // Weight or bias of a layer that does what the normalisation behind it would.
  [[nodiscard]] static std::vector<float> folded_in(const ImportedParameters& source,
                                                    const partitioner::ParameterPlan& plan) {
    const ImportedNorm& norm = *source.norm;
    std::vector<double> factors = numbers_of<double>(norm.scale);
    const std::vector<double> variance = numbers_of<double>(norm.variance);
    for (std::size_t k = 0; k < factors.size(); ++k) {
      factors[k] /= std::sqrt(variance[k] + norm.epsilon);
    }
    if (plan.kind == ParameterKind::Weight) {
      std::vector<float> weight = numbers_of<float>(source.weight);
      for (std::size_t i = 0; i < weight.size(); ++i) {
        weight[i] *= static_cast<float>(factors[i / static_cast<std::size_t>(plan.shape.row)]);
      }
      return weight;
    }
    const std::vector<double> shift = numbers_of<double>(norm.shift);
    std::vector<float> bias = means(source);
    for (std::size_t k = 0; k < bias.size(); ++k) {
      bias[k] = static_cast<float>(shift[k] - bias[k] * factors[k]);
    }
    return bias;
  }

  // What another epsilon than the layer's adds goes to the variance, or else to the scale.
  [[nodiscard]] std::vector<float> of_norm(const ImportedParameters& source,
                                           ParameterKind kind) const {
    const ImportedNorm& norm = *source.norm;
    if (kind == ParameterKind::Bias) {
      return numbers_of<float>(norm.shift);
    }
    if (kind == ParameterKind::Mean) {
      return means(source);
    }
    std::vector<double> variance = numbers_of<double>(norm.variance);
    const bool adds = rule_.form == partitioner::NormForm::PyTorch;
    const double more = static_cast<float>(norm.epsilon) == static_cast<float>(rule_.epsilon)
                            ? 0
                            : norm.epsilon - rule_.epsilon;
    if (kind == ParameterKind::Variance) {
      for (double& value : variance) {
        value += adds && more > 0 ? more : 0;
      }
      return {variance.begin(), variance.end()};
    }
    std::vector<double> scale = numbers_of<double>(norm.scale);
    for (std::size_t k = 0; k < scale.size() && (!adds || more < 0); ++k) {
      scale[k] *= 1 / std::sqrt(variance[k] + norm.epsilon) / inverse_deviation(rule_, variance[k]);
    }
    return {scale.begin(), scale.end()};
  }

  // A bias before the normalisation is taken off with the mean.
  [[nodiscard]] static std::vector<float> means(const ImportedParameters& source) {
    std::vector<double> mean = numbers_of<double>(source.norm->mean);
    if (source.bias) {
      const std::vector<double> bias = numbers_of<double>(*source.bias);
      std::transform(mean.begin(), mean.end(), bias.begin(), mean.begin(), std::minus<>());
    }
    return {mean.begin(), mean.end()};
  }

  const OnnxFile& file_;
  const NormRule& rule_;
};

std::vector<partitioner::ParameterPlan> parameters_of(const partitioner::Network& network) {
  std::vector<partitioner::ParameterPlan> all;
  for (int layer = 0; layer < network.size(); ++layer) {
    const partitioner::LayerParameters shapes = layer_parameters(network, layer);
    for (const auto& [kind, shape] : {std::pair{ParameterKind::Weight, shapes.weight},
                                      std::pair{ParameterKind::Bias, shapes.bias},
                                      std::pair{ParameterKind::Scale, shapes.scale},
                                      std::pair{ParameterKind::Mean, shapes.mean},
                                      std::pair{ParameterKind::Variance, shapes.variance}}) {
      if (shape.channels > 0) {
        all.emplace_back();
        all.back().layer = layer;
        all.back().kind = kind;
        all.back().shape = shape;
      }
    }
  }
  return all;
}

}  // namespace

ParameterSources sources_of(const Translation& translation, const ImportedModel& model) {
  ParameterSources sources;
  for (const int translated : model.translated) {
    const auto found = translation.all_parameters().find(translated);
    sources.push_back(found == translation.all_parameters().end() ? nullptr : &found->second);
  }
  return sources;
}

std::unique_ptr<SafetensorsWriter> written_parameters(const OnnxFile& file,
                                                      const partitioner::ModelFile& model,
                                                      const ParameterSources& sources,
                                                      const std::filesystem::path& to) {
  const partitioner::Network& network = model.network;
  const std::vector<partitioner::ParameterPlan> parameters = parameters_of(network);
  std::vector<StoredTensor> tensors;
  Index elements = 0;
  for (const partitioner::ParameterPlan& parameter : parameters) {
    tensors.push_back({parameter_name(parameter), parameter_shape(network, parameter)});
    elements += element_count(tensors.back());
  }
  // A few nodes of a file may share weights; so many would fill the disk.
  constexpr Index kMostCopies = 64;
  constexpr Index kAnyway = 1'000'000;
  if (elements > kAnyway && elements > kMostCopies * file.bytes()) {
    file.refuse("its nodes share weights so often that the model would be many times as large");
  }
  auto out = std::make_unique<SafetensorsWriter>(
      to, tensors, std::map<std::string, std::string>{{"model", model.text}}, Links::Follow);
  const ParameterValues values(file, model.training.norm);
  for (const partitioner::ParameterPlan& parameter : parameters) {
    const auto layer = static_cast<std::size_t>(parameter.layer);
    const std::vector<float> numbers = values.values(
        *sources[layer], parameter, normalizes(network.layer(parameter.layer).operation));
    out->write(std::span<const float>(numbers));
  }
  out->seal();
  return out;
}

}  // namespace tessera::engine
