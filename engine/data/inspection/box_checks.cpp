#include "engine/data/inspection/box_checks.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <variant>

#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// Boxes of some kind, among all boxes or all pictures.
struct BoxCount {
  Index all = 0;
  Index found = 0;
  std::string first;  // where the first was found

  // `share` of all of them: 5 is a fifth.
  [[nodiscard]] bool is_one_of(Index share) const { return found > 0 && found * share >= all; }
};

// Counts the boxes of a half for which `is_one` holds.
template <class IsOne>
void count_boxes(const InspectedHalf& half, BoxCount& count, IsOne is_one) {
  for (Index item = 0; item < half.dataset.size(); ++item) {
    for (const Box& box : half.dataset.boxes(item)) {
      ++count.all;
      if (is_one(box) && count.found++ == 0) {
        count.first = half.dataset.name(item);
      }
    }
  }
}

template <class IsOne>
BoxCount count_boxes(const InspectedData& data, IsOne is_one) {
  BoxCount count;
  for (const InspectedHalf* half : data.halves()) {
    count_boxes(*half, count, is_one);
  }
  return count;
}

// By more than labelling is inexact.
bool reaches_out(const Box& box) {
  constexpr float kLeast = 0.01F;  // of the picture
  constexpr float kShare = 0.1F;   // of the box
  const auto is_out = [&](float centre, float extent) {
    const float beyond = std::max(extent / 2 - centre, centre + extent / 2 - 1);
    return beyond > std::max(kLeast, kShare * extent);
  };
  return is_out(box.centre_x, box.width) || is_out(box.centre_y, box.height);
}

bool has_no_extent(const Box& box) {
  constexpr float kLeast = 0.001F;  // what is left of a box counts from there on in training
  return std::min(box.width, box.height) < kLeast;
}

void add_doubtful_boxes(const InspectedData& data, std::vector<DataProblem>& problems) {
  constexpr Index kFew = 5;
  const BoxCount out = count_boxes(data, reaches_out);
  if (out.is_one_of(kFew)) {
    problems.push_back(
        {DataFault::DoubtfulBox,
         out.first,
         fmt::format("{} of {} reach out of their picture by more than a tenth of their size, here "
                     "first: label texts have the centre, width and height of a box, COCO the left "
                     "upper corner, width and height, VOC two corners",
                     out.found,
                     counted(out.all, "object"))});
  }
  const BoxCount thin = count_boxes(data, has_no_extent);
  if (thin.found > 0) {
    problems.push_back(
        {DataFault::DoubtfulBox,
         thin.first,
         fmt::format("{} of {} are narrower or lower than a thousandth of their picture, here "
                     "first: nothing is learnt of such a box",
                     thin.found,
                     counted(thin.all, "object"))});
  }
}

bool has_objects(const std::vector<Index>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](Index size) { return size > 0; });
}

void add_lacking_objects(const InspectedData& data, std::vector<DataProblem>& problems) {
  if (data.testing && data.testing->dataset.size() > 0 &&
      !has_objects(class_sizes(data.testing->dataset))) {
    problems.push_back({DataFault::NoObjects,
                        data.path,
                        fmt::format("there is no object on the {} to test with: no average "
                                    "precision, and the least loss is the best",
                                    counted(data.testing->dataset.size(), "picture"))});
  }
  if (!data.training || data.training->dataset.size() == 0) {
    return;
  }
  const std::vector<Index> sizes = class_sizes(data.training->dataset);
  if (!has_objects(sizes)) {
    problems.push_back({DataFault::Unusable,
                        data.path,
                        fmt::format("there is no object on the {} to train on: expected boxes; an "
                                    "export may have failed",
                                    counted(data.training->dataset.size(), "picture"))});
    return;
  }
  const auto without = std::count(sizes.begin(), sizes.end(), 0);
  if (without > 0) {
    const auto first = std::find(sizes.begin(), sizes.end(), 0) - sizes.begin();
    const std::string& name = data.training->dataset.class_names()[static_cast<std::size_t>(first)];
    problems.push_back({DataFault::NoObjects,
                        data.path,
                        fmt::format("{} of {} classes have no object to train on: {}{}",
                                    without,
                                    sizes.size(),
                                    printable_start(name),
                                    without > 1 ? " first" : "")});
  }
}

