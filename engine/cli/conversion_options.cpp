// Options of the commands that change model files and weights, or write them for other programs.

#include <CLI/CLI.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/common_options.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"

namespace tessera::engine {

void add_options(CLI::App& app, AdaptCommand& command) {
  add_model(app, command.request.model);
  add_text(app, "--data SET", command.request.data, "data set, as for train")->required();
  add_size(app, command.request.size);
  add_choice(app,
             "--anchors",
             command.anchors,
             {"auto", "keep"},
             "of a detector: found by k-means for this size, or kept");
  add_allow_unlabelled(app, command.request.allow_unlabelled);
  add_text(app, "--out FILE", command.out, "model file to write")->required();
}

void add_options(CLI::App& app, ConvertCommand& command) {
  add_text(app, "MODEL", command.model, "model file (.cfg), or an ONNX file (.onnx)")->required();
  CLI::Option* const from = add_text(app, "--from FILE", command.from, "weights to read");
  CLI::Option* const to =
      add_text(app, "--to FILE", command.to, "weights to write, .weights or .safetensors");
  CLI::Option* const out = add_text(app,
                                    "--out FILE",
                                    command.out,
                                    "model file that an ONNX file becomes; its weights lie beside "
                                    "it, in NAME.safetensors");
  CLI::Option* const size =
      add_text(app, "--size HxW", command.size, "of the input, where the ONNX file leaves it open");
  CLI::Option* const for_model = add_text(
      app, "--model FILE", command.for_model, "model file that gets an ONNX file's weights");
  from->excludes(out, size, for_model);
  out->excludes(to, for_model);
  size->needs(out);
  for_model->needs(to);
  add_count(app,
            "--layers",
            command.layers,
            "only the first N layers, in Darknet's format under any name: what other models that "
            "begin alike can start from")
      ->needs(from);
}

void add_options(CLI::App& app, ExportCommand& command) {
  add_text(app, "MODEL", command.model, "model file (default: the one in the checkpoint)");
  add_weights(app, command.weights);
  add_text(app,
           "--out FILE",
           command.out,
           "file to write, NAME.onnx; the names of classes go to labels.txt beside it")
      ->required();
  add_size(app, command.size);
  const auto batch = [](const std::string& text) -> std::optional<Index> {
    if (text == "any") {
      return std::nullopt;
    }
    const auto images = parsed_number<Index>(text, 1, kMostCount);
    if (!images) {
      throw InputError(
          fmt::format("\"{}\" is not any, nor an integer from 1 to {}", text, kMostCount));
    }
    return images;
  };
  add_read(
      app,
      "--batch N",
      [&command, batch](const std::string& text) { command.batch = batch(text); },
      "images at a time, or any (default: 1)")
      ->check(accepted_by([batch](const std::string& text) { (void)batch(text); }));
  app.add_flag("--raw",
               command.raw,
               "of a detector: the maps before its heads, output0, output1, ..., for compilers and "
               "programs that decode them; without it boxes in pixels of the input and scores");
  app.add_flag("--logits", command.logits, "of a classifier: the values before its softmax");
  app.add_option("--layout",
                 command.layout,
                 "of a detector's output: boxes (4 + classes, N), in pixels with scores, or, of "
                 "[yolox] heads, yolox (N, 5 + classes), as YOLOX's own export has it")
      ->check(CLI::IsMember({"boxes", "yolox"}))
      ->capture_default_str();
  app.add_flag("--keep-batch-norm",
               command.keep_batch_norm,
               "leave batch normalisation apart from the weights before it");
  add_text(app, "--names FILE", command.names, "text file with one class name per line");
  add_text(app,
           "--calibration SET",
           command.calibration,
           "also write pictures of a data set's test part, or of a folder, as inputs for programs "
           "that quantise: NAME.calibration.npy");
  add_count(app, "--count", command.count, "so many of them, from all over the set");
  app.add_flag("--force", command.force, "replace a labels.txt that has other names");
  add_pixels(app, command.mean, command.stddev);
}

}  // namespace tessera::engine
