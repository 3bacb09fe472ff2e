// Which deltas are gradients, as they are sent back: of losses that are written down here cell by
// cell, by central differences. Assignments of objects to boxes are constants.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/pieces.h"
#include <doctest/doctest.h>

#include "engine/detection/boxes.h"
#include "engine/detection/head.h"
#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Box;
using engine::Tensor;
using engine::UnitBox;
using engine::View;

constexpr double kDifferenceStep = 1e-5;
constexpr double kSlopeBound = 1e-8;

using Loss = std::function<double(const std::vector<double>&)>;  // of the values before the head

double cross_entropy(double logit, double target) {
  const double said = 1 / (1 + std::exp(-logit));
  return -target * std::log(said) - (1 - target) * std::log(1 - said);
}

double half_square(double value) {
  return value * value / 2;
}

// Of logits that lie `step` apart.
double softmax_cross_entropy(const double* logits, Index count, Index step, Index label) {
  double sum = 0;
  for (Index i = 0; i < count; ++i) {
    sum += std::exp(logits[i * step]);
  }
  return std::log(sum) - logits[label * step];
}

// All that a head sends back to `values` before it for an image of one object, against a loss.
void check_deltas(const std::string& head,
                  Index channels,
                  const Box& object,
                  const Loss& loss,
                  Index images_seen) {
  const bool is_vector = head.find("[detection]") != std::string::npos;
  const partitioner::ModelFile model = partitioner::parse_model(
      "[net]\nchannels=3\nheight=64\nwidth=96\n[convolutional]\nsize=1\nactivation=linear\n" +
          (is_vector ? "filters=2\nstride=32\n[connected]\nactivation=linear\noutput=" +
                           std::to_string(channels) + "\n"
                     : "stride=32\nfilters=" + std::to_string(channels) + "\n") +
          head,
      "m.cfg");
  const int layer = model.network.size() - 1;
  const engine::HeadSite site = engine::head_site(model.network, layer);
  const Region map = partitioner::whole_map(model.network, layer, 1);
  const std::vector<double> values = tests::random_values(map.volume(), 3);
  Tensor<double> input(map);
  copy_in(values.data(), map, input.view());
  Tensor<double> output(map);
  head_forward<double>(site, input.view(), map, output.view());
  engine::HeadCost cost;
  const engine::Targets targets{engine::ImageTargets{.boxes = {engine::converted<double>(object)}}};
  const std::vector<double> deltas = engine::sent_back<double>(
      site,
      output.view(),
      map,
      engine::head_deltas<double>(site, output.view(), map, {targets, images_seen}, cost));
  REQUIRE(deltas.size() == values.size());
  std::vector<double> moved = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    moved[i] = values[i] + kDifferenceStep;
    const double above = loss(moved);
    moved[i] = values[i] - kDifferenceStep;
    const double below = loss(moved);
    moved[i] = values[i];
    CHECK(std::abs((above - below) / (2 * kDifferenceStep) + deltas[i]) <= kSlopeBound);
  }
}

constexpr Index kRows = 2;
constexpr Index kCols = 3;
constexpr Index kBoxes = 2;
constexpr Index kClasses = 3;
constexpr Index kBoxChannels = 5 + kClasses;

// In row 1 and column 2, and of the size of the second anchor below.
const Box kObject{1, 0.75F, 0.625F, 0.375F, 0.5F};

// Of a head whose channels are those of boxes, in (C, H, W) order.
struct BoxTerms {
  double object = 1;
  double no_object = 1;
  double coordinates = 1;
  double classes = 1;
  bool softmax = false;
  bool of_squares = false;  // objectness, x and y by squared errors, else by cross-entropies
  double anchor_width = 0;  // shares of the image
  double anchor_height = 0;

  [[nodiscard]] double logistic_loss(double logit, double target) const {
    return of_squares ? half_square(target - 1 / (1 + std::exp(-logit)))
                      : cross_entropy(logit, target);
  }
  [[nodiscard]] double operator()(const std::vector<double>& values) const {
    constexpr Index kCells = kRows * kCols;
    constexpr Index kCell = 1 * kCols + 2;
    const auto at = [&](Index box, Index entry, Index cell) {
      return values[static_cast<std::size_t>((box * kBoxChannels + entry) * kCells + cell)];
    };
    double sum = 0;
    for (Index box = 0; box < kBoxes; ++box) {
      for (Index cell = 0; cell < kCells; ++cell) {
        const bool matched = box == 1 && cell == kCell;
        sum += (matched ? object : no_object) * logistic_loss(at(box, 4, cell), matched ? 1 : 0);
      }
    }
    const double weight = coordinates * (2 - static_cast<double>(kObject.width) * kObject.height);
    sum += weight * logistic_loss(at(1, 0, kCell), kObject.centre_x * kCols - 2);
    sum += weight * logistic_loss(at(1, 1, kCell), kObject.centre_y * kRows - 1);
    sum += weight * half_square(std::log(kObject.width / anchor_width) - at(1, 2, kCell));
    sum += weight * half_square(std::log(kObject.height / anchor_height) - at(1, 3, kCell));
    if (softmax) {
      const double* first = values.data() + (kBoxChannels + 5) * kCells + kCell;
      return sum + classes * softmax_cross_entropy(first, kClasses, kCells, kObject.label);
    }
    for (Index label = 0; label < kClasses; ++label) {
      sum += classes * cross_entropy(at(1, 5 + label, kCell), label == kObject.label ? 1 : 0);
    }
    return sum;
  }
};

}  // namespace

