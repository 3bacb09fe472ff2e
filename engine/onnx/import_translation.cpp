#include "engine/onnx/import_translation.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>

namespace tessera::engine {

namespace {

constexpr Index kLargestInput = Index{1} << 31;  // along one dimension; the network asks for less

constexpr int kMostLayers = 5000;  // of a model file

// Of a dimension that the file gives a number; nothing where it gives a name, or nothing.
std::optional<Index> fixed_side(const onnx::TensorShapeProto::Dimension& dimension) {
  return dimension.has_dim_value() && dimension.dim_value() > 0
             ? std::optional<Index>(dimension.dim_value())
             : std::nullopt;
}

Index side_of_image(const OnnxFile& file,
                    const onnx::TensorShapeProto::Dimension& dimension,
                    const char* what,
                    Index asked) {
  const std::optional<Index> fixed = fixed_side(dimension);
  if (fixed && asked > 0 && *fixed != asked) {
    file.refuse(fmt::format(
        "--size says {} {}, but its input has {}: leave out --size", asked, what, *fixed));
  }
  if (!fixed && asked == 0) {
    file.refuse(
        fmt::format("its input has no fixed number of {}: say the size, as in --size "
                    "224x224 (rows x columns)",
                    what));
  }
  const Index side = fixed.value_or(asked);
  if (side > kLargestInput) {
    file.refuse(fmt::format("its input has {} {}, more than any picture", side, what));
  }
  return side;
}

// Null where no section computes what the operator does.
const OperatorRow* operator_row(std::string_view name) {
  for (const OperatorRows rows :
       {layer_operators(), activation_operators(), map_operators(), slice_operators()}) {
    for (const OperatorRow& row : rows) {
      if (row.name == name) {
        return &row;
      }
    }
  }
  return nullptr;
}

}  // namespace

std::string sides(const std::vector<Index>& shape) {
  return shape.empty() ? "a single number" : fmt::format("{}", fmt::join(shape, "x"));
}

Translation::Translation(const OnnxFile& file, const partitioner::InputSize& size) : file_(file) {
  for (const onnx::ValueInfoProto& output : file_.graph().output()) {
    output_names_.insert(output.name());
  }
  if (output_names_.empty()) {
    file_.refuse("its graph has no outputs");
  }
  read_initializers();
  read_image(size);
  find_readers();
}

void Translation::read_initializers() {
  for (const onnx::TensorProto& tensor : file_.graph().initializer()) {
    const std::string what = fmt::format("initializer '{}'", tensor.name());
    Constant constant = stored_constant(file_, what, tensor);
    Value value{.form = Value::Form::Constant, .shape = constant.shape};
    value.constant = std::move(constant);
    if (!values_.emplace(tensor.name(), std::move(value)).second) {
      file_.refuse(what + " is there twice");
    }
  }
}

void Translation::read_image(const partitioner::InputSize& size) {
  const onnx::ValueInfoProto* image = nullptr;
  for (const onnx::ValueInfoProto& input : file_.graph().input()) {
    if (values_.find(input.name()) != values_.end()) {
      continue;  // of files before IR 4, where initializers are inputs, too
    }
    if (image != nullptr) {
      file_.refuse(fmt::format("has several inputs, '{}' and '{}': expected one, of pictures",
                               image->name(),
                               input.name()));
    }
    image = &input;
  }
  if (image == nullptr) {
    file_.refuse("has no input");
  }
  const onnx::TensorShapeProto& shape = image->type().tensor_type().shape();
  if (shape.dim_size() != 4) {
    file_.refuse(
        fmt::format("its input '{}' has {} dimensions, expected 4: images, channels, rows, columns",
                    image->name(),
                    shape.dim_size()));
  }
  images_ = fixed_side(shape.dim(0)).value_or(1);
  if (images_ > kLargestInput) {
    file_.refuse(fmt::format("its input has {} images", images_));
  }
  network_.image = {side_of_image(file_, shape.dim(1), "channels", 0),
                    side_of_image(file_, shape.dim(2), "rows", size.rows),
                    side_of_image(file_, shape.dim(3), "columns", size.cols)};
  values_[image->name()] = {.shape = map_shape(partitioner::kImage)};
}

void Translation::find_readers() {
  for (const onnx::NodeProto& node : file_.graph().node()) {
    for (const std::string& name : node.input()) {
      if (node.op_type() != "Shape") {
        Readers& readers = readers_[name];
        ++readers.count;
        readers.last = &node;
      }
    }
  }
}

std::unordered_set<std::string> Translation::needed_values() const {
  std::unordered_set<std::string> needed = output_names_;
  const auto& nodes = file_.graph().node();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (std::any_of(node->output().begin(), node->output().end(), [&](const std::string& name) {
          return needed.find(name) != needed.end();
        })) {
      needed.insert(node->input().begin(), node->input().end());
    }
  }
  return needed;
}

