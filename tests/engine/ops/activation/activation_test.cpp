#include "engine/ops/activation/activation.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "engine/ops/simd/activation_function.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Activation;
using engine::Tensor;
using engine::View;

constexpr Activation kActivations[] = {Activation::Linear,
                                       Activation::Relu,
                                       Activation::Leaky,
                                       Activation::Relu6,
                                       Activation::Elu,
                                       Activation::Logistic,
                                       Activation::Tanh,
                                       Activation::Swish,
                                       Activation::Mish,
                                       Activation::Gelu,
                                       Activation::HardMish,
                                       Activation::HardSigmoid,
                                       Activation::HardSwish,
                                       Activation::Ramp};

double value(Activation activation, double x) {
  double y = 0;
  engine::with_activation(activation, [&](auto function) { y = function.value(x); });
  return y;
}

double slope(Activation activation, double x) {
  double slope = 0;
  engine::with_activation(activation,
                          [&](auto function) { slope = function.slope(x, function.value(x)); });
  return slope;
}

TEST_CASE("the slope of every activation is its derivative, away from its kinks") {
  constexpr double kStep = 1e-6;
  for (const Activation activation : kActivations) {
    for (const double x : {-30.0, -7.1, -2.3, -0.4, -0.01, 0.01, 0.7, 3.1, 5.9, 6.1, 25.0}) {
      INFO(activation_name(activation), " at ", x);
      const double numeric =
          (value(activation, x + kStep) - value(activation, x - kStep)) / (2 * kStep);
      CHECK(slope(activation, x) == doctest::Approx(numeric).epsilon(1e-7));
    }
  }
}

TEST_CASE("NaN stays NaN") {
  const Region region{{0, 1}, {0, 16}, {0, 1}, {0, 5}};
  for (const Activation activation : kActivations) {
    INFO(activation_name(activation));
    CHECK(std::isnan(value(activation, std::nan(""))));
    Tensor<float> cells(region);
    cells.view().at(0, 3, 0, 2) = std::nanf("");
    activate_forward(activation, View<const float>(cells.view()), region, cells.view());
    CHECK(std::isnan(cells.view().at(0, 3, 0, 2)));
    CHECK(std::isfinite(cells.view().at(0, 4, 0, 2)));
  }
}

TEST_CASE("no activation overflows or loses its value far from zero") {
  for (const Activation activation : kActivations) {
    for (const double x : {-1e4, 1e4}) {
      INFO(activation_name(activation), " at ", x);
      CHECK(std::isfinite(value(activation, x)));
      CHECK(std::isfinite(slope(activation, x)));
    }
  }
  CHECK(value(Activation::Mish, 1e4) == 1e4);
  CHECK(value(Activation::Logistic, -1e4) == 0);
}

TEST_CASE("activating part of a map leaves the rest as it is") {
  const Region map{{0, 2}, {0, 18}, {0, 5}, {0, 6}};
  const Region part{{1, 2}, {3, 17}, {1, 4}, {2, 6}};
  Tensor<float> cells(map);
  std::fill_n(cells.values().data(), cells.values().size(), -1.0F);
  activate_forward(Activation::Relu, View<const float>(cells.view()), part, cells.view());
  for (Index n = 0; n < 2; ++n) {
    for (Index c = 0; c < 18; ++c) {
      for (Index row = 0; row < 5; ++row) {
        for (Index col = 0; col < 6; ++col) {
          const bool inside =
              contains(part, {{n, n + 1}, {c, c + 1}, {row, row + 1}, {col, col + 1}});
          CHECK(cells.view().at(n, c, row, col) == (inside ? 0.0F : -1.0F));
        }
      }
    }
  }
}

// Numbers of all sizes and both signs.
std::vector<float> many_numbers() {
  std::vector<float> numbers{0.0F, -0.0F, 1e4F, -1e4F, 88.0F, -88.0F, 0.25F, -0.25F};
  for (float size = 1e-6F; size < 30.0F; size *= 1.07F) {
    numbers.push_back(size);
    numbers.push_back(-size);
  }
  return numbers;
}

