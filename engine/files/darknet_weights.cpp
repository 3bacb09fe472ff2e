#include "engine/files/darknet_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "engine/files/atomic_file.h"
#include "engine/files/input_file.h"
#include "engine/files/tensor_check.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::LayerParameters;
using partitioner::Network;
using partitioner::ParameterShape;

static_assert(std::endian::native == std::endian::little,
              "numbers are stored as they lie in memory");

namespace {

constexpr Index kFloatBytes = 4;
constexpr double kDarknetEpsilon = double{0.000001F};  // added to the root of the variance

struct Header {
  std::uint64_t seen = 0;
  Index bytes = 0;
  bool transposed = false;  // weights of connected layers are (C, K)
};

// One vector of a layer: which, and how many elements.
struct Part {
  std::vector<float> LayerWeights::*values;
  Index count;
};

// add_layer() refuses networks with more than 2^40 values in one tensor: no sum in this file
// overflows.
Index element_count(const ParameterShape& shape) {
  return shape.channels * shape.row;
}

// In the file's order.
std::array<Part, 5> parts_of(const Network& network, int layer) {
  const LayerParameters shapes = partitioner::layer_parameters(network, layer);
  const Part bias = {&LayerWeights::bias, element_count(shapes.bias)};
  const Part weight = {&LayerWeights::weight, element_count(shapes.weight)};
  const Part scale = {&LayerWeights::scale, element_count(shapes.scale)};
  const Part mean = {&LayerWeights::mean, element_count(shapes.mean)};
  const Part variance = {&LayerWeights::variance, element_count(shapes.variance)};
  if (std::holds_alternative<partitioner::Connected>(network.layer(layer).operation)) {
    return {bias, weight, scale, mean, variance};
  }
  return {bias, scale, mean, variance, weight};
}

Index layer_bytes(const Network& network, int layer) {
  Index bytes = 0;
  for (const Part& part : parts_of(network, layer)) {
    bytes += kFloatBytes * part.count;
  }
  return bytes;
}

std::string layer_text(const Network& network, int layer) {
  return fmt::format("layer {} ({})", layer, kind_name(network.layer(layer).operation));
}

Header read_weights_header(const InputFile& file) {
  std::array<std::int32_t, 3> version = {};
  const Index version_bytes = sizeof(version);
  Header header;
  header.bytes = version_bytes + Index{sizeof(std::int32_t)};
  if (file.size() >= header.bytes) {
    file.read(0, std::as_writable_bytes(std::span(version)));
    const std::int64_t major = version[0];
    const std::int64_t minor = version[1];
    header.transposed = major > 1000 || minor > 1000;
    // Counted in 64 bits since version 0.2.
    const bool wide = major * 10 + minor >= 2 && major < 1000 && minor < 1000;
    header.bytes = version_bytes + (wide ? 8 : 4);
  }
  if (file.size() < header.bytes) {
    throw InputError(
        file.path().string(),
        0,
        fmt::format("has {} bytes; the header of a .weights file has {}: copy the file again",
                    file.size(),
                    header.bytes));
  }
  // The low bytes come first, so a narrow count fills the low half.
  const auto seen_bytes = static_cast<std::size_t>(header.bytes - version_bytes);
  file.read(version_bytes, std::as_writable_bytes(std::span(&header.seen, 1)).first(seen_bytes));
  return header;
}

struct LayersPresent {
  std::vector<Index> begins;
  Index other_outputs = 0;
};

// The last layer with parameters, -1 where there is none.
int last_filled_layer(const Network& network) {
  int layer = network.size() - 1;
  while (layer >= 0 && layer_bytes(network, layer) == 0) {
    --layer;
  }
  return layer;
}

// How many outputs the layer has if all of `bytes` is its parameters; 0 where that cannot be.
Index outputs_of(const Network& network, int layer, Index bytes) {
  const Index outputs = partitioner::layer_parameters(network, layer).bias.channels;
  const Index each = outputs > 0 ? layer_bytes(network, layer) / outputs : 0;
  return each > 0 && bytes > 0 && bytes % each == 0 ? bytes / each : 0;
}

// What to do about a file that is not as long as the model's parameters.
const char* length_hint(bool allow_partial) {
  return allow_partial ? "is this the right model for these weights? (of one that only begins "
                         "alike, cut out the first layers: convert --layers)"
                       : "is this the right model for these weights?";
}

[[noreturn]] void refuse_end(const InputFile& file,
                             const Network& network,
                             int layer,
                             Index offset,
                             Index bytes,
                             bool allow_partial) {
  throw InputError(file.path().string(),
                   0,
                   fmt::format("ends in {}, at byte {}: the layer's parameters are bytes {} to {}; "
                               "{}",
                               layer_text(network, layer),
                               file.size(),
                               offset,
                               offset + bytes,
                               length_hint(allow_partial)));
}

// Where layers begin, of those from the first that fit into the file; throws where that is not what
// is allowed.
LayersPresent layers_present(const InputFile& file,
                             const Network& network,
                             Index begin,
                             bool allow_partial) {
  const int last = last_filled_layer(network);
  Index offset = begin;
  LayersPresent present;
  for (int layer = 0; layer < network.size(); ++layer) {
    const Index bytes = layer_bytes(network, layer);
    const Index left = file.size() - offset;
    if (allow_partial && left == 0 && bytes > 0) {
      return present;
    }
    if (allow_partial && layer == last && left != bytes) {
      present.other_outputs = outputs_of(network, layer, left);
      if (present.other_outputs > 0) {
        return present;
      }
    }
    if (bytes > left) {
      refuse_end(file, network, layer, offset, bytes, allow_partial);
    }
    present.begins.push_back(offset);
    offset += bytes;
  }
  if (offset < file.size()) {
    throw InputError(
        file.path().string(),
        0,
        fmt::format("continues after the last layer: the parameters of {} end at byte {}, the file "
                    "at byte {}; {}",
                    last < 0 ? "the model, which has none," : layer_text(network, last),
                    offset,
                    file.size(),
                    length_hint(allow_partial)));
  }
  return present;
}

// Elements [begin, begin + out.size()) of (K, C) from (C, K), as it lies in old files from `offset`
// on. Of each input the outputs that are wanted lie together.
void read_transposed(const InputFile& file,
                     Index offset,
                     const ParameterShape& shape,
                     Index begin,
                     std::span<float> out) {
  const Index end = begin + std::ssize(out);
  const Index first = begin / shape.row;
  std::vector<float> wanted(static_cast<std::size_t>((end + shape.row - 1) / shape.row - first));
  for (Index input = 0; input < shape.row; ++input) {
    file.read(offset + (input * shape.channels + first) * kFloatBytes,
              std::as_writable_bytes(std::span(wanted)));
    for (Index i = 0; i < std::ssize(wanted); ++i) {
      const Index element = (first + i) * shape.row + input;
      if (begin <= element && element < end) {
        out[static_cast<std::size_t>(element - begin)] = wanted[static_cast<std::size_t>(i)];
      }
    }
  }
}

// Local layers lie as (cells, K, C x FH x FW) in a file, deconvolutional ones as (C, K, FH x FW).
struct FileOrder {
  Index cells = 0;  // or input channels
  Index filters = 0;
  Index terms = 0;  // weights of one of these, of a filter

