#include "engine/detection/object_assignment.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "engine/detection/head_cells.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::kBoxValues;
using partitioner::kCandidateStrides;
using partitioner::YoloxHead;

namespace {

const YoloxHead& head_of(const HeadSite& site) {
  const auto* head = std::get_if<YoloxHead>(&site.head);
  expects(head != nullptr, "objects are assigned to cells of a [yolox]");
  return *head;
}

// Whether the middle of a cell is near enough to an object's centre, both in cells.
bool is_near(Index cell, double centre) {
  return std::abs(static_cast<double>(cell) + 0.5 - centre) < kCandidateStrides;
}

// The cells of `all` that are near it along one axis.
Range near_cells(double centre, const Range& all) {
  constexpr Index kReach = 2;
  constexpr double kFar = 1e15;
  Range cells;
  if (!(std::abs(centre) < kFar)) {
    return cells;
  }
  const auto middle = static_cast<Index>(std::floor(centre));
  const Range within = intersect(all, {middle - kReach, middle + kReach + 1});
  for (Index cell = within.begin; cell < within.end; ++cell) {
    if (is_near(cell, centre)) {
      cells = {cells.empty() ? cell : cells.begin, cell + 1};
    }
  }
  return cells;
}

// What it takes to make a cell an object, in the order in which cells are chosen. A cell that is
// not near the object comes after all that are.
struct Price {
  bool is_far = false;
  double cost = 0;
  friend bool operator<(const Price& a, const Price& b) {
    return std::tie(a.is_far, a.cost) < std::tie(b.is_far, b.cost);
  }
};

// What does not depend on the object.
struct Said {
  CentredBox box;
  std::vector<double> shares = {};  // by class: the root of its probability times objectness
  double absent = 0;                // the cost of all classes where none is there
};

double held_log(double value) {
  return std::max(std::log(value), -100.0);
}

Said said_of(const Candidate& candidate) {
  Said said{.box = said_box(*candidate.site, candidate.at, candidate.values)};
  const double objectness = logistic(candidate.values[static_cast<std::size_t>(kObjectness)]);
  for (const double value : candidate.values.subspan(static_cast<std::size_t>(kBoxValues))) {
    said.shares.push_back(std::sqrt(logistic(value) * objectness));
    said.absent -= held_log(1 - said.shares.back());
  }
  return said;
}

class Assigner {
 public:
  Assigner(const std::vector<PixelObject>& objects, const std::vector<Candidate>& candidates)
      : objects_(objects), candidates_(candidates) {
    for (const Candidate& candidate : candidates) {
      said_.push_back(said_of(candidate));
    }
    for (const PixelObject& object : objects) {
      std::vector<double>& ious = ious_.emplace_back();
      std::vector<Price>& prices = prices_.emplace_back();
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        ious.push_back(iou(object.box, said_[i].box));
        prices.push_back(price(object, i, ious.back()));
      }
    }
  }

  [[nodiscard]] std::vector<int> run() {
    std::vector<int> chosen(candidates_.size(), kNoObject);
    std::vector<bool> contested(candidates_.size());
    for (std::size_t object = 0; object < objects_.size(); ++object) {
      for (const std::size_t cell : cheapest(object)) {
        contested[cell] = chosen[cell] != kNoObject;
        chosen[cell] = chosen[cell] != kNoObject ? chosen[cell] : static_cast<int>(object);
      }
    }
    for (std::size_t cell = 0; cell < chosen.size(); ++cell) {
      if (contested[cell]) {
        chosen[cell] = best_object(cell);
      }
    }
    return chosen;
  }

 private:
  [[nodiscard]] Price price(const PixelObject& object, std::size_t i, double common) const {
    const Candidate& candidate = candidates_[i];
    const Said& said = said_[i];
    const double share = said.shares[static_cast<std::size_t>(object.label)];
    const double classes = said.absent + held_log(1 - share) - held_log(share);
    const double cost = classes - 3 * std::log(common + 1e-8);
    const auto [x, y] = cell_size(*candidate.site);
    return {!is_near(candidate.at.col, object.box.x / x) ||
                !is_near(candidate.at.row, object.box.y / y),
            std::isnan(cost) ? std::numeric_limits<double>::infinity() : cost};
  }

