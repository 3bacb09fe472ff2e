#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/data/inspection/anchor_clusters.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/shell_word.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

namespace {

using partitioner::Anchor;

void print_anchors_json(const std::vector<Anchor>& anchors, double mean_iou, std::size_t boxes) {
  nlohmann::ordered_json json{
      {"anchors", nlohmann::ordered_json::array()}, {"mean_iou", mean_iou}, {"boxes", boxes}};
  for (const Anchor& anchor : anchors) {
    json["anchors"].push_back({anchor.width, anchor.height});
  }
  fmt::print("{}\n", json.dump(2));
}

// What is left out, as warnings.
void say_problems(const Dataset& dataset, const std::string& data) {
  constexpr Index kShown = 3;
  Index left_out = 0;
  for (const DataProblem& problem : dataset.problems()) {
    const bool leaves_out = is_error(problem.fault) || problem.fault == DataFault::LeftOut;
    if (leaves_out && ++left_out <= kShown) {
      print_warning(problem.where + (problem.where.empty() ? "" : ": ") + problem.what);
    }
  }
  if (left_out > 0) {
    print_warning(fmt::format(
        "{}: {} of its pictures or boxes cannot be used: anchors are of the others{}",
        data,
        left_out,
        left_out > kShown ? fmt::format(" (`tessera check-data {}` lists them)", shell_word(data))
                          : ""));
  }
}

}  // namespace

void run_anchors(const AnchorsCommand& command) {
  const auto [rows, cols] = partitioner::parse_grid(command.size, "--size", partitioner::kPixels);
  const Dataset dataset =
      list_dataset(command.data,
                   Split::Train,
                   3,
                   {.kind = TargetKind::Boxes, .allow_unlabelled = command.allow_unlabelled});
  say_problems(dataset, command.data);
  const std::vector<BoxSides> sizes = box_sizes(dataset, rows, cols);
  const Index different = different_sizes(sizes);
  if (different < command.count) {
    throw InputError(command.data,
                     0,
                     fmt::format("boxes of {} different sizes for training: too few for {} anchors "
                                 "(`tessera check-data` says what is wrong with it)",
                                 different,
                                 command.count));
  }
  const std::vector<Anchor> anchors =
      anchors_as_written(cluster_anchors(sizes, command.count), command.stride);
  std::vector<Anchor> pixels = anchors;
  for (Anchor& anchor : pixels) {
    anchor.width *= static_cast<double>(command.stride);
    anchor.height *= static_cast<double>(command.stride);
  }
  const double mean_iou = mean_best_iou(sizes, pixels);
  if (command.json) {
    print_anchors_json(anchors, mean_iou, sizes.size());
    return;
  }
  fmt::print("anchors = {}\nnum = {}\n", anchors_text(anchors, command.stride), anchors.size());
  fmt::print(
      "mean IoU of {} boxes with the anchor most like each: {:.4f}\n", sizes.size(), mean_iou);
}

}  // namespace tessera::engine
