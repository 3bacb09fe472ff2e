#include "engine/detection/detections.h"

#include <algorithm>

#include "engine/detection/head_cells.h"
#include "engine/detection/object_assignment.h"

namespace tessera::engine {

namespace {

using partitioner::Anchor;
using partitioner::GridHead;
using partitioner::kBoxValues;
using partitioner::RegionHead;
using partitioner::Suppression;
using partitioner::YoloHead;
using partitioner::YoloxHead;

// The outputs of one image of a head.
struct HeadOutput {
  const HeadSite& site;
  std::span<const float> values;

  [[nodiscard]] double at(Index channel, Index row, Index col) const {
    const partitioner::MapShape& map = site.map;
    return static_cast<double>(
        values[static_cast<std::size_t>((channel * map.rows + row) * map.cols + col)]);
  }
};

// Adds a box for each class that reaches the score.
template <class ClassShare>
void add_classes(const UnitBox& box,
                 double objectness,
                 Index classes,
                 double least_score,
                 ClassShare share,
                 std::vector<Detection>& found) {
  for (Index label = 0; label < classes; ++label) {
    const double score = objectness * share(label);
    if (score >= least_score) {
      found.push_back({box, static_cast<int>(label), score});
    }
  }
}

// Of heads whose channels are values of the boxes of a cell.
template <class Head>
void add_cells(const Head& head,
               const HeadOutput& output,
               const std::vector<Anchor>& anchors,
               double least_score,
               std::vector<Detection>& found) {
  const partitioner::MapShape& map = output.site.map;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    const Index first = static_cast<Index>(i) * (kBoxValues + head.classes);
    for (Place at; at.row < map.rows; ++at.row) {
      for (at.col = 0; at.col < map.cols; ++at.col) {
        const auto value = [&](Index entry) { return output.at(first + entry, at.row, at.col); };
        const double objectness = value(kObjectness);
        if (!(objectness >= least_score)) {
          continue;
        }
        add_classes(
            box_of_anchor(
                head, output.site, anchors[i], at, {value(0), value(1), value(2), value(3)}),
            objectness,
            head.classes,
            least_score,
            [&](Index label) { return value(kBoxValues + label); },
            found);
      }
    }
  }
}

void add_boxes(const YoloHead& head,
               const HeadOutput& output,
               double least_score,
               std::vector<Detection>& found) {
  std::vector<Anchor> anchors;
  for (const int anchor : head.mask) {
    anchors.push_back(head.anchors[static_cast<std::size_t>(anchor)]);
  }
  add_cells(head, output, anchors, least_score, found);
}

void add_boxes(const RegionHead& head,
               const HeadOutput& output,
               double least_score,
               std::vector<Detection>& found) {
  add_cells(head, output, head.anchors, least_score, found);
}

void add_boxes(const GridHead& head,
               const HeadOutput& output,
               double least_score,
               std::vector<Detection>& found) {
  const GridChannels channels{head};
  const auto side = static_cast<double>(head.side);
  const auto value = [&](Index channel) { return output.at(channel, 0, 0); };
  for (Index cell = 0; cell < channels.cells(); ++cell) {
    for (Index box = 0; box < head.boxes; ++box) {
      const double objectness = value(channels.objectness(cell, box));
      const Index first = channels.coordinates(cell, box);
      const UnitBox place{(static_cast<double>(cell % head.side) + value(first)) / side,
                          (static_cast<double>(cell / head.side) + value(first + 1)) / side,
                          channels.size(value(first + 2)),
                          channels.size(value(first + 3))};
      // Shares are of any size here, so a low objectness does not rule out a high score.
      add_classes(
          place,
          objectness,
          head.classes,
          least_score,
          [&](Index label) { return value(channels.classes(cell) + label); },
          found);
    }
  }
}

// The likeliest class alone, as in the original program.
void add_boxes(const YoloxHead& head,
               const HeadOutput& output,
               double least_score,
               std::vector<Detection>& found) {
  const HeadSite& site = output.site;
  const auto cols = static_cast<double>(site.image.cols);
  const auto rows = static_cast<double>(site.image.rows);
  std::vector<double> values(static_cast<std::size_t>(head_channels(head)));
  for (Place at; at.row < site.map.rows; ++at.row) {
    for (at.col = 0; at.col < site.map.cols; ++at.col) {
      for (std::size_t channel = 0; channel < values.size(); ++channel) {
        values[channel] = output.at(static_cast<Index>(channel), at.row, at.col);
      }
      const auto best = std::max_element(values.begin() + kBoxValues, values.end());
      const double score = logistic(values[kObjectness]) * logistic(*best);
      if (score >= least_score) {
        const CentredBox box = said_box(site, at, values);
        found.push_back({{box.x / cols, box.y / rows, box.width / cols, box.height / rows},
                         static_cast<int>(best - values.begin() - kBoxValues),
                         score});
      }
    }
  }
}

// The IoU that non-maximum suppression goes by: the head's rule.
double suppression_iou(const std::vector<HeadSite>& sites, const UnitBox& a, const UnitBox& b) {
  const auto* yolo = std::get_if<YoloHead>(&sites.front().head);
  if (yolo != nullptr && yolo->suppression == Suppression::Diou) {
    return diou(a, b, yolo->beta_nms);
  }
  return iou(a, b);
}

}  // namespace

void add_boxes_of_head(const HeadSite& site,
                       std::span<const float> output,
                       double least_score,
                       std::vector<Detection>& found) {
  std::visit(
      [&](const auto& head) {
        add_boxes(head, HeadOutput{site, output}, least_score, found);
      },
      site.head);
}

Index most_detections(const HeadSite& site) {
  const Index cells = site.map.rows * site.map.cols;
  if (const auto* yolo = std::get_if<YoloHead>(&site.head)) {
    return cells * static_cast<Index>(yolo->mask.size()) * yolo->classes;
  }
  if (const auto* region = std::get_if<RegionHead>(&site.head)) {
    return cells * static_cast<Index>(region->anchors.size()) * region->classes;
  }
  if (std::holds_alternative<YoloxHead>(site.head)) {
    return cells;
  }
  const auto& grid = std::get<GridHead>(site.head);
  return GridChannels{grid}.cells() * grid.boxes * grid.classes;
}

std::vector<Detection> detections(const std::vector<HeadSite>& sites,
                                  const std::vector<std::span<const float>>& outputs,
                                  const DetectionRules& rules) {
  std::vector<Detection> all;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    add_boxes_of_head(sites[i], outputs[i], rules.least_score, all);
  }
  std::stable_sort(all.begin(), all.end(), [](const Detection& a, const Detection& b) {
    return a.score > b.score;
  });
  std::vector<Detection> kept;
  for (const Detection& each : all) {
    const bool is_new = std::none_of(kept.begin(), kept.end(), [&](const Detection& other) {
      return other.label == each.label &&
             suppression_iou(sites, other.box, each.box) > rules.nms_threshold;
    });
    if (is_new && kept.size() < rules.most) {
      kept.push_back(each);
    }
  }
  return kept;
}

}  // namespace tessera::engine
