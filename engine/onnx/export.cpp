#include "engine/onnx/export.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <limits>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/onnx/export_heads.h"
#include "engine/onnx/export_layers.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/input_sizes.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

using partitioner::Network;

namespace {

constexpr Index kMostBytes = std::numeric_limits<std::int32_t>::max();  // of a message
constexpr Index kNumbersOfBox = 6;  // that its decoder has of each
constexpr Index kIrVersion = 8;
constexpr Index kOpset = 13;

[[noreturn]] void refuse_size(const std::string& where, Index bytes) {
  throw InputError(
      where,
      0,
      fmt::format(
          "{:.2f} GB of weights, but an ONNX file holds at most 2 GB: use fewer filters, or "
          "a program that reads the .weights that `tessera convert` writes",
          static_cast<double>(bytes) / 1e9));
}

void expect_fitting(Index values, const ExportOptions& options) {
  constexpr auto kBytes = static_cast<Index>(sizeof(float));
  if (values > kMostBytes / kBytes) {
    refuse_size(options.model, values * kBytes);
  }
}

bool ends_in_softmax(const Network& network) {
  return std::holds_alternative<partitioner::Softmax>(
      network.layer(output_layer(network)).operation);
}

// The layers whose maps are put out or, of a detector's boxes, decoded.
std::vector<int> exported_maps(const Network& network, const ExportOptions& options) {
  std::vector<int> maps;
  for (const int layer : output_layers(network)) {
    const bool takes_input = is_detector(network) || options.logits;
    maps.push_back(takes_input ? network.layer(layer).inputs[0] : layer);
  }
  return maps;
}

// Those that these are computed from, by layer.
std::vector<bool> needed_layers(const Network& network, const std::vector<int>& maps) {
  std::vector<bool> needed(static_cast<std::size_t>(network.size()));
  const auto need = [&](int map) {
    if (map != partitioner::kImage) {
      needed[static_cast<std::size_t>(map)] = true;
    }
  };
  std::for_each(maps.begin(), maps.end(), need);
  for (int layer = network.size() - 1; layer >= 0; --layer) {
    if (needed[static_cast<std::size_t>(layer)]) {
      const std::vector<int>& inputs = network.layer(layer).inputs;
      std::for_each(inputs.begin(), inputs.end(), need);
    }
  }
  return needed;
}

void expect_fitting_end(const Network& network, const ExportOptions& options) {
  const bool detects = is_detector(network);
  if (options.raw && !detects) {
    throw InputError(options.model,
                     0,
                     "--raw is for detectors, and the network has no head: leave it out, or give "
                     "--logits for the values before a softmax");
  }
  if (options.logits && (detects || !ends_in_softmax(network))) {
    throw InputError(
        options.model,
        0,
        fmt::format("--logits is for networks that end in [softmax], and this one ends in [{}]: {}",
                    kind_name(network.layer(output_layer(network)).operation),
                    detects ? "give --raw for the maps before its heads" : "leave it out"));
  }
  const std::vector<int> heads = output_layers(network);
  if (options.as_yolox) {
    for (const int head : heads) {
      if (!std::holds_alternative<partitioner::YoloxHead>(network.layer(head).operation)) {
        throw InputError(options.model,
                         network.layer(head).line,
                         fmt::format("--layout yolox is for networks with [yolox] heads, and this "
                                     "one ends in [{}]: leave it out",
                                     kind_name(network.layer(head).operation)));
      }
    }
  }
  if (!detects || options.raw) {
    return;
  }
  for (const int head : heads) {
    const Index first = head_counts(network, heads.front()).classes;
    const Index classes = head_counts(network, head).classes;
    if (classes != first) {
      throw InputError(options.model,
                       network.layer(head).line,
                       fmt::format("layer {} [{}] has {} classes and the first head has {}: one "
                                   "output has the same classes of all, give --raw for one of each",
                                   head,
                                   kind_name(network.layer(head).operation),
                                   classes,
                                   first));
    }
  }
}

// Values of pixels that the first layer takes, whose padding is 0 only then. As a convolution: of
// Sub and Div by channels OpenCV 4.6 makes nothing.
GraphValue normalized_image(GraphBuilder& graph, const ExportOptions& options, GraphValue image) {
  const auto channels = image.shape[1];
  std::vector<float> factors;
  std::vector<float> shifts;
  for (std::size_t c = 0; c < options.mean.size(); ++c) {
    const double deviation = options.stddev[c];
    factors.push_back(static_cast<float>(1 / deviation));
    shifts.push_back(static_cast<float>(-double{options.mean[c]} / deviation));
  }
  const auto all = [](const std::vector<float>& values, float value) {
    return std::all_of(values.begin(), values.end(), [&](float v) { return v == value; });
  };
  if (all(factors, 1) && all(shifts, 0)) {
    return image;
  }
  graph.begin("preparation");
  return graph.node("Conv",
                    {image,
                     graph.constant("weight", {channels, 1, 1, 1}, factors),
                     graph.constant("bias", {channels}, shifts)},
                    image.shape,
                    {{"kernel_shape", std::vector<Index>{1, 1}}, {"group", channels}});
}

// A text as Python writes it.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + "'";
}

