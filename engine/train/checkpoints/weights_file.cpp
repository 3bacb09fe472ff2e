#include "engine/train/checkpoints/weights_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "engine/execution/parameter_chunks.h"
#include "engine/files/darknet_weights.h"
#include "engine/files/safetensors.h"
#include "engine/files/weights_format.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/checkpoints/root_work.h"

namespace tessera::engine {

using partitioner::Network;
using partitioner::ParameterKind;

namespace {

std::vector<float>& of_kind(LayerWeights& weights, ParameterKind kind) {
  switch (kind) {
    case ParameterKind::Weight:
      return weights.weight;
    case ParameterKind::Bias:
      return weights.bias;
    case ParameterKind::Scale:
      return weights.scale;
    case ParameterKind::Mean:
      return weights.mean;
    case ParameterKind::Variance:
      break;
  }
  return weights.variance;
}

std::string layer_text(const Network& network, int layer) {
  return fmt::format("layer {} ({})", layer, kind_name(network.layer(layer).operation));
}

// "8x3x3x3"
std::string shape_text(const std::vector<Index>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

// Which layers with parameters come from the file. Rank 0's.
struct Fit {
  std::vector<char> taken;  // of each layer of the network
  FittingWeights told;
};

// "layers 0 to 28, 31": consecutive ones of those that have parameters.
std::string taken_text(const ParameterSet<float>& parameters, const std::vector<char>& taken) {
  std::vector<std::pair<int, int>> runs;
  bool goes_on = false;
  for (const Parameter<float>& parameter : parameters.all()) {
    const int layer = parameter.plan->layer;
    const bool is_taken = taken[static_cast<std::size_t>(layer)] != 0;
    if (is_taken && goes_on) {
      runs.back().second = layer;
    } else if (is_taken) {
      runs.emplace_back(layer, layer);
    }
    goes_on = is_taken;
  }
  std::string text;
  for (const auto& [first, last] : runs) {
    const char* const before =
        text.empty() ? (runs.size() == 1 && first == last ? "layer " : "layers ") : ", ";
    text += fmt::format("{}{}", before, first);
    text += last > first ? fmt::format(" to {}", last) : "";
  }
  return text;
}

// A file of either kind. Rank 0's.
class WeightsSource {
 public:
  WeightsSource(const std::filesystem::path& path,
                const Network& network,
                const partitioner::NormRule& norm,
                bool allow_partial)
      : path_(path), network_(network) {
    if (is_safetensors(path)) {
      tensors_.emplace(path);
    } else {
      darknet_.emplace(path, network, norm, allow_partial);
    }
  }

  [[nodiscard]] Fit fit(const ParameterSet<float>& parameters) const {
    Fit result;
    result.taken.assign(static_cast<std::size_t>(network_.size()), 1);
    std::vector<std::string>& lines = result.told.misfits;
    std::vector<int> lacking;
    for (const Parameter<float>& parameter : parameters.all()) {
      const auto layer = static_cast<std::size_t>(parameter.plan->layer);
      if (result.taken[layer] == 0) {
        continue;
      }
      if (const auto misfit = misfit_of(*parameter.plan)) {
        result.taken[layer] = 0;
        lacking.push_back(parameter.plan->layer);
        lines.push_back(fmt::format("{}: {} {} from scratch: {}",
                                    path_.string(),
                                    layer_text(network_, parameter.plan->layer),
                                    parameter.plan->frozen ? "is frozen and starts" : "starts",
                                    *misfit));
      }
    }
    if (darknet_ && lacking.size() > 1) {  // all behind the end of the file
      lines = {fmt::format("{}: layers {} to {} start from scratch: the file ends before {}{}",
                           path_.string(),
                           lacking.front(),
                           lacking.back(),
                           layer_text(network_, lacking.front()),
                           frozen_text(lacking.front()))};
    }
    if (!lines.empty()) {
      result.told.taken = taken_text(parameters, result.taken);
    }
    return result;
  }

  // The layer before the first one that has parameters which the file lacks.
  [[nodiscard]] int last_present() const {
    for (int layer = 0; layer < network_.size(); ++layer) {
      const partitioner::LayerParameters shapes = layer_parameters(network_, layer);
      for (const auto& [kind, shape] : {std::pair{ParameterKind::Weight, shapes.weight},
                                        std::pair{ParameterKind::Bias, shapes.bias},
                                        std::pair{ParameterKind::Scale, shapes.scale},
                                        std::pair{ParameterKind::Mean, shapes.mean},
                                        std::pair{ParameterKind::Variance, shapes.variance}}) {
        partitioner::ParameterPlan parameter;
        parameter.layer = layer;
        parameter.kind = kind;
        parameter.shape = shape;
        if (shape.channels > 0 && misfit_of(parameter)) {
          return layer - 1;
        }
      }
    }
    return network_.size() - 1;
  }

  // Throws InputError at the first parameter that the file does not have as the model does.
  void expect_all(const ParameterSet<float>& parameters) const {
    for (const Parameter<float>& parameter : parameters.all()) {
      if (tensors_) {
        (void)tensors_->find(used_tensor(*tensors_, *parameter.plan));  // names the nearest one
      }
      if (const auto misfit = misfit_of(*parameter.plan)) {
        throw InputError(
            path_.string(), 0, *misfit + ": give the model that the weights were trained with");
      }
    }
  }

  void expect_sound(const ParameterSet<float>& parameters, const std::vector<char>& taken) const {
    if (!tensors_) {
      return;  // that reader checks what it reads
    }
    std::vector<const partitioner::ParameterPlan*> wanted;
    for (const Parameter<float>& parameter : parameters.all()) {
      if (taken[static_cast<std::size_t>(parameter.plan->layer)] != 0) {
        wanted.push_back(parameter.plan);
      }
    }
    expect_sound_parameters(*tensors_, wanted);
  }

  void read(const partitioner::ParameterPlan& plan, Index begin, std::span<float> chunk) const {
    if (tensors_) {
      tensors_->read(used_tensor(*tensors_, plan), begin, chunk);
    } else if (plan.kind == ParameterKind::Weight) {
      darknet_->read_weight(plan.layer, begin, chunk);
    } else {
      LayerWeights vectors = darknet_->vectors(plan.layer);
      std::copy_n(of_kind(vectors, plan.kind).data() + begin, chunk.size(), chunk.begin());
    }
  }

 private:
  // Of layers from `first` on.
  [[nodiscard]] std::string frozen_text(int first) const {
    const int last = last_frozen(network_);
    return last < first    ? ""
           : last == first ? fmt::format("; layer {} is frozen", first)
                           : fmt::format("; layers {} to {} are frozen", first, last);
  }

  // Why a parameter cannot come from the file.
  [[nodiscard]] std::optional<std::string> misfit_of(const partitioner::ParameterPlan& plan) const {
    if (darknet_) {
      if (plan.layer < darknet_->layers_filled()) {
        return std::nullopt;
      }
      return darknet_->other_outputs() > 0
                 ? fmt::format("it has {} outputs in the file, {} in the model",
                               darknet_->other_outputs(),
                               plan.shape.channels)
                 : "the file ends before it";
    }
    const std::string name = used_tensor(*tensors_, plan);
    if (!tensors_->has(name)) {
      return fmt::format("the file has no tensor '{}'", name);
    }
    const auto& there = tensors_->find(name).shape;
    const auto here = parameter_shape(network_, plan);
    if (there == here) {
      return std::nullopt;
    }
    return fmt::format(
        "'{}' is {} in the file, {} in the model", name, shape_text(there), shape_text(here));
  }

  std::filesystem::path path_;
  const Network& network_;
  std::optional<SafetensorsReader> tensors_;
  std::optional<DarknetWeightsReader> darknet_;
};

void expect_any(const std::filesystem::path& path,
                const ParameterSet<float>& parameters,
                const Fit& fit) {
  const bool any = std::any_of(
      parameters.all().begin(), parameters.all().end(), [&](const Parameter<float>& parameter) {
        return fit.taken[static_cast<std::size_t>(parameter.plan->layer)] != 0;
      });
  if (!any) {
    throw InputError(
        path.string(),
        0,
        "has no layer that fits the model; is this the right model for these weights?");
  }
}

void fill_parameters(const std::optional<WeightsSource>& source,
                     const std::vector<char>& taken,
                     ParameterSet<float>& parameters,
                     const Communicator& communicator,
                     RootWork& root) {
  for (Parameter<float>& parameter : parameters.all()) {
    if (taken[static_cast<std::size_t>(parameter.plan->layer)] != 0) {
      scatter_chunks(communicator,
                     held_values(*parameter.plan),
                     parameter.values.data(),
                     [&](Index begin, std::span<float> chunk) {
                       root.run([&] { source->read(*parameter.plan, begin, chunk); });
                     });
    }
  }
}

}  // namespace

void load_weights(const std::filesystem::path& path,
                  const Network& network,
                  const partitioner::NormRule& norm,
                  ParameterSet<float>& parameters,
                  const Communicator& communicator) {
  const std::vector<char> every_layer(static_cast<std::size_t>(network.size()), 1);
  RootWork root(communicator);
  std::optional<WeightsSource> source;
  root.run([&] {
    source.emplace(path, network, norm, false);
    source->expect_all(parameters);
    source->expect_sound(parameters, every_layer);
  });
  root.finish();
  fill_parameters(source, every_layer, parameters, communicator, root);
  root.finish();
}

FittingWeights load_fitting_weights(const std::filesystem::path& path,
                                    const Network& network,
                                    const partitioner::NormRule& norm,
                                    ParameterSet<float>& parameters,
                                    const Communicator& communicator) {
  RootWork root(communicator);
  std::optional<WeightsSource> source;
  Fit fit;
  root.run([&] {
    source.emplace(path, network, norm, true);
    fit = source->fit(parameters);
    expect_any(path, parameters, fit);
    source->expect_sound(parameters, fit.taken);
  });
  root.finish();
  fill_parameters(source, communicator.of_ranks(fit.taken).front(), parameters, communicator, root);
  root.finish();
  return std::move(fit.told);
}

int last_layer_present(const std::filesystem::path& path,
                       const Network& network,
                       const Communicator& communicator) {
  RootWork root(communicator);
  int layer = -1;
  root.run([&] {
    const partitioner::NormRule any;  // no value is read
    layer = WeightsSource(path, network, any, true).last_present();
  });
  root.finish();
  return static_cast<int>(communicator.share(Index{layer}));
}

Index images_seen(const std::filesystem::path& path) {
  if (!is_safetensors(path)) {
    return static_cast<Index>(
        std::min(darknet_images_seen(path), std::uint64_t{std::numeric_limits<Index>::max()}));
  }
  return checkpoint_images_seen(path);
}

void save_darknet_weights(const std::filesystem::path& path,
                          const Network& network,
                          const partitioner::NormRule& norm,
                          Index images_seen,
                          const ParameterSet<float>& parameters,
                          const Communicator& communicator,
                          int layers) {
  DarknetWeights weights;
  weights.seen = static_cast<std::uint64_t>(images_seen);
  weights.layers_filled = layers;
  weights.layers.resize(static_cast<std::size_t>(weights.layers_filled));
  for (const Parameter<float>& parameter : parameters.all()) {
    if (parameter.plan->layer >= weights.layers_filled) {
      continue;
    }
    std::vector<float> whole = parameters.gather(parameter, parameter.values.data());
    of_kind(weights.layers[static_cast<std::size_t>(parameter.plan->layer)], parameter.plan->kind) =
        std::move(whole);
  }
  RootWork root(communicator);
  root.run([&] { write_darknet_weights(path, network, weights, norm); });
  root.finish();
}

}  // namespace tessera::engine
