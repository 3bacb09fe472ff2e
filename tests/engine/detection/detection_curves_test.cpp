#include "engine/detection/detection_curves.h"

#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::CurvesOfClasses;
using engine::FoundBox;
using engine::PixelBox;
using engine::TrueBox;

PixelBox place(int number) {
  return {100.0 * number, 0, 20, 20};
}

double at(const std::vector<double>& curve, int percent) {
  return curve[static_cast<std::size_t>(percent)];
}

// Of class 0, four objects: right at .9, wrong at .8, right at .6, wrong at .5, right at .2; the
// fourth is not found. Of class 1 one object, found at .7. Class 2 has a box and no object.
CurvesOfClasses curves() {
  std::vector<TrueBox> truth;
  for (int i = 0; i < 4; ++i) {
    truth.push_back({0, 0, place(i), 400});
  }
  truth.push_back({0, 1, place(9), 400});
  const std::vector<FoundBox> found{{0, 0, place(0), 0.9},
                                    {0, 0, place(6), 0.8},
                                    {0, 0, place(1), 0.6},
                                    {0, 0, place(7), 0.5},
                                    {0, 0, place(2), 0.2},
                                    {0, 1, place(9), 0.7},
                                    {0, 2, place(3), 0.9}};
  return detection_curves(judge_boxes(truth, found, 3));
}

}  // namespace

TEST_CASE("precision at a recall is the best that any score of that recall or more gives") {
  const CurvesOfClasses all = curves();
  REQUIRE(all.classes[0]);
  const std::vector<double>& precision = all.classes[0]->precision;
  REQUIRE(precision.size() == 101);
  CHECK(at(precision, 0) == doctest::Approx(1));
  CHECK(at(precision, 25) == doctest::Approx(1));
  CHECK(at(precision, 26) == doctest::Approx(2.0 / 3));
  CHECK(at(precision, 50) == doctest::Approx(2.0 / 3));
  CHECK(at(precision, 51) == doctest::Approx(3.0 / 5));
  CHECK(at(precision, 75) == doctest::Approx(3.0 / 5));
  CHECK(at(precision, 76) == 0);
  CHECK(at(all.classes[1]->precision, 100) == doctest::Approx(1));
}

TEST_CASE("F1 at a score is that of the boxes of that score or more") {
  const CurvesOfClasses all = curves();
  const std::vector<double>& f1 = all.classes[0]->f1;
  CHECK(at(f1, 0) == doctest::Approx(6.0 / 9));  // 2 TP / (boxes + objects)
  CHECK(at(f1, 20) == doctest::Approx(6.0 / 9));
  CHECK(at(f1, 21) == doctest::Approx(4.0 / 8));
  CHECK(at(f1, 50) == doctest::Approx(4.0 / 8));
  CHECK(at(f1, 51) == doctest::Approx(4.0 / 7));
  CHECK(at(f1, 60) == doctest::Approx(4.0 / 7));
  CHECK(at(f1, 61) == doctest::Approx(2.0 / 6));
  CHECK(at(f1, 90) == doctest::Approx(2.0 / 5));
  CHECK(at(f1, 91) == 0);
}

TEST_CASE("means are those of classes that have objects") {
  const CurvesOfClasses all = curves();
  CHECK(!all.classes[2]);
  REQUIRE(all.mean);
  CHECK(at(all.mean->precision, 50) == doctest::Approx((2.0 / 3 + 1) / 2));
  CHECK(at(all.mean->f1, 55) == doctest::Approx((4.0 / 7 + 1) / 2));
  REQUIRE(all.best_f1());
  CHECK(all.best_f1()->score == 0);
  CHECK(all.best_f1()->f1 == doctest::Approx((6.0 / 9 + 1) / 2));
}

TEST_CASE("the area under the curve of precision is near Darknet's average precision") {
  const CurvesOfClasses all = curves();
  double area = 0;
  for (const double precision : all.classes[0]->precision) {
    area += precision / 101;
  }
  CHECK(area == doctest::Approx(0.25 + 0.25 * 2 / 3 + 0.25 * 3 / 5).epsilon(0.02));
}

TEST_CASE("without objects there are no curves") {
  const std::vector<FoundBox> found{{0, 0, place(0), 0.5}};
  const CurvesOfClasses nothing = detection_curves(engine::judge_boxes({}, found, 2));
  CHECK(!nothing.mean);
  CHECK(!nothing.classes[0]);
}
