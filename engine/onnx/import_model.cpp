#include "engine/onnx/import_model.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::engine {

namespace {

using partitioner::kImage;
using partitioner::Network;
using partitioner::Operation;

std::vector<char> needed_layers(const Translation& translation) {
  const Network& network = translation.network();
  std::vector<char> needed(static_cast<std::size_t>(network.size()), 0);
  for (const int output : translation.outputs()) {
    needed[static_cast<std::size_t>(output)] = 1;
  }
  for (int layer = network.size() - 1; layer >= 0; --layer) {
    for (const int input : network.layer(layer).inputs) {
      if (needed[static_cast<std::size_t>(layer)] != 0 && input != kImage) {
        needed[static_cast<std::size_t>(input)] = 1;
      }
    }
  }
  return needed;
}

class Lowering {
 public:
  explicit Lowering(const Translation& translation)
      : translation_(translation), needed_(needed_layers(translation)) {
    model_.network.image = translation.network().image;
    places_.assign(needed_.size(), kImage);
    reads_.assign(needed_.size(), 0);
  }

  [[nodiscard]] ImportedModel model() {
    give_image_a_name();
    for (int layer = 0; layer < translation_.network().size(); ++layer) {
      if (needed_[static_cast<std::size_t>(layer)] != 0) {
        place(layer);
      }
    }
    place_outputs();
    return std::move(model_);
  }

 private:
  [[nodiscard]] int last() const { return model_.network.size() - 1; }
  [[nodiscard]] int place_of(int map) const {
    return map == kImage ? image_ : places_[static_cast<std::size_t>(map)];
  }

  void add(Operation operation, std::vector<int> inputs, int translated) {
    add_layer(model_.network, std::move(operation), std::move(inputs));
    model_.translated.push_back(translated);
  }

  // Sections can name layers, but not the input: a layer that passes it on.
  void give_image_a_name() {
    const Network& network = translation_.network();
    bool is_first = true;
    for (int layer = 0; layer < network.size(); ++layer) {
      if (needed_[static_cast<std::size_t>(layer)] == 0) {
        continue;
      }
      const partitioner::LayerSpec& spec = network.layer(layer);
      const bool can_read_it = is_first && spec.inputs.size() == 1 &&
                               !std::holds_alternative<partitioner::Route>(spec.operation);
      const bool reads_it =
          std::find(spec.inputs.begin(), spec.inputs.end(), kImage) != spec.inputs.end();
      if (reads_it && !can_read_it) {
        add(partitioner::Dropout{.probability = 0}, {kImage}, -1);
        image_ = 0;
        return;
      }
      is_first = false;
    }
  }

  // Makes this map that of the layer before the next.
  void make_last(int map) {
    if (map != last()) {
      add(partitioner::Route{}, {map}, -1);
    }
  }

  void place(int layer) {
    const partitioner::LayerSpec& spec = translation_.network().layer(layer);
    std::vector<int> inputs;
    for (const int input : spec.inputs) {
      inputs.push_back(place_of(input));
      if (input != kImage) {
        ++reads_[static_cast<std::size_t>(input)];
      }
    }
    if (!std::holds_alternative<partitioner::Route>(spec.operation)) {
      const bool is_symmetric = std::holds_alternative<partitioner::Shortcut>(spec.operation) ||
                                std::holds_alternative<partitioner::Sam>(spec.operation);
      const auto before = std::find(inputs.begin(), inputs.end(), last());
      if (is_symmetric && before != inputs.end()) {
        std::swap(inputs.front(), *before);
      }
      make_last(inputs.front());
      inputs.front() = last();
    }
    add(spec.operation, std::move(inputs), layer);
    model_.network.layers.back().learning = spec.learning;
    places_[static_cast<std::size_t>(layer)] = last();
  }

  void place_outputs() {
    int previous = -1;
    for (const int output : translation_.outputs()) {
      const int place = place_of(output);
      if (place <= previous || reads_[static_cast<std::size_t>(output)] > 0) {
        add(partitioner::Route{}, {place}, -1);
        previous = last();
      } else {
        previous = place;
      }
    }
  }

  const Translation& translation_;
  std::vector<char> needed_;
  std::vector<int> places_;  // of a translated layer
  std::vector<int> reads_;   // how often it is read
  int image_ = kImage;
  ImportedModel model_;
};

// Sections of one of the kinds that a graph can have; `line` adds "key=value".
class SectionText {
 public:
  SectionText(std::string& text, const partitioner::LayerSpec& spec) : text_(text), spec_(spec) {
    text_ += fmt::format("\n[{}]\n", kind_name(spec.operation));
    std::visit([this](const auto& layer) { write(layer); }, spec.operation);
    if (spec.learning.rate_factor != 1) {
      line("learning_rate", spec.learning.rate_factor);
    }
  }

 private:
  static constexpr Index kUnusual = std::numeric_limits<Index>::min();  // no number of cells