  // Calls visit(first, in file, count) for the runs of elements [begin, end) of (K, cells, terms)
  // that lie together in a file.
  template <class Visit>
  void for_each_run(Index begin, Index end, Visit visit) const {
    for (Index first = begin; first < end;) {
      const Index term = first % terms;
      const Index filter = first / terms / cells;
      const Index cell = first / terms % cells;
      const Index count = std::min(terms - term, end - first);
      visit(first, (cell * filters + filter) * terms + term, count);
      first += count;
    }
  }
};

std::optional<FileOrder> file_order(const Network& network, int layer) {
  const partitioner::LayerSpec& spec = network.layer(layer);
  const LayerParameters shapes = partitioner::layer_parameters(network, layer);
  if (const auto* deconvolution = std::get_if<partitioner::Deconvolution>(&spec.operation)) {
    return FileOrder{network.shape(spec.inputs[0]).channels,
                     deconvolution->filters,
                     deconvolution->size.product()};
  }
  if (!std::holds_alternative<partitioner::Local>(spec.operation)) {
    return std::nullopt;
  }
  return FileOrder{shapes.bias.row, shapes.bias.channels, shapes.weight.row / shapes.bias.row};
}

std::vector<float> in_file_order(const FileOrder& order, const std::vector<float>& weights) {
  std::vector<float> result(weights.size());
  order.for_each_run(0, std::ssize(weights), [&](Index first, Index in_file, Index count) {
    std::copy_n(weights.data() + first, count, result.data() + in_file);
  });
  return result;
}

// variance' + epsilon = (sqrt(variance) + 1e-6)^2, in double, rounded once.
void normalise_as_ours(LayerWeights& layer, const partitioner::NormRule& norm) {
  if (norm.form == partitioner::NormForm::Darknet) {
    return;
  }
  const double epsilon = norm.epsilon;
  for (std::size_t k = 0; k < layer.variance.size(); ++k) {
    const double divisor = std::sqrt(double{layer.variance[k]}) + kDarknetEpsilon;
    const double variance = divisor * divisor - epsilon;
    if (variance < 0) {
      layer.variance[k] = 0;
      layer.scale[k] = static_cast<float>(double{layer.scale[k]} * std::sqrt(epsilon) / divisor);
    } else {
      layer.variance[k] = static_cast<float>(variance);
    }
  }
}

void normalise_as_darknet(LayerWeights& layer, const partitioner::NormRule& norm) {
  if (norm.form == partitioner::NormForm::Darknet) {
    return;
  }
  const double epsilon = norm.epsilon;
  for (std::size_t k = 0; k < layer.variance.size(); ++k) {
    const double divisor = std::sqrt(double{layer.variance[k]} + epsilon);
    const double root = divisor - kDarknetEpsilon;
    if (root < 0 && divisor > 0) {
      layer.scale[k] = static_cast<float>(double{layer.scale[k]} * kDarknetEpsilon / divisor);
    }
    layer.variance[k] = root < 0 ? 0 : static_cast<float>(root * root);
  }
}

const char* part_name(std::vector<float> LayerWeights::*part) {
  if (part == &LayerWeights::weight) {
    return "weight";
  }
  if (part == &LayerWeights::bias) {
    return "bias";
  }
  if (part == &LayerWeights::scale) {
    return "scale";
  }
  return part == &LayerWeights::mean ? "running mean" : "running variance";
}

// `first` is the number of the first value in its part.
void check_finite(std::span<const float> values,
                  Index first,
                  const std::string& path,
                  const std::string& who,
                  std::vector<float> LayerWeights::*part) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (found != values.end()) {
    throw InputError(
        path,
        0,
        fmt::format("{}: its {} holds {} at element {}, expected finite numbers: the training that "
                    "wrote it has diverged, or the file is damaged or of another model",
                    who,
                    part_name(part),
                    number_text(double{*found}),
                    first + (found - values.begin())));
  }
}

