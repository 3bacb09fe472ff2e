#include "engine/detection/head.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/detection/head_cells.h"
#include "engine/ops/activation/softmax.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

DetectorHead head_of(const partitioner::Operation& operation) {
  if (const auto* yolo = std::get_if<partitioner::YoloHead>(&operation)) {
    return *yolo;
  }
  if (const auto* region = std::get_if<partitioner::RegionHead>(&operation)) {
    return *region;
  }
  if (const auto* yolox = std::get_if<partitioner::YoloxHead>(&operation)) {
    return *yolox;
  }
  const auto* grid = std::get_if<partitioner::GridHead>(&operation);
  expects(grid != nullptr, "the layer is a head");
  return *grid;
}

HeadSite head_site(const partitioner::Network& network, int layer) {
  return {head_of(network.layer(layer).operation), network.shape(layer), network.image};
}

Place cell_of(const Box& box, const partitioner::MapShape& map) {
  const auto cell = [](float centre, Index cells) {
    return std::clamp<Index>(static_cast<Index>(centre * static_cast<float>(cells)), 0, cells - 1);
  };
  return {cell(box.centre_y, map.rows), cell(box.centre_x, map.cols)};
}

void softmax_gradient_in_place(const double* values, double* gradient, Index count) {
  std::vector<double> back(static_cast<std::size_t>(count));
  softmax_backward({count}, values, static_cast<const double*>(gradient), back.data());
  std::copy(back.begin(), back.end(), gradient);
}

UnitBox box_of_anchor(const partitioner::YoloHead& head,
                      const HeadSite& site,
                      const partitioner::Anchor& anchor,
                      Place at,
                      const SaidBox& said) {
  const auto factor = [&](double size) {
    return head.new_coords ? 4 * size * size : std::exp(size);
  };
  return {(static_cast<double>(at.col) + said.x) / static_cast<double>(site.map.cols),
          (static_cast<double>(at.row) + said.y) / static_cast<double>(site.map.rows),
          factor(said.width) * anchor.width / static_cast<double>(site.image.cols),
          factor(said.height) * anchor.height / static_cast<double>(site.image.rows)};
}

UnitBox box_of_anchor(const partitioner::RegionHead& /*head*/,
                      const HeadSite& site,
                      const partitioner::Anchor& anchor,
                      Place at,
                      const SaidBox& said) {
  const auto cols = static_cast<double>(site.map.cols);
  const auto rows = static_cast<double>(site.map.rows);
  return {(static_cast<double>(at.col) + said.x) / cols,
          (static_cast<double>(at.row) + said.y) / rows,
          std::exp(said.width) * (anchor.width / cols),
          std::exp(said.height) * (anchor.height / rows)};
}

namespace {

template <class T>
std::vector<double> values_of(View<const T> from, const Region& region) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(region.volume()));
  for (Index c = region.channels.begin; c < region.channels.end; ++c) {
    for (Index row = region.rows.begin; row < region.rows.end; ++row) {
      for (Index col = region.cols.begin; col < region.cols.end; ++col) {
        values.push_back(static_cast<double>(from.at(region.images.begin, c, row, col)));
      }
    }
  }
  return values;
}

bool learns_iou(const DetectorHead& head) {
  const auto* yolo = std::get_if<partitioner::YoloHead>(&head);
  return yolo != nullptr && yolo->box_loss != partitioner::BoxLoss::SquaredError;
}

// Of the deltas that count, see HeadCost.
double cost_squares(const HeadSite& site, const HeadCells& cells) {
  const bool by_iou = learns_iou(site.head);
  const Index cell_count = cells.region().rows.size() * cells.region().cols.size();
  const auto* yolo = std::get_if<partitioner::YoloHead>(&site.head);
  const Index values = yolo == nullptr ? 1 : partitioner::kBoxValues + yolo->classes;
  double sum = 0;
  for (Index c = 0; c < cells.region().channels.size(); ++c) {
    if (by_iou && c % values < kObjectness) {
      continue;
    }
    const auto channel = cells.deltas().begin() + c * cell_count;
    sum = std::inner_product(channel, channel + cell_count, channel, sum);
  }
  return by_iou ? sum * yolo->object_normalizer : sum;
}

// In single precision, which Darknet has them in.
std::vector<Box> learnt_objects(const ImageTargets& targets) {
  std::vector<Box> objects;
  for (const TargetBox& box : targets.boxes) {
    if (!box.ignored) {
      objects.push_back(converted<float>(box));
    }
  }
  return objects;
}