  // As many as the ten best boxes have in common with the object, one at least.
  [[nodiscard]] std::size_t count(std::size_t object) const {
    constexpr std::size_t kBest = 10;
    std::vector<double> ious = ious_[object];
    const std::size_t best = std::min(kBest, ious.size());
    std::partial_sort(ious.begin(),
                      ious.begin() + static_cast<std::ptrdiff_t>(best),
                      ious.end(),
                      std::greater<double>());
    double sum = 0;
    for (std::size_t i = 0; i < best; ++i) {
      sum += ious[i];
    }
    return std::clamp<std::size_t>(static_cast<std::size_t>(sum), 1, ious.size());
  }

  [[nodiscard]] std::vector<std::size_t> cheapest(std::size_t object) const {
    std::vector<std::size_t> cells(candidates_.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      cells[i] = i;
    }
    if (cells.empty()) {
      return cells;
    }
    const std::vector<Price>& prices = prices_[object];
    const auto chosen = cells.begin() + static_cast<std::ptrdiff_t>(count(object));
    std::partial_sort(cells.begin(), chosen, cells.end(), [&](std::size_t a, std::size_t b) {
      return prices[a] < prices[b] || (!(prices[b] < prices[a]) && a < b);
    });
    cells.erase(chosen, cells.end());
    return cells;
  }

  // Of all, also of those that have not chosen the cell.
  [[nodiscard]] int best_object(std::size_t cell) const {
    const auto best =
        std::min_element(prices_.begin(), prices_.end(), [cell](const auto& a, const auto& b) {
          return a[cell] < b[cell];
        });
    return static_cast<int>(best - prices_.begin());
  }

  const std::vector<PixelObject>& objects_;
  const std::vector<Candidate>& candidates_;
  std::vector<Said> said_;
  std::vector<std::vector<double>> ious_;   // by object, then candidate
  std::vector<std::vector<Price>> prices_;  // likewise
};

}  // namespace

CellSize cell_size(const HeadSite& site) {
  const double stride = head_of(site).stride;
  if (stride > 0) {
    return {stride, stride};
  }
  return {static_cast<double>(site.image.cols) / static_cast<double>(site.map.cols),
          static_cast<double>(site.image.rows) / static_cast<double>(site.map.rows)};
}

double iou(const CentredBox& a, const CentredBox& b, double added) {
  const double width = std::min(a.x + a.width / 2, b.x + b.width / 2) -
                       std::max(a.x - a.width / 2, b.x - b.width / 2);
  const double height = std::min(a.y + a.height / 2, b.y + b.height / 2) -
                        std::max(a.y - a.height / 2, b.y - b.height / 2);
  if (!(width > 0) || !(height > 0)) {
    return 0;
  }
  const double common = width * height;
  const double share = common / (a.width * a.height + b.width * b.height - common + added);
  return std::isnan(share) ? 0 : share;
}

std::vector<PixelObject> objects_to_assign(const HeadSite& site,
                                           const std::vector<TargetBox>& boxes) {
  const YoloxHead& head = head_of(site);
  const auto cols = static_cast<double>(site.image.cols);
  const auto rows = static_cast<double>(site.image.rows);
  std::vector<PixelObject> objects;
  for (const TargetBox& box : boxes) {
    if (std::ssize(objects) == head.most_boxes) {
      break;
    }
    if (!box.ignored && box.label >= 0 && box.label < head.classes) {
      objects.push_back(
          {box.label,
           {box.centre_x * cols, box.centre_y * rows, box.width * cols, box.height * rows}});
    }
  }
  return objects;
}

std::vector<CellPlace> candidate_places(const HeadSite& site,
                                        const std::vector<PixelObject>& objects,
                                        const Range& rows,
                                        const Range& cols) {
  const auto [x, y] = cell_size(site);
  std::vector<CellPlace> places;
  for (const PixelObject& object : objects) {
    const Range down = near_cells(object.box.y / y, rows);
    const Range across = near_cells(object.box.x / x, cols);
    for (Index row = down.begin; row < down.end; ++row) {
      for (Index col = across.begin; col < across.end; ++col) {
        places.push_back({row, col});
      }
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

CentredBox said_box(const HeadSite& site, CellPlace at, std::span<const double> values) {
  const auto [x, y] = cell_size(site);
  return {(static_cast<double>(at.col) + values[0]) * x,
          (static_cast<double>(at.row) + values[1]) * y,
          std::exp(values[2]) * x,
          std::exp(values[3]) * y};
}

std::vector<int> assign_objects(const std::vector<PixelObject>& objects,
                                const std::vector<Candidate>& candidates) {
  return Assigner(objects, candidates).run();
}

}  // namespace tessera::engine