void check_variances(const LayerWeights& layer, const std::string& path, const std::string& who) {
  for (std::size_t k = 0; k < layer.variance.size(); ++k) {
    if (!(layer.variance[k] >= 0)) {
      throw InputError(path,
                       0,
                       fmt::format("{}: the running variance of channel {} is {}, expected at "
                                   "least 0; is this the right model for these weights?",
                                   who,
                                   k,
                                   layer.variance[k]));
    }
  }
}

}  // namespace

DarknetWeightsReader::DarknetWeightsReader(const std::filesystem::path& path,
                                           const Network& network,
                                           const partitioner::NormRule& norm,
                                           bool allow_partial)
    : file_(path), network_(&network), norm_(norm) {
  expects(norm.epsilon >= 0, "what is added to a variance is not negative");
  const Header header = read_weights_header(file_);
  seen_ = header.seen;
  transposed_ = header.transposed;
  LayersPresent present = layers_present(file_, network, header.bytes, allow_partial);
  begins_ = std::move(present.begins);
  other_outputs_ = present.other_outputs;
}

LayerWeights DarknetWeightsReader::vectors(int layer) const {
  expects(0 <= layer && layer < layers_filled(), "the file has the layer");
  LayerWeights result;
  Index offset = begins_[static_cast<std::size_t>(layer)];
  for (const Part& part : parts_of(*network_, layer)) {
    if (part.values != &LayerWeights::weight) {
      std::vector<float>& values = result.*part.values;
      values.resize(static_cast<std::size_t>(part.count));
      file_.read(offset, std::as_writable_bytes(std::span(values)));
    }
    offset += part.count * kFloatBytes;
  }
  const std::string who = layer_text(*network_, layer);
  check_variances(result, file_.path().string(), who);
  for (const Part& part : parts_of(*network_, layer)) {
    check_finite(result.*part.values, 0, file_.path().string(), who, part.values);
  }
  normalise_as_ours(result, norm_);
  return result;
}

