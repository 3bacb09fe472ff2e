#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/data/inspection/anchor_clusters.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/shell_word.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

namespace {

using partitioner::Anchor;

// As the model file will have it: whole pixels, or hundredths of a cell.
double as_written(double pixels, Index stride) {
  const double unit = stride == 1 ? 1 : static_cast<double>(stride) / 100;
  return std::max(unit, std::round(pixels / unit) * unit);
}

std::string written(const Anchor& anchor, Index stride) {
  const auto in_units = [stride](double pixels) {
    return fmt::format("{:.{}f}", pixels / static_cast<double>(stride), stride == 1 ? 0 : 2);
  };
  return in_units(anchor.width) + "," + in_units(anchor.height);
}

std::size_t different_sizes(const std::vector<BoxSides>& sizes) {
  std::set<std::tuple<double, double>> different;
  for (const BoxSides& size : sizes) {
    different.emplace(size.width, size.height);
  }
  return different.size();
}

void print_anchors_json(const std::vector<Anchor>& anchors,
                        Index stride,
                        double mean_iou,
                        std::size_t boxes) {
  nlohmann::ordered_json json{
      {"anchors", nlohmann::ordered_json::array()}, {"mean_iou", mean_iou}, {"boxes", boxes}};
  for (const Anchor& anchor : anchors) {
    const auto units = static_cast<double>(stride);
    json["anchors"].push_back({anchor.width / units, anchor.height / units});
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
  const std::size_t different = different_sizes(sizes);
  if (different < static_cast<std::size_t>(command.count)) {
    throw InputError(command.data,
                     0,
                     fmt::format("boxes of {} different sizes for training: too few for {} anchors "
                                 "(`tessera check-data` says what is wrong with it)",
                                 different,
                                 command.count));
  }
  std::vector<Anchor> anchors = cluster_anchors(sizes, command.count);
  for (Anchor& anchor : anchors) {
    anchor = {as_written(anchor.width, command.stride), as_written(anchor.height, command.stride)};
  }
  const double mean_iou = mean_best_iou(sizes, anchors);
  if (command.json) {
    print_anchors_json(anchors, command.stride, mean_iou, sizes.size());
    return;
  }
  std::string text;
  for (const Anchor& anchor : anchors) {
    text += (text.empty() ? "" : ",  ") + written(anchor, command.stride);
  }
  fmt::print("anchors = {}\nnum = {}\n", text, anchors.size());
  fmt::print(
      "mean IoU of {} boxes with the anchor most like each: {:.4f}\n", sizes.size(), mean_iou);
}

}  // namespace tessera::engine
