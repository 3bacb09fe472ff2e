// A network with its weights as an ONNX file (opset 13), for programs that only look at pictures.
// What stands in the file, and what other programs make of it, is in README.md.
//
// Outputs are named output0, output1, ...; the input, images, is (N, C, H, W) of values from 0 to
// 1. Class names, sizes and the stride are metadata under the keys that Ultralytics uses.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/darknet_weights.h"
#include "partitioner/network/network.h"
#include "partitioner/network/norm_rule.h"

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace tessera::engine {

struct ExportOptions {
  std::string model = {};  // what the user calls the network, for messages
  partitioner::NormRule norm = {};
  std::optional<Index> batch = 1;  // nothing: any number of images
  bool raw = false;                // a detector's maps before its heads, instead of boxes
  bool as_yolox = false;         // cells of a [yolox] as its own export has them, instead of boxes
  bool logits = false;           // a classifier's values before its softmax
  bool keep_batch_norm = false;  // else it is part of the weights
  // Pixels are (value - mean) / stddev before the first layer, a number for each channel; empty: as
  // they are.
  std::vector<float> mean = {};
  std::vector<float> stddev = {};
  std::vector<std::string> class_names = {};  // one for each class
  // The model file, to be found in the file's metadata by whoever imports it; empty: it is not.
  std::string model_text = {};
};

// Throws InputError where the network has a layer that ONNX cannot say, with its kind and line, or
// more weights than a file can have, or does not end as the options ask for.
void expect_exportable(const partitioner::Network& network, const ExportOptions& options);

struct ExportedOutput {
  std::string name;
  std::vector<Index> shape;  // the first number is 0 where any number of images will do
};

class ExportedModel {
 public:
  explicit ExportedModel(std::unique_ptr<onnx::ModelProto> message);
  ExportedModel(ExportedModel&&) noexcept;
  ~ExportedModel();

  [[nodiscard]] const onnx::ModelProto& message() const { return *message_; }
  [[nodiscard]] std::vector<ExportedOutput> outputs() const;

  // Whole or not at all; a link is followed.
  void write(const std::filesystem::path& path) const;

 private:
  std::unique_ptr<onnx::ModelProto> message_;
};

// `weights` is asked once for each layer with parameters. The network is one that
// expect_exportable() lets pass.
[[nodiscard]] ExportedModel export_model(const partitioner::Network& network,
                                         const std::function<LayerWeights(int layer)>& weights,
                                         const ExportOptions& options);

// The boxes of a detector as the default output has them: (4 + classes, N). Programs tell the two
// apart by their size: N has to be the larger one.
struct BoxLayout {
  Index values = 0;
  Index boxes = 0;
};
[[nodiscard]] BoxLayout box_layout(const partitioner::Network& network);

}  // namespace tessera::engine