TEST_CASE("activations on rows are those of single numbers, whatever the channels of a cell") {
  const std::vector<float> numbers = many_numbers();
  const auto count = static_cast<Index>(numbers.size());
  for (const Activation activation : kActivations) {
    for (const Index channels : {1, 3, 8, 16}) {
      INFO(activation_name(activation), ", ", channels, " channels");
      const Region region{{0, 1}, {0, channels}, {0, 1}, {0, count}};
      Tensor<float> in(region);
      Tensor<float> out(region);
      for (Index col = 0; col < count; ++col) {
        for (Index c = 0; c < channels; ++c) {
          in.view().at(0, c, 0, col) = numbers[static_cast<std::size_t>((col + c) % count)];
        }
      }
      engine::activate_forward(activation, View<const float>(in.view()), region, out.view());
      for (Index col = 0; col < count; ++col) {
        for (Index c = 0; c < channels; ++c) {
          const double x = static_cast<double>(in.view().at(0, c, 0, col));
          const double expected = value(activation, x);
          const double found = static_cast<double>(out.view().at(0, c, 0, col));
          // Of the logistic function's smallest values the C library keeps a few more bits. The
          // argument that gelu gives it is rounded, too.
          const double least = activation == Activation::Gelu ? 1e-8 : 1e-33;
          CHECK_MESSAGE(std::abs(found - expected) <= 1e-6 * std::abs(expected) + least, "at ", x);
        }
      }
    }
  }
}

TEST_CASE("slopes on rows are those of single numbers, whatever the channels of a cell") {
  const std::vector<float> numbers = many_numbers();
  const auto count = static_cast<Index>(numbers.size());
  for (const Activation activation : kActivations) {
    for (const Index channels : {1, 3, 8, 16}) {
      INFO(activation_name(activation), ", ", channels, " channels");
      const Region region{{0, 1}, {0, channels}, {0, 1}, {0, count}};
      Tensor<float> in(region);
      Tensor<float> out(region);
      Tensor<float> gradient(region);
      for (Index col = 0; col < count; ++col) {
        for (Index c = 0; c < channels; ++c) {
          in.view().at(0, c, 0, col) = numbers[static_cast<std::size_t>((col + c) % count)];
          gradient.view().at(0, c, 0, col) = 2;
        }
      }
      engine::activate_forward(activation, View<const float>(in.view()), region, out.view());
      (void)engine::activate_backward(activation,
                                      View<const float>(in.view()),
                                      View<const float>(out.view()),
                                      region,
                                      gradient.view());
      for (Index col = 0; col < count; ++col) {
        for (Index c = 0; c < channels; ++c) {
          const double x = static_cast<double>(in.view().at(0, c, 0, col));
          const double found = static_cast<double>(gradient.view().at(0, c, 0, col));
          CHECK_MESSAGE(found == doctest::Approx(2 * slope(activation, x)).epsilon(2e-6), "at ", x);
        }
      }
    }
  }
}

TEST_CASE("NaN stays NaN") {
  const Region region{{0, 1}, {0, 16}, {0, 1}, {0, 1}};
  for (const Activation activation :
       {Activation::Linear, Activation::Logistic, Activation::Tanh, Activation::Swish}) {
    Tensor<float> cells(region);
    cells.view().at(0, 3, 0, 0) = NAN;
    engine::activate_forward(activation, View<const float>(cells.view()), region, cells.view());
    CHECK(std::isnan(cells.view().at(0, 3, 0, 0)));
    CHECK(std::isfinite(cells.view().at(0, 4, 0, 0)));
  }
}

TEST_CASE("a region without cells has no sums, whatever its channels") {
  Tensor<double> cells({{0, 1}, {0, 2}, {0, 3}, {0, 3}});
  const View<const double> values = cells.view();
  const Region empty{{0, 1}, {0, 40}, {2, 2}, {0, 3}};
  CHECK(engine::activate_backward(Activation::Leaky, values, values, empty, cells.view()).empty());
}

}  // namespace
