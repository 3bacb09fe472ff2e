// SimOTA (Ge et al. 2021, as YOLOX has it since its version 0.3.0): which cells of the heads of a
// detector without anchors are to become which objects of an image, decided by what all of these
// cells say. Only cells near an object's centre may get one, so no others are looked at.

#pragma once

#include <span>
#include <vector>

#include "engine/base/targets.h"
#include "engine/detection/boxes.h"
#include "engine/detection/head.h"

namespace tessera::engine {

// Pixels of the network's input from one cell of a [yolox] to the next.
struct CellSize {
  double x = 1;
  double y = 1;
};
[[nodiscard]] CellSize cell_size(const HeadSite& site);

// In pixels of the network's input.
struct CentredBox {
  double x = 0;  // of the centre
  double y = 0;
  double width = 0;
  double height = 0;
};

// Of two boxes; 0 where they do not meet. `added`: to the area of the union.
[[nodiscard]] double iou(const CentredBox& a, const CentredBox& b, double added = 0);

struct PixelObject {
  int label = 0;
  CentredBox box;
};

// Those of an image that count: the first so many of classes that the head has, and not ignored.
[[nodiscard]] std::vector<PixelObject> objects_to_assign(const HeadSite& site,
                                                         const std::vector<TargetBox>& boxes);

// Places of the cells in these rows and columns that are near an object's centre, row by row.
[[nodiscard]] std::vector<CellPlace> candidate_places(const HeadSite& site,
                                                      const std::vector<PixelObject>& objects,
                                                      const Range& rows,
                                                      const Range& cols);

// What a cell says, and where it lies. `values` are those of its channels.
struct Candidate {
  const HeadSite* site = nullptr;
  CellPlace at;
  std::span<const double> values;
};

// The box that a cell says.
[[nodiscard]] CentredBox said_box(const HeadSite& site,
                                  CellPlace at,
                                  std::span<const double> values);

// The number of the object that each candidate of an image gets, or kNoObject. `candidates` are in
// the order of heads and then of cells, which decides between equal costs; between objects of equal
// cost the first one does.
[[nodiscard]] std::vector<int> assign_objects(const std::vector<PixelObject>& objects,
                                              const std::vector<Candidate>& candidates);

}  // namespace tessera::engine
