#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/data/batch/batch.h"
#include "engine/data/text/class_names.h"
#include "engine/files/atomic_file.h"
#include "engine/session/model_setup.h"
#include "engine/train/checkpoints/weights_file.h"
#include "engine/train/classification_report.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/cfg/cfg_edit.h"
#include "partitioner/cfg/cfg_sections.h"
#include "partitioner/network/losses.h"
#include "partitioner/partition/partition.h"
#ifdef TESSERA_HAS_ONNX
#include "engine/onnx/export.h"
#endif

namespace tessera::engine {

#ifndef TESSERA_HAS_ONNX

void run_export(const ExportCommand& /*command*/) {
  throw InputError(
      "export: this program was built without ONNX: install libonnx-dev and libprotobuf-dev, and "
      "build it again");
}

#else

namespace {

namespace fs = std::filesystem;

fs::path beside(const ExportCommand& command, const std::string& name) {
  return fs::path(command.out).parent_path() / name;
}

void expect_writable(const ExportCommand& command) {
  std::error_code error;
  if (fs::is_directory(command.out, error)) {
    throw InputError(command.out, 0, "is a folder: give the name of a file, such as m.onnx in it");
  }
  if (fs::path(command.out).extension() != ".onnx") {
    throw InputError(command.out, 0, "expected a name ending in .onnx");
  }
  const AtomicFile tried(command.out, Links::Follow);  // now rather than when all is computed
}

// One for each class of the network.
std::vector<std::string> class_names(const ExportCommand& command,
                                     const partitioner::Network& network,
                                     const std::optional<Preparation>& stored) {
  std::vector<std::string> names;
  if (!command.names.empty()) {
    names = read_class_names(command.names);
  } else if (stored) {
    names = stored->class_names;
  } else {
    print_warning(fmt::format("{} does not say what its classes are called: give --names FILE",
                              command.weights));
  }
  const auto classes = static_cast<std::size_t>(classes_of(network, output_layer(network)));
  if (!names.empty() && names.size() != classes) {
    print_warning(fmt::format("{} names {} classes, the network has {}",
                              command.names.empty() ? command.weights : command.names,
                              names.size(),
                              classes));
  }
  std::vector<std::string> all;
  for (std::size_t i = 0; i < classes; ++i) {
    all.push_back(class_name(names, i));
  }
  return all;
}

// labels.txt, unless it is there already.
class Labels {
 public:
  // Throws InputError where there is one with other names.
  Labels(const ExportCommand& command, const std::vector<std::string>& names)
      : path_(beside(command, "labels.txt")), text_(fmt::format("{}\n", fmt::join(names, "\n"))) {
    std::error_code error;
    if (!fs::exists(path_, error)) {
      return;
    }
    std::ifstream file(path_, std::ios::binary);
    is_there_ = file && std::string(std::istreambuf_iterator<char>(file), {}) == text_;
    if (!is_there_ && !command.force) {
      throw InputError(path_.string(),
                       0,
                       "already exists, with other names of classes: --force replaces it, --out "
                       "FILE writes to another folder");
    }
  }

  void write() const {
    if (!is_there_) {
      write_atomically(path_, text_, Links::Follow);
    }
  }

 private:
  fs::path path_;
  std::string text_;
  bool is_there_ = false;
};

// The test part of a data set; else the pictures of a folder, a list or a file.
Dataset calibration_pictures(const std::string& path, Index channels) {
  try {
    return list_dataset(path, Split::Test, channels, {.allow_unlabelled = true});
  } catch (const InputError&) {
    if (path.ends_with(".data")) {
      throw;
    }
  }
  return open_pictures(path, channels);
}

// Leaves `count` pictures, from all over the set.
void thin_out(Dataset& pictures, Index count) {
  std::vector<Index> left_out;
  const Index size = pictures.size();
  for (Index item = 0; item < size; ++item) {
    if (count < size && item * count / size == (item + 1) * count / size) {
      left_out.push_back(item);
    }
  }
  pictures.drop(left_out);
}

// What NumPy's format has before the numbers.
std::string array_header(Index images, const partitioner::MapShape& shape) {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kBeforeText = 10;
  std::string text =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}, {}, {}), }}",
                  images,
                  shape.channels,
                  shape.rows,
                  shape.cols);
  text.resize((kBeforeText + text.size()) / kAlignment * kAlignment + kAlignment - kBeforeText,
              ' ');
  text.back() = '\n';
  std::string header = "\x93NUMPY\x01";
  header += {'\0', static_cast<char>(text.size()), '\0'};
  return header + text;
}

// The network's inputs for some pictures, prepared as for testing; values from 0 to 1, as the
// file's input takes them.
void write_calibration(const ExportCommand& command, const partitioner::ModelFile& model) {
  const RenderingRules rules = rendering_rules(model, {.mean = {0}, .stddev = {1}});
  Dataset pictures = calibration_pictures(command.calibration, rules.input.channels);
  thin_out(pictures, command.count);
  const Index size = pictures.size();
  if (size == 0) {
    throw InputError(command.calibration, 0, "has no pictures: give a data set, or a folder");
  }
  if (size < command.count) {
    print_warning(fmt::format(
        "{} has {} pictures, not {}: all are taken", command.calibration, size, command.count));
  }
  BatchOptions options;
  options.rules = rules;
  options.split = Split::Test;
  const BatchSource source(std::move(pictures), options, command.model);
  AtomicFile file(fs::path(command.out).replace_extension(".calibration.npy"), Links::Follow);
  file.write(array_header(size, rules.input));
  std::vector<float> pixels(static_cast<std::size_t>(rules.input.volume()));
  const Region image = whole_map(model.network, partitioner::kImage, 1);
  for (Index step = 0; step < size; ++step) {
    source.read_region(step, image, pixels);
    file.write(std::as_bytes(std::span(pixels)));
  }
  file.commit();
}