void Translation::run() {
  const std::unordered_set<std::string> needed = needed_values();
  for (const onnx::NodeProto& node : file_.graph().node()) {
    if (std::any_of(node.output().begin(), node.output().end(), [&](const std::string& name) {
          return !name.empty() && needed.find(name) != needed.end();
        })) {
      translate(node);
    }
  }
  find_outputs();
  if (!rearranging_.empty()) {
    const onnx::NodeProto& first = *rearranging_.front();
    notice(fmt::format(
        "what only rearranges maps behind the last layers is left out, {} nodes from '{}' ({}) on: "
        "the outputs are the maps that it reads",
        rearranging_.size(),
        first.name().empty() ? first.output(0) : first.name(),
        first.op_type()));
  }
}

std::vector<const Constant*> Translation::constants(const onnx::NodeProto& node) const {
  std::vector<const Constant*> all;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value* value = has_input(node, i) ? &input(node, i) : nullptr;
    all.push_back(value != nullptr && value->form == Value::Form::Constant ? &value->constant
                                                                           : nullptr);
  }
  return all;
}

bool Translation::fold(const onnx::NodeProto& node) {
  std::optional<Constant> result;
  if (node.op_type() == "Constant") {
    result = constant_of(file_, node);
  } else if (node.op_type() == "Shape") {
    const Constant of{.shape = input(node, 0).shape};
    result = folded(file_, node, {&of}, budget_);
  } else {
    for (int i = 0; i < node.input_size(); ++i) {
      if (has_input(node, i) && input(node, i).form != Value::Form::Constant) {
        return false;
      }
    }
    result = folded(file_, node, constants(node), budget_);
    if (!result) {
      refuse(node,
             "computes with constants in a way that is not known: export with constants "
             "folded (do_constant_folding=True)");
    }
  }
  Value value{.form = Value::Form::Constant, .shape = result->shape};
  value.constant = std::move(*result);
  put(node, 0, std::move(value));
  return true;
}

void Translation::translate(const onnx::NodeProto& node) {
  if (fold(node)) {
    return;
  }
  const OperatorRow* const row = operator_row(node.op_type());
  if (row == nullptr) {
    refuse(node, "no section of a model file computes this");
  }
  const auto is_rearranged = [&](int i) {
    return has_input(node, i) && input(node, i).form == Value::Form::Rearranged;
  };
  for (int i = 0; i < node.input_size() && !row->takes_rearranged; ++i) {
    if (is_rearranged(i)) {
      refuse(node,
             "computes with values of a map in another order, which layers do not have: export the "
             "model without what decodes its outputs");
    }
  }
  row->translate(*this, node);
}

const Value& Translation::input(const onnx::NodeProto& node, int i) const {
  if (!has_input(node, i)) {
    refuse(node, fmt::format("has no input {}", i));
  }
  const auto found = values_.find(node.input(i));
  if (found == values_.end()) {
    refuse(node,
           fmt::format("reads '{}', which no node before it computes: expected nodes in the order "
                       "of computation, without cycles",
                       node.input(i)));
  }
  return found->second;
}

const Constant& Translation::constant(const onnx::NodeProto& node, int i, const char* what) const {
  const Value& value = input(node, i);
  if (value.form != Value::Form::Constant) {
    refuse(node, fmt::format("its {} is computed, expected a constant", what));
  }
  return value.constant;
}

double Translation::number(const onnx::NodeProto& node, int i, const char* what) const {
  const Constant& one = constant(node, i, what);
  if (volume_of(one.shape) != 1) {
    refuse(node, fmt::format("its {} is not a single number", what));
  }
  return numbers_of<double>(one).front();
}

const Value& Translation::values(const onnx::NodeProto& node, int i) const {
  const Value& value = input(node, i);
  switch (value.form) {
    case Value::Form::Map:
      break;
    case Value::Form::Constant:
      refuse(node, fmt::format("its input {} is a constant, expected a map", i));
    default:
      refuse(node, "reads part of a map in a way that layers do not");
  }
  if (!value.channel_order.empty()) {
    refuse(node, "reads slices of a map (Focus): only a Conv may");
  }
  if (!(value.border == Border{})) {
    refuse(node, "reads a map with a border (Pad): only a Conv may");
  }
  return value;
}

