// The nodes of an ONNX graph, one after the other in the file's order, as layers of a network. What
// a node computes is a value: a constant, or the map of a layer under the shape that ONNX gives it,
// (images, channels, rows, columns), or flattened to (images, values), in the same order.
//
// Layers may read any earlier one here; model_of() of import_model.h gives them the order that a
// model file has.

#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/onnx/import_folding.h"
#include "engine/onnx/import_shapes.h"
#include "partitioner/network/input_sizes.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// Where the parameters of a layer come from.
struct ImportedNorm {
  Constant scale = {}, shift = {}, mean = {}, variance = {};
  double epsilon = 0;
  double rate = 0;  // weight of a new batch in the running statistics
};
struct ImportedParameters {
  std::string node;  // for messages
  Constant weight;
  std::vector<int> channel_order = {};  // input channel i of the file is this one of the layer
  float weight_factor = 1;              // pixels of the layer are those of the file by this
  std::optional<Constant> bias = std::nullopt;
  std::optional<ImportedNorm> norm = std::nullopt;
};

struct Border {
  Index top = 0, left = 0, bottom = 0, right = 0;
  friend bool operator==(const Border&, const Border&) = default;
};

struct Value {
  enum class Form {
    Constant,
    Map,
    Sampled,     // every few rows and columns of a map
    Rearranged,  // in an order that no layer has; such values only lead to outputs
    Factor,      // the part of an activation that its argument is still to be multiplied by
  };

  Form form = Form::Map;
  Constant constant = {};
  int layer = partitioner::kImage;
  std::vector<Index> shape = {};
  bool read_once = true;                // by all names that it has had so far
  std::vector<int> channel_order = {};  // channel i is this one of the layer; empty: itself
  Border border = {};                   // of zeros, around the map
  SliceRange rows = {}, cols = {};      // Sampled
  std::vector<int> layers = {};         // Rearranged: of these
  Index groups = 0;          // Rearranged: the channels as (groups, C / groups); 0: otherwise
  bool is_shuffled = false;  // and then as (C / groups, groups)
  partitioner::Activation activation = partitioner::Activation::Linear;  // Factor
  std::string argument = {};                                             // Factor: of this value
};

class Translation {
 public:
  // `size`: of the input, 0 x 0 where the file says it.
  Translation(const OnnxFile& file, const partitioner::InputSize& size);

  // Translates the nodes that outputs depend on.
  void run();

  // For the functions of operators: import_layers.cpp, import_maps.cpp.
  [[noreturn]] void refuse(const onnx::NodeProto& node, std::string_view reason) const {
    file_.refuse(node, reason);
  }
  [[nodiscard]] const OnnxFile& file() const { return file_; }
  [[nodiscard]] const partitioner::Network& network() const { return network_; }
  [[nodiscard]] Index images() const { return images_; }
  [[nodiscard]] const Value& input(const onnx::NodeProto& node, int i) const;
  [[nodiscard]] const Constant& constant(const onnx::NodeProto& node,
                                         int i,
                                         const char* what) const;
  [[nodiscard]] double number(const onnx::NodeProto& node, int i, const char* what) const;
  // The map of a layer, whole and in its order; with all four dimensions, or with either two.
  [[nodiscard]] const Value& values(const onnx::NodeProto& node, int i) const;
  [[nodiscard]] const Value& map(const onnx::NodeProto& node, int i) const;
  [[nodiscard]] std::vector<const Constant*> constants(const onnx::NodeProto& node) const;
  [[nodiscard]] std::vector<Index> map_shape(int layer) const;
  // Whether what the value's layer has computed so far is read so many times, by this name alone.
  [[nodiscard]] bool is_read_only(const std::string& name, int times = 1) const;
  // Whether nobody but this node reads it.
  [[nodiscard]] bool is_only_reader(const onnx::NodeProto& node, int i) const {
    return is_read_only(node.input(i));
  }
  // The node that alone reads a value.
  [[nodiscard]] const onnx::NodeProto* only_reader(const std::string& name) const;
  [[nodiscard]] bool is_read(const std::string& name) const;

  int add(const onnx::NodeProto& node, partitioner::Operation operation, std::vector<int> inputs);
  partitioner::Operation& operation(int layer) {
    return network_.layers[static_cast<std::size_t>(layer)].operation;
  }
  // Its parameters stay as they are.
  void hold(int layer) {
    network_.layers[static_cast<std::size_t>(layer)].learning.rate_factor = 0;
  }
  ImportedParameters& parameters(int layer) { return parameters_[layer]; }
  Value& put(const onnx::NodeProto& node, int i, Value value);
  // The map of a layer as the first output of a node.
  void put_map(const onnx::NodeProto& node, int layer) {
    put(node, 0, {.layer = layer, .shape = map_shape(layer)});
  }
  // The same value under another name and perhaps shape.
  void put_alias(const onnx::NodeProto& node, int i, std::vector<Index> shape);
  // In an order that layers do not have.
  Value& put_rearranged(const onnx::NodeProto& node, int i, std::vector<Index> shape);
  // The nodes before this one that only it reads are a layer with it.
  void forget_rearranging(const onnx::NodeProto& node);
  void notice(std::string sentence) { notices_.push_back(std::move(sentence)); }

  // What run() leaves.
  [[nodiscard]] const std::map<int, ImportedParameters>& all_parameters() const {
    return parameters_;
  }
  [[nodiscard]] const std::vector<int>& outputs() const { return outputs_; }  // layers
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

 private:
  struct Readers {
    int count = 0;  // but for those that ask for its shape
    const onnx::NodeProto* last = nullptr;
  };

  void read_initializers();
  void read_image(const partitioner::InputSize& size);
  void find_readers();
  [[nodiscard]] std::unordered_set<std::string> needed_values() const;
  void translate(const onnx::NodeProto& node);
  [[nodiscard]] bool fold(const onnx::NodeProto& node);
  void find_outputs();

  const OnnxFile& file_;
  partitioner::Network network_;
  Index images_ = 1;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, Readers> readers_;
  std::unordered_set<std::string> output_names_;
  std::map<int, ImportedParameters> parameters_;
  std::vector<int> outputs_;
  std::vector<std::string> notices_;
  std::vector<const onnx::NodeProto*> rearranging_;
  FoldingBudget budget_;
};

// "8x3x32x32"
[[nodiscard]] std::string sides(const std::vector<Index>& shape);

using Translate = void (*)(Translation&, const onnx::NodeProto&);
struct OperatorRow {
  std::string_view name;
  Translate translate;
  bool takes_rearranged = false;  // values in an order that no layer has
};
using OperatorRows = std::span<const OperatorRow>;
[[nodiscard]] OperatorRows layer_operators();       // import_layers.cpp
[[nodiscard]] OperatorRows activation_operators();  // import_activations.cpp
[[nodiscard]] OperatorRows map_operators();         // import_maps.cpp
[[nodiscard]] OperatorRows slice_operators();       // import_slices.cpp

}  // namespace tessera::engine