TEST_CASE("deltas of a yolo head are slopes of cross-entropies and of squared errors") {
  check_deltas(
      "[yolo]\nmask=1,2\nnum=3\nanchors=200,9, 7,8, 30,36\nclasses=3\nignore_thresh=1\n"
      "iou_normalizer=0.5\n",
      kBoxes * kBoxChannels,
      kObject,
      BoxTerms{.coordinates = 0.5, .anchor_width = 30.0 / 96, .anchor_height = 36.0 / 64},
      1);
}

TEST_CASE("what a region head sends back are slopes of squared errors, and of classes' entropies") {
  for (const bool softmax : {false, true}) {
    check_deltas(
        std::string("[region]\nnum=2\nanchors=0.3,0.2, 1,0.9\nclasses=3\nbias_match=1\n") +
            "thresh=1\nobject_scale=5\nnoobject_scale=0.5\ncoord_scale=2\nclass_scale=3\n" +
            (softmax ? "softmax=1\n" : ""),
        kBoxes * kBoxChannels,
        kObject,
        BoxTerms{.object = 5,
                 .no_object = 0.5,
                 .coordinates = 2,
                 .classes = 3,
                 .softmax = softmax,
                 .of_squares = true,
                 .anchor_width = 1.0 / 3,
                 .anchor_height = 0.9 / 2},
        partitioner::kAnchorWarmUpImages);
  }
}

TEST_CASE("deltas of a grid head are slopes of squared errors, and of a cross-entropy of softmax") {
  constexpr Index kGrid = 2;
  constexpr Index kCell = 1 * kGrid + 1;
  constexpr Index kAll = kGrid * kGrid;
  for (const bool softmax : {false, true}) {
    const auto loss = [&](const std::vector<double>& values) {
      const double* objectness = values.data() + kAll * kClasses;
      const double* box = objectness + kAll + 4 * kCell;
      double sum = 0;
      for (Index cell = 0; cell < kAll; ++cell) {
        sum += cell == kCell ? 3 * half_square(1 - objectness[cell])
                             : 0.5 * half_square(objectness[cell]);
      }
      sum += 5 * half_square(kObject.centre_x * kGrid - 1 - box[0]);
      sum += 5 * half_square(kObject.centre_y * kGrid - 1 - box[1]);
      sum += 5 * half_square(std::sqrt(double{kObject.width}) - box[2]);
      sum += 5 * half_square(std::sqrt(double{kObject.height}) - box[3]);
      const double* classes = values.data() + kCell * kClasses;
      if (softmax) {
        return sum + 2 * softmax_cross_entropy(classes, kClasses, 1, kObject.label);
      }
      for (Index label = 0; label < kClasses; ++label) {
        sum += 2 * half_square((label == kObject.label ? 1 : 0) - classes[label]);
      }
      return sum;
    };
    check_deltas(std::string("[detection]\nside=2\nnum=1\ncoords=4\nclasses=3\nsqrt=1\nrescore="
                             "0\nobject_scale=3\n") +
                     "noobject_scale=0.5\nclass_scale=2\ncoord_scale=5\n" +
                     (softmax ? "softmax=1\n" : ""),
                 kAll * (kClasses + 5),
                 kObject,
                 loss,
                 1);
  }
}

TEST_CASE(
    "what overlaps send back is their slope for x and y, and twice that for width and height") {
  const UnitBox truth{0.5, 0.5, 0.3, 0.4};
  for (const auto kind : {partitioner::BoxLoss::Iou, partitioner::BoxLoss::Giou}) {
    for (const UnitBox& box : {UnitBox{0.55, 0.42, 0.35, 0.3}, UnitBox{0.4, 0.6, 0.2, 0.5}}) {
      const UnitBox moves = engine::darknet_iou_delta(kind, box, truth);
      const auto slope = [&](double UnitBox::*member) {
        UnitBox above = box;
        UnitBox below = box;
        above.*member += kDifferenceStep;
        below.*member -= kDifferenceStep;
        return (engine::iou_of_kind(kind, above, truth) - engine::iou_of_kind(kind, below, truth)) /
               (2 * kDifferenceStep);
      };
      CHECK(moves.x == doctest::Approx(slope(&UnitBox::x)).epsilon(1e-6));
      CHECK(moves.y == doctest::Approx(slope(&UnitBox::y)).epsilon(1e-6));
      CHECK(moves.width == doctest::Approx(2 * slope(&UnitBox::width)).epsilon(1e-6));
      CHECK(moves.height == doctest::Approx(2 * slope(&UnitBox::height)).epsilon(1e-6));
    }
  }
}