const Value& Translation::map(const onnx::NodeProto& node, int i) const {
  const Value& value = values(node, i);
  if (value.shape != map_shape(value.layer)) {
    refuse(node,
           fmt::format("its input {} is {}, of a map of {}: expected that map",
                       i,
                       sides(value.shape),
                       sides(map_shape(value.layer))));
  }
  return value;
}

std::vector<Index> Translation::map_shape(int layer) const {
  const partitioner::MapShape& shape = network_.shape(layer);
  return {images_, shape.channels, shape.rows, shape.cols};
}

bool Translation::is_read(const std::string& name) const {
  const auto found = readers_.find(name);
  return output_names_.find(name) != output_names_.end() ||
         (found != readers_.end() && found->second.count > 0);
}

const onnx::NodeProto* Translation::only_reader(const std::string& name) const {
  const auto found = readers_.find(name);
  return output_names_.find(name) == output_names_.end() && found != readers_.end() &&
                 found->second.count == 1
             ? found->second.last
             : nullptr;
}

bool Translation::is_read_only(const std::string& name, int times) const {
  const auto value = values_.find(name);
  const auto found = readers_.find(name);
  return value != values_.end() && value->second.read_once && found != readers_.end() &&
         found->second.count == times && output_names_.find(name) == output_names_.end();
}

int Translation::add(const onnx::NodeProto& node,
                     partitioner::Operation operation,
                     std::vector<int> inputs) {
  if (network_.size() == kMostLayers) {
    refuse(node,
           fmt::format("is one layer more than {}, which a model file may have", kMostLayers));
  }
  try {
    add_layer(network_, std::move(operation), std::move(inputs));
  } catch (const std::invalid_argument& error) {
    refuse(node, error.what());
  }
  return network_.size() - 1;
}

Value& Translation::put(const onnx::NodeProto& node, int i, Value value) {
  if (i >= node.output_size()) {
    refuse(node, "has no output");
  }
  const auto [place, is_new] = values_.emplace(node.output(i), std::move(value));
  if (!is_new) {
    refuse(node, fmt::format("computes '{}', which is there already", node.output(i)));
  }
  return place->second;
}

void Translation::put_alias(const onnx::NodeProto& node, int i, std::vector<Index> shape) {
  Value value = input(node, 0);
  value.read_once = i == 0 && is_only_reader(node, 0);
  value.shape = std::move(shape);
  put(node, i, std::move(value));
}

Value& Translation::put_rearranged(const onnx::NodeProto& node, int i, std::vector<Index> shape) {
  Value value{.form = Value::Form::Rearranged, .shape = std::move(shape)};
  for (int from = 0; from < node.input_size(); ++from) {
    if (!has_input(node, from) || input(node, from).form == Value::Form::Constant) {
      continue;
    }
    const Value& source = input(node, from);
    const std::vector<int> layers = source.form == Value::Form::Rearranged
                                        ? source.layers
                                        : std::vector<int>{values(node, from).layer};
    for (const int layer : layers) {
      if (std::find(value.layers.begin(), value.layers.end(), layer) == value.layers.end()) {
        value.layers.push_back(layer);
      }
    }
  }
  if (i == 0) {
    rearranging_.push_back(&node);
  }
  return put(node, i, std::move(value));
}

void Translation::forget_rearranging(const onnx::NodeProto& node) {
  const auto before =
      std::find_if(rearranging_.begin(), rearranging_.end(), [&node](const onnx::NodeProto* each) {
        return each->output(0) == node.input(0);
      });
  if (before != rearranging_.end() && is_only_reader(node, 0)) {
    const onnx::NodeProto& reader = **before;
    rearranging_.erase(before);
    forget_rearranging(reader);
  }
}

void Translation::find_outputs() {
  for (const onnx::ValueInfoProto& output : file_.graph().output()) {
    const auto found = values_.find(output.name());
    if (found == values_.end()) {
      file_.refuse(fmt::format("no node computes its output '{}'", output.name()));
    }
    const Value& value = found->second;
    std::vector<int> layers = {value.layer};
    if (value.form == Value::Form::Rearranged) {
      layers = value.layers;
    } else if (value.form != Value::Form::Map || !value.channel_order.empty() ||
               !(value.border == Border{})) {
      file_.refuse(fmt::format("its output '{}' is no map of a layer", output.name()));
    }
    for (const int layer : layers) {
      if (layer == partitioner::kImage) {
        file_.refuse(fmt::format("its output '{}' is its input", output.name()));
      }
      const bool is_new = std::find(outputs_.begin(), outputs_.end(), layer) == outputs_.end();
      if (is_new || value.form == Value::Form::Map) {
        outputs_.push_back(layer);
      }
    }
  }
}

}  // namespace tessera::engine