void DarknetWeightsReader::read_weight(int layer, Index begin, std::span<float> out) const {
  expects(0 <= layer && layer < layers_filled(), "the file has the layer");
  const ParameterShape shape = partitioner::layer_parameters(*network_, layer).weight;
  expects(begin >= 0 && begin + std::ssize(out) <= element_count(shape),
          "elements to read lie in the tensor");
  if (out.empty()) {
    return;
  }
  Index offset = begins_[static_cast<std::size_t>(layer)];
  for (const Part& part : parts_of(*network_, layer)) {
    if (part.values == &LayerWeights::weight) {
      break;
    }
    offset += part.count * kFloatBytes;
  }
  if (const auto order = file_order(*network_, layer)) {
    order->for_each_run(
        begin, begin + std::ssize(out), [&](Index first, Index in_file, Index count) {
          file_.read(offset + in_file * kFloatBytes,
                     std::as_writable_bytes(out.subspan(static_cast<std::size_t>(first - begin),
                                                        static_cast<std::size_t>(count))));
        });
  } else if (transposed_ &&
             std::holds_alternative<partitioner::Connected>(network_->layer(layer).operation)) {
    read_transposed(file_, offset, shape, begin, out);
  } else {
    file_.read(offset + begin * kFloatBytes, std::as_writable_bytes(out));
  }
  check_finite(
      out, begin, file_.path().string(), layer_text(*network_, layer), &LayerWeights::weight);
}

std::uint64_t darknet_images_seen(const std::filesystem::path& path) {
  return read_weights_header(InputFile(path)).seen;
}

void write_darknet_weights(const std::filesystem::path& path,
                           const Network& network,
                           const DarknetWeights& weights,
                           const partitioner::NormRule& norm) {
  expects(norm.epsilon >= 0, "what is added to a variance is not negative");
  expects(std::cmp_less_equal(weights.layers.size(), network.size()), "the network has the layers");
  AtomicFile file(path, Links::Follow);
  const std::array<std::int32_t, 3> version = {0, 2, 0};
  file.write(std::as_bytes(std::span(version)));
  file.write(std::as_bytes(std::span(&weights.seen, 1)));
  for (int index = 0; std::cmp_less(index, weights.layers.size()); ++index) {
    LayerWeights layer = weights.layers[static_cast<std::size_t>(index)];
    normalise_as_darknet(layer, norm);
    if (const auto order = file_order(network, index)) {
      layer.weight = in_file_order(*order, layer.weight);
    }
    for (const Part& part : parts_of(network, index)) {
      const std::vector<float>& values = layer.*part.values;
      expects(std::cmp_equal(values.size(), part.count), "weights have the model's sizes");
      file.write(std::as_bytes(std::span(values)));
    }
  }
  file.commit();
}

}  // namespace tessera::engine