// Calls visit(n, row, col) for each cell of a region.
template <class Visit>
void for_each_cell_of(const Region& region, Visit visit) {
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index row = region.rows.begin; row < region.rows.end; ++row) {
      for (Index col = region.cols.begin; col < region.cols.end; ++col) {
        visit(n, row, col);
      }
    }
  }
}

// All channels of a cell.
template <class T>
void read_channels(View<const T> from, Index n, Index row, Index col, std::vector<double>& values) {
  for (std::size_t c = 0; c < values.size(); ++c) {
    values[c] = static_cast<double>(from.at(n, static_cast<Index>(c), row, col));
  }
}

}  // namespace

template <class T>
void head_forward(const HeadSite& site, View<const T> input, const Region& region, View<T> output) {
  std::vector<double> values(static_cast<std::size_t>(region.channels.size()));
  for_each_cell_of(region, [&](Index n, Index row, Index col) {
    read_channels(input, n, row, col, values);
    std::visit([&](const auto& head) { activate(head, values); }, site.head);
    for (std::size_t c = 0; c < values.size(); ++c) {
      output.at(n, static_cast<Index>(c), row, col) = static_cast<T>(values[c]);
    }
  });
}

template <class T>
void head_backward(const HeadSite& site,
                   View<const T> output,
                   View<const T> output_gradient,
                   const Region& region,
                   View<T> input_gradient) {
  std::vector<double> values(static_cast<std::size_t>(region.channels.size()));
  std::vector<double> gradient(values.size());
  for_each_cell_of(region, [&](Index n, Index row, Index col) {
    read_channels(output, n, row, col, values);
    read_channels(output_gradient, n, row, col, gradient);
    std::visit([&](const auto& head) { activate_backward(head, values, gradient); }, site.head);
    for (std::size_t c = 0; c < values.size(); ++c) {
      input_gradient.at(n, static_cast<Index>(c), row, col) += static_cast<T>(gradient[c]);
    }
  });
}

template <class T>
std::vector<double> head_deltas(const HeadSite& site,
                                View<const T> output,
                                const Region& region,
                                const JudgedBatch& batch,
                                HeadCost& cost) {
  HeadCells cells(region, values_of(output, region));
  if (const auto* yolox = std::get_if<partitioner::YoloxHead>(&site.head)) {
    judge(*yolox, site, batch, cells, cost);
    return std::move(cells).take_deltas();
  }
  const std::vector<Box> objects =
      learnt_objects(*batch.targets[static_cast<std::size_t>(region.images.begin)]);
  if (const auto* yolo = std::get_if<partitioner::YoloHead>(&site.head)) {
    judge(*yolo, site, objects, cells, cost);
  } else if (const auto* regions = std::get_if<partitioner::RegionHead>(&site.head)) {
    judge(*regions, site, objects, batch.images_seen, cells);
  } else {
    judge(std::get<partitioner::GridHead>(site.head), objects, cells);
  }
  cost.squares += cost_squares(site, cells);
  return std::move(cells).take_deltas();
}

template <class T>
std::vector<double> sent_back(const HeadSite& site,
                              View<const T> output,
                              const Region& region,
                              std::vector<double> deltas) {
  const auto* head = std::get_if<partitioner::RegionHead>(&site.head);
  if (head == nullptr) {
    return deltas;
  }
  const std::vector<double> values = values_of(output, region);
  const std::size_t cells = deltas.size() / static_cast<std::size_t>(region.channels.size());
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const Index entry = static_cast<Index>(i / cells) % (partitioner::kBoxValues + head->classes);
    if (entry < 2 || entry == kObjectness) {
      deltas[i] *= values[i] * (1 - values[i]);
    }
  }
  return deltas;
}

template void head_forward(const HeadSite&, View<const float>, const Region&, View<float>);
template void head_forward(const HeadSite&, View<const double>, const Region&, View<double>);
template void head_backward(
    const HeadSite&, View<const float>, View<const float>, const Region&, View<float>);
template void head_backward(
    const HeadSite&, View<const double>, View<const double>, const Region&, View<double>);
template std::vector<double> head_deltas(
    const HeadSite&, View<const float>, const Region&, const JudgedBatch&, HeadCost&);
template std::vector<double> head_deltas(
    const HeadSite&, View<const double>, const Region&, const JudgedBatch&, HeadCost&);
template std::vector<double> sent_back(const HeadSite&,
                                       View<const float>,
                                       const Region&,
                                       std::vector<double>);
template std::vector<double> sent_back(const HeadSite&,
                                       View<const double>,
                                       const Region&,
                                       std::vector<double>);

}  // namespace tessera::engine