LayerWeights weights_of(ParameterSet<float>& parameters, int layer) {
  const ParameterViews<float> views = parameters.views(layer);
  const partitioner::LayerParameters shapes = layer_parameters(parameters.network(), layer);
  const auto copy = [](const float* values, const partitioner::ParameterShape& shape) {
    return std::vector<float>(values, values + shape.channels * shape.row);
  };
  return {copy(views.weight, shapes.weight),
          copy(views.bias, shapes.bias),
          copy(views.scale, shapes.scale),
          copy(views.mean, shapes.mean),
          copy(views.variance, shapes.variance)};
}

std::string described(const ExportedOutput& output) {
  std::string shape;
  for (const Index size : output.shape) {
    shape +=
        fmt::format("{}{}", shape.empty() ? "" : ", ", size == 0 ? "any" : std::to_string(size));
  }
  return fmt::format("{} [{}]", output.name, shape);
}

void warn_of_few_boxes(const ExportCommand& command, const partitioner::Network& network) {
  const BoxLayout layout = box_layout(network);
  if (layout.boxes <= layout.values) {
    print_warning(
        fmt::format("{}: output0 has {} values of each of {} boxes: programs that tell the two "
                    "apart by which are more, such as Frigate, take one for the other; give a "
                    "larger --size",
                    command.out,
                    layout.values,
                    layout.boxes));
  }
}

void print_outline(const ExportCommand& command,
                   const partitioner::MapShape& image,
                   const ExportedModel& exported) {
  std::vector<std::string> outputs;
  for (const ExportedOutput& output : exported.outputs()) {
    outputs.push_back(described(output));
  }
  fmt::print(
      "{}: {} -> {}\n",
      printable(command.out),
      described({"images", {command.batch.value_or(0), image.channels, image.rows, image.cols}}),
      fmt::join(outputs, ", "));
}

// What stands before the first layer, and how classes are called.
void add_preparation(const ExportCommand& command,
                     const partitioner::ModelFile& model,
                     const Communicator& alone,
                     ExportOptions& options) {
  const std::optional<Preparation> stored = stored_preparation(command.weights, alone);
  const RenderingRules rules = rules_for_weights(
      command.weights, stored, model, {command.mean, command.stddev}, alone, printed_messages());
  check_rules(rules, command.model);
  const ChannelValues values = channel_values(rules);
  options.mean = values.mean;
  options.stddev = values.stddev;
  options.class_names = class_names(command, model.network, stored);
}

// The model file of that size; empty where the file's graph is not all of it, or more.
std::string text_to_keep(const ExportCommand& command,
                         const partitioner::ModelFile& model,
                         const ExportOptions& options) {
  const bool as_they_are =
      std::all_of(options.mean.begin(), options.mean.end(), [](float x) { return x == 0; }) &&
      std::all_of(options.stddev.begin(), options.stddev.end(), [](float x) { return x == 1; });
  if (command.raw || command.logits || command.layout == "yolox" || !as_they_are) {
    return "";
  }
  if (command.size.empty()) {
    return model.text;
  }
  if (model.picture != model.network.image) {
    return "";  // a [crop] says what the input is
  }
  const auto [rows, cols] = partitioner::parse_grid(command.size, "--size", partitioner::kPixels);
  const int net = partitioner::read_cfg_sections(model.text, command.model).front().line;
  return partitioner::with_changes(
      model.text, {{net, "height", std::to_string(rows)}, {net, "width", std::to_string(cols)}});
}

}  // namespace

void run_export(const ExportCommand& asked) {
  const Communicator alone = Communicator::self();
  ExportCommand command = asked;
  command.weights = weights_file(asked.weights, alone);
  command.model = model_or_that_of(command.weights, asked.model);
  expect_writable(command);
  partitioner::ModelFile model = load_model(command.model, alone, printed_messages());
  const partitioner::ModelFile as_trained = model;
  model.network = resized(model.network, command.size);
  ExportOptions options{.model = command.model,
                        .norm = model.training.norm,
                        .batch = command.batch,
                        .raw = command.raw,
                        .as_yolox = command.layout == "yolox",
                        .logits = command.logits,
                        .keep_batch_norm = command.keep_batch_norm};
  expect_exportable(model.network, options);
  const partitioner::Plan plan =
      make_plan(model.network, partitioner::single_tile(model.network), 1);
  ParameterSet<float> parameters(model.network, plan, alone, false);
  load_weights(command.weights, model.network, model.training.norm, parameters, alone);
  warn_of_other_network(command.weights, as_trained, alone, printed_messages());
  add_preparation(command, as_trained, alone, options);
  options.model_text = text_to_keep(command, as_trained, options);
  const Labels labels(command, options.class_names);
  const ExportedModel exported = export_model(
      model.network, [&](int layer) { return weights_of(parameters, layer); }, options);
  if (is_detector(model.network) && !command.raw && !options.as_yolox) {
    warn_of_few_boxes(command, model.network);
  }
  if (!command.calibration.empty()) {
    write_calibration(command, model);
  }
  labels.write();
  exported.write(command.out);
  print_outline(command, model.network.image, exported);
}

#endif

}  // namespace tessera::engine