void add_metadata(onnx::ModelProto& message, const Network& network, const ExportOptions& options) {
  const auto add = [&](const char* key, const std::string& value) {
    onnx::StringStringEntryProto& entry = *message.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  };
  std::vector<std::string> names;
  for (const std::string& name : options.class_names) {
    names.push_back(fmt::format("{}: {}", names.size(), quoted(name)));
  }
  add("names", fmt::format("{{{}}}", fmt::join(names, ", ")));
  if (!options.model_text.empty()) {
    add(kModelFileKey, options.model_text);
  }
  add("imgsz", fmt::format("[{}, {}]", network.image.rows, network.image.cols));
  if (is_detector(network)) {
    add("stride", std::to_string(total_stride(network)));
  }
}

// Names the values that are put out.
void add_outputs(GraphBuilder& graph,
                 LayerExporter& layers,
                 const Network& network,
                 const ExportOptions& options) {
  std::vector<GraphValue> outputs;
  std::vector<GraphValue> boxes;
  for (const int layer : output_layers(network)) {
    const partitioner::LayerSpec& spec = network.layer(layer);
    if (!is_detector(network)) {
      const bool is_vector = spec.output.rows * spec.output.cols == 1;
      outputs.push_back(options.logits ? layers.logits(layer)
                        : is_vector    ? layers.flat(layer)
                                       : layers.map(layer));
      continue;
    }
    const bool is_grid = std::holds_alternative<partitioner::GridHead>(spec.operation);
    const GraphValue in = is_grid ? layers.flat(spec.inputs[0]) : layers.map(spec.inputs[0]);
    graph.begin(fmt::format("layers.{}", layer));
    if (options.raw) {
      outputs.push_back(in);
    } else {
      boxes.push_back(options.as_yolox ? cells_of_head(graph, in)
                                       : boxes_of_head(graph, network, layer, in));
    }
  }
  if (!boxes.empty()) {
    graph.begin("boxes");
    const GraphValue all = graph.concat(boxes, 1);
    outputs.push_back(options.as_yolox ? all : graph.transpose(all, {0, 2, 1}));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    graph.output(outputs[i], fmt::format("output{}", i));
  }
}

// No exception may leave it: the buffer before it writes once more when it goes.
class FileStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(AtomicFile& file) : file_(file) {}

  bool Write(const void* bytes, int count) override {
    try {
      file_.write(std::span(static_cast<const std::byte*>(bytes), static_cast<std::size_t>(count)));
    } catch (...) {
      error_ = std::current_exception();
    }
    return error_ == nullptr;
  }

  void rethrow() const {
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
  }

 private:
  AtomicFile& file_;
  std::exception_ptr error_;
};

}  // namespace