// The most objects of a picture that all heads of a network take, and have boxes for together.
Index most_objects(const partitioner::Network& network) {
  Index most = std::numeric_limits<Index>::max();
  Index boxes = 0;
  for (const partitioner::LayerSpec& layer : network.layers) {
    const Index cells = layer.output.rows * layer.output.cols;
    if (const auto* yolo = std::get_if<partitioner::YoloHead>(&layer.operation)) {
      most = std::min(most, yolo->most_boxes);
      boxes += cells * std::ssize(yolo->mask);
    } else if (const auto* yolox = std::get_if<partitioner::YoloxHead>(&layer.operation)) {
      most = std::min(most, yolox->most_boxes);
      boxes += cells;
    } else if (const auto* region = std::get_if<partitioner::RegionHead>(&layer.operation)) {
      most = std::min(most, region->most_boxes);
      boxes += cells * std::ssize(region->anchors);
    } else if (const auto* grid = std::get_if<partitioner::GridHead>(&layer.operation)) {
      boxes += grid->side * grid->side;  // one for each cell
    }
  }
  return std::min(most, boxes);
}

void add_crowded_pictures(const InspectedHalf& half,
                          Index most,
                          std::vector<DataProblem>& problems) {
  Index crowded = 0;
  Index largest = 0;
  std::string first;
  for (Index item = 0; item < half.dataset.size(); ++item) {
    const Index objects = std::ssize(half.dataset.boxes(item));
    largest = std::max(largest, objects);
    if (objects > most && crowded++ == 0) {
      first = half.dataset.name(item);
    }
  }
  if (crowded > 0) {
    problems.push_back(
        {DataFault::DoubtfulBox,
         first,
         fmt::format("{} to train on, this one first, {} more objects than the {} that the model "
                     "takes of one (max, and the boxes of its cells), up to {}: the others are not "
                     "learnt",
                     counted(crowded, "picture"),
                     crowded == 1 ? "has" : "have",
                     most,
                     largest)});
  }
}

void add_tiny_objects(const InspectedHalf& half,
                      const partitioner::MapShape& input,
                      std::vector<DataProblem>& problems) {
  constexpr float kFewPixels = 3;
  constexpr Index kMany = 4;
  BoxCount tiny;
  count_boxes(half, tiny, [&](const Box& box) {
    return std::min(box.width * static_cast<float>(input.cols),
                    box.height * static_cast<float>(input.rows)) < kFewPixels;
  });
  if (tiny.is_one_of(kMany)) {
    problems.push_back(
        {DataFault::DoubtfulBox,
         tiny.first,
         fmt::format("{} of {} to train on are narrower or lower than {} pixels of the "
                     "model's input of {} x {}, here first: take a larger input, or "
                     "parts of the pictures",
                     tiny.found,
                     counted(tiny.all, "object"),
                     kFewPixels,
                     input.cols,
                     input.rows)});
  }
}

bool have_boxes(const InspectedData& data) {
  return !data.halves().empty() && data.halves().front()->dataset.has_boxes();
}

}  // namespace

std::vector<DataProblem> box_problems(const InspectedData& data) {
  std::vector<DataProblem> problems;
  if (have_boxes(data)) {
    add_doubtful_boxes(data, problems);
    add_lacking_objects(data, problems);
  }
  return problems;
}

std::vector<DataProblem> box_problems(const InspectedData& data,
                                      const partitioner::Network& network) {
  std::vector<DataProblem> problems;
  if (have_boxes(data) && data.training) {
    add_crowded_pictures(*data.training, most_objects(network), problems);
    add_tiny_objects(*data.training, network.image, problems);
  }
  return problems;
}

}  // namespace tessera::engine