  template <class T>
  void line(const char* key, const T& value) {
    text_ += fmt::format("{}={}\n", key, value);
  }
  void per_axis(const char* key, const partitioner::PerAxis& both, Index usual) {
    if (!both.is_square()) {
      line((std::string(key) + "_y").c_str(), both.rows);
      line((std::string(key) + "_x").c_str(), both.cols);
    } else if (both.rows != usual) {
      line(key, both.rows);
    }
  }
  void activation(partitioner::Activation activation) {
    line("activation", activation_name(activation));
  }

  template <class Filters>
  void filters(const Filters& layer) {
    if (layer.batch_normalize) {
      line("batch_normalize", 1);
    }
    line("filters", layer.filters);
    per_axis("size", layer.size, 1);
    per_axis("stride", layer.stride, 1);
  }
  template <class Filters>
  void padding(const Filters& layer) {
    per_axis("padding", layer.padding, 0);
    if (layer.more_padding != 0) {
      per_axis("padding_end", layer.padding_end(), kUnusual);
    }
  }

  void write(const partitioner::Convolution& layer) {
    filters(layer);
    if (layer.dilation != 1) {
      line("pad", 1);
      line("dilation", layer.dilation);
    } else {
      padding(layer);
    }
    if (layer.groups != 1) {
      line("groups", layer.groups);
    }
    activation(layer.activation);
  }
  void write(const partitioner::Deconvolution& layer) {
    filters(layer);
    padding(layer);
    activation(layer.activation);
  }
  void write(const partitioner::MaxPool& layer) {
    line("size", layer.size);
    per_axis("stride", layer.stride, 1);
    per_axis("padding", layer.padding, kUnusual);
  }
  void write(const partitioner::AvgPool& /*layer*/) {}
  void write(const partitioner::Connected& layer) {
    if (layer.batch_normalize) {
      line("batch_normalize", 1);
    }
    line("output", layer.outputs);
    activation(layer.activation);
  }
  void write(const partitioner::Dropout& layer) { line("probability", layer.probability); }
  void write(const partitioner::Softmax& layer) {
    if (layer.spatial) {
      line("spatial", 1);
    }
  }
  void write(const partitioner::Shortcut& layer) {
    const std::vector<int> others(spec_.inputs.begin() + 1, spec_.inputs.end());
    line("from", fmt::format("{}", fmt::join(others, ",")));
    if (layer.beta != 1) {
      line("beta", layer.beta);
    }
    activation(layer.activation);
  }
  void write(const partitioner::Sam& layer) {
    line("from", spec_.inputs.back());
    activation(layer.activation);
  }
  void write(const partitioner::ScaleChannels& layer) {
    line("from", spec_.inputs.back());
    if (layer.by_place) {
      line("scale_wh", 1);
    }
    activation(layer.activation);
  }
  void write(const partitioner::Route& layer) {
    line("layers", fmt::format("{}", fmt::join(spec_.inputs, ",")));
    if (layer.groups != 1) {
      line("groups", layer.groups);
      line("group_id", layer.group);
    }
  }
  void write(const partitioner::Upsample& layer) {
    line("stride", layer.stride);
    if (layer.bilinear) {
      line("mode", "bilinear");
    }
  }
  void write(const partitioner::SpaceToDepth& layer) { line("stride", layer.stride); }
  void write(const partitioner::ChannelShuffle& layer) { line("groups", layer.groups); }
  template <class Kind>
  void write(const Kind& /*layer*/) {
    expects(false, "a translation has no such layer");
  }

  std::string& text_;
  const partitioner::LayerSpec& spec_;
};

// One rule for all layers: the least epsilon, so that what others have beyond it can be added to
// their variances.
partitioner::NormRule common_rule(const Translation& translation) {
  partitioner::NormRule rule;
  bool is_first = true;
  for (const auto& [layer, parameters] : translation.all_parameters()) {
    if (parameters.norm) {
      rule.epsilon =
          is_first ? parameters.norm->epsilon : std::min(rule.epsilon, parameters.norm->epsilon);
      rule.rate = is_first ? parameters.norm->rate : rule.rate;
      is_first = false;
    }
  }
  return rule;
}

}  // namespace

ImportedModel model_of(const Translation& translation) {
  ImportedModel model = Lowering(translation).model();
  model.norm = common_rule(translation);
  return model;
}

std::string cfg_text(const ImportedModel& model) {
  const Network& network = model.network;
  std::string text = fmt::format("[net]\nbatch=32\nheight={}\nwidth={}\nchannels={}\n",
                                 network.image.rows,
                                 network.image.cols,
                                 network.image.channels);
  if (std::any_of(network.layers.begin(), network.layers.end(), [](const auto& layer) {
        return normalizes(layer.operation);
      })) {
    // As single precision has them, in the fewest digits.
    text += fmt::format("batch_norm_epsilon={}\nbatch_norm_rate={}\n",
                        static_cast<float>(model.norm.epsilon),
                        static_cast<float>(model.norm.rate));
  }
  for (const partitioner::LayerSpec& layer : network.layers) {
    SectionText(text, layer);
  }
  return text;
}

}  // namespace tessera::engine