void expect_exportable(const Network& network, const ExportOptions& options) {
  expect_fitting_end(network, options);
  const std::vector<bool> needed = needed_layers(network, exported_maps(network, options));
  Index values = 0;
  for (int layer = 0; layer < network.size(); ++layer) {
    if (!needed[static_cast<std::size_t>(layer)]) {
      continue;
    }
    if (const auto obstacle = export_obstacle(network, layer)) {
      const partitioner::LayerSpec& spec = network.layer(layer);
      throw InputError(
          options.model,
          spec.line,
          fmt::format("layer {} [{}] {}", layer, kind_name(spec.operation), *obstacle));
    }
    const partitioner::LayerParameters parameters = layer_parameters(network, layer);
    values += parameters.weight.channels * parameters.weight.row + parameters.bias.channels;
    expect_fitting(values, options);
  }
  for (const int head : output_layers(network)) {
    const bool decodes = is_detector(network) && !options.raw;
    values += decodes ? kNumbersOfBox * head_counts(network, head).boxes : 0;
    expect_fitting(values, options);
  }
}

ExportedModel export_model(const Network& network,
                           const std::function<LayerWeights(int layer)>& weights,
                           const ExportOptions& options) {
  auto message = std::make_unique<onnx::ModelProto>();
  message->set_ir_version(kIrVersion);
  message->set_producer_name("tessera");
  message->add_opset_import()->set_version(kOpset);
  message->mutable_graph()->set_name("network");
  GraphBuilder graph(*message->mutable_graph());
  const partitioner::MapShape& shape = network.image;
  GraphValue image =
      graph.input("images", {options.batch.value_or(0), shape.channels, shape.rows, shape.cols});
  LayerExporter layers(
      network, weights, options, graph, normalized_image(graph, options, std::move(image)));
  const std::vector<bool> needed = needed_layers(network, exported_maps(network, options));
  for (int layer = 0; layer < network.size(); ++layer) {
    if (needed[static_cast<std::size_t>(layer)]) {
      layers.add(layer);
    }
  }
  add_outputs(graph, layers, network, options);
  add_metadata(*message, network, options);
  return ExportedModel(std::move(message));
}

ExportedModel::ExportedModel(std::unique_ptr<onnx::ModelProto> message)
    : message_(std::move(message)) {}
ExportedModel::ExportedModel(ExportedModel&&) noexcept = default;
ExportedModel::~ExportedModel() = default;

std::vector<ExportedOutput> ExportedModel::outputs() const {
  std::vector<ExportedOutput> outputs;
  for (const onnx::ValueInfoProto& output : message_->graph().output()) {
    ExportedOutput& described = outputs.emplace_back(ExportedOutput{output.name(), {}});
    for (const auto& dimension : output.type().tensor_type().shape().dim()) {
      described.shape.push_back(dimension.dim_value());
    }
  }
  return outputs;
}

void ExportedModel::write(const std::filesystem::path& path) const {
  const auto bytes = static_cast<Index>(message_->ByteSizeLong());
  if (bytes > kMostBytes) {
    refuse_size(path.string(), bytes);
  }
  AtomicFile file(path, Links::Follow);
  FileStream stream(file);
  {
    google::protobuf::io::CopyingOutputStreamAdaptor buffered(&stream);
    message_->SerializeToZeroCopyStream(&buffered);
  }
  stream.rethrow();
  file.commit();
}

BoxLayout box_layout(const Network& network) {
  BoxLayout layout;
  for (const int head : output_layers(network)) {
    const HeadCounts counts = head_counts(network, head);
    layout.values = partitioner::kBoxValues - 1 + counts.classes;
    layout.boxes += counts.boxes;
  }
  return layout;
}

}  // namespace tessera::engine
