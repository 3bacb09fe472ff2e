// The values and the deltas of some cells of one image of a head, while they are looked at. Only
// files of this folder include this.

#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/targets.h"
#include "engine/detection/boxes.h"
#include "engine/detection/head.h"

namespace tessera::engine {

using Place = CellPlace;

class HeadCells {
 public:
  // (C, H, W) of the region's cells.
  HeadCells(const Region& region, std::vector<double> values)
      : region_(region), values_(std::move(values)), deltas_(values_.size()) {}

  [[nodiscard]] const Region& region() const { return region_; }
  [[nodiscard]] double value(Index channel, Place at) const { return values_[index(channel, at)]; }
  [[nodiscard]] double& delta(Index channel, Place at) { return deltas_[index(channel, at)]; }
  [[nodiscard]] bool holds(Place at) const {
    return at.row >= region_.rows.begin && at.row < region_.rows.end &&
           at.col >= region_.cols.begin && at.col < region_.cols.end;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (Index row = region_.rows.begin; row < region_.rows.end; ++row) {
      for (Index col = region_.cols.begin; col < region_.cols.end; ++col) {
        visit(Place{row, col});
      }
    }
  }
  [[nodiscard]] const std::vector<double>& deltas() const { return deltas_; }
  [[nodiscard]] std::vector<double> take_deltas() && { return std::move(deltas_); }

 private:
  [[nodiscard]] std::size_t index(Index channel, Place at) const {
    const Index cells = region_.rows.size() * region_.cols.size();
    return static_cast<std::size_t>(channel * cells +
                                    (at.row - region_.rows.begin) * region_.cols.size() + at.col -
                                    region_.cols.begin);
  }

  Region region_;
  std::vector<double> values_;
  std::vector<double> deltas_;
};

[[nodiscard]] inline UnitBox unit_box(const Box& box) {
  return {box.centre_x, box.centre_y, box.width, box.height};
}

// Where objectness stands among the values of a box of a `yolo` or a `region`.
inline constexpr Index kObjectness = partitioner::kObjectnessChannel;

[[nodiscard]] inline double logistic(double value) {
  return 1 / (1 + std::exp(-value));
}

// The box of an anchor that a cell says, from its activated x, y, width and height.
struct SaidBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};
[[nodiscard]] UnitBox box_of_anchor(const partitioner::YoloHead& head,
                                    const HeadSite& site,
                                    const partitioner::Anchor& anchor,
                                    Place at,
                                    const SaidBox& said);
[[nodiscard]] UnitBox box_of_anchor(const partitioner::RegionHead& head,
                                    const HeadSite& site,
                                    const partitioner::Anchor& anchor,
                                    Place at,
                                    const SaidBox& said);

// Where the values of a GridHead stand in its vector.
struct GridChannels {
  const partitioner::GridHead& head;
  static constexpr Index kCoordinates = 4;

  [[nodiscard]] Index cells() const { return head.side * head.side; }
  [[nodiscard]] Index classes(Index cell) const { return cell * head.classes; }
  [[nodiscard]] Index objectness(Index cell, Index box) const {
    return cells() * head.classes + cell * head.boxes + box;
  }
  [[nodiscard]] Index coordinates(Index cell, Index box) const {
    return cells() * (head.classes + head.boxes) + (cell * head.boxes + box) * kCoordinates;
  }
  // Of a box, from what is said of its width or height.
  [[nodiscard]] double size(double said) const { return head.square_roots ? said * said : said; }
};

// The cell of `map` that the centre lies in. On the right or the lower border: the last one.
[[nodiscard]] Place cell_of(const Box& box, const partitioner::MapShape& map);

// One function for each kind: sets all deltas, and adds to the cost what is not a square of theirs.
void judge(const partitioner::YoloHead& head,
           const HeadSite& site,
           const std::vector<Box>& objects,
           HeadCells& cells,
           HeadCost& cost);
void judge(const partitioner::RegionHead& head,
           const HeadSite& site,
           const std::vector<Box>& objects,
           Index images_seen,
           HeadCells& cells);
void judge(const partitioner::GridHead& head, const std::vector<Box>& objects, HeadCells& cells);
void judge(const partitioner::YoloxHead& head,
           const HeadSite& site,
           const JudgedBatch& batch,
           HeadCells& cells,
           HeadCost& cost);

// What each kind makes of a cell's values, in place; by channel.
void activate(const partitioner::YoloHead& head, std::vector<double>& values);
void activate(const partitioner::RegionHead& head, std::vector<double>& values);
void activate(const partitioner::GridHead& head, std::vector<double>& values);
inline void activate(const partitioner::YoloxHead& /*head*/, std::vector<double>& /*values*/) {}

// The other way: the gradient of a cell's outputs becomes that of its inputs. `values` are the
// outputs.
void activate_backward(const partitioner::YoloHead& head,
                       const std::vector<double>& values,
                       std::vector<double>& gradient);
void activate_backward(const partitioner::RegionHead& head,
                       const std::vector<double>& values,
                       std::vector<double>& gradient);
void activate_backward(const partitioner::GridHead& head,
                       const std::vector<double>& values,
                       std::vector<double>& gradient);
inline void activate_backward(const partitioner::YoloxHead& /*head*/,
                              const std::vector<double>& /*values*/,
                              std::vector<double>& /*gradient*/) {}

// The gradient of the outputs of a softmax over `count` values becomes that of its inputs.
void softmax_gradient_in_place(const double* values, double* gradient, Index count);

}  // namespace tessera::engine
