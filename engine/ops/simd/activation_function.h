// Activations as functors: value(x), and slope(x, y), the derivative at x where the value is y.
// Slopes that the value alone tells do not look at x, so that layers need not keep it.
//
// leaky 0.1 below zero; ramp 0.1 x more than relu; elu alpha 1; swish x * logistic(x); mish x *
// tanh(log(1 + exp(x))); hard_mish x^2 / 2 + x from -2 to 0; hard_sigmoid x / 6 + 1/2 from -3 to 3,
// and hard_swish x times that, as PyTorch and ONNX have them; gelu x / 2 * (1 + tanh(0.797885 x +
// 0.035677 x^3)), with the numbers of Darknet: the same as x * logistic of twice that argument.

#pragma once

#include <cmath>

#include "partitioner/network/network.h"

namespace tessera::engine {

using partitioner::Activation;

template <Activation kind>
struct ActivationFunction {
  template <class T>
  [[nodiscard]] static T logistic(T x) {
    return T(1) / (T(1) + std::exp(-x));
  }

  template <class T>
  [[nodiscard]] static T value(T x) {
    if constexpr (kind == Activation::Relu) {
      return x <= 0 ? T(0) : x;  // NaN stays NaN
    } else if constexpr (kind == Activation::Leaky) {
      return x > 0 ? x : T(0.1) * x;
    } else if constexpr (kind == Activation::Ramp) {
      return x > 0 ? T(1.1) * x : T(0.1) * x;
    } else if constexpr (kind == Activation::Relu6) {
      return x <= 0 ? T(0) : (x > 6 ? T(6) : x);
    } else if constexpr (kind == Activation::Elu) {
      return x >= 0 ? x : std::expm1(x);
    } else if constexpr (kind == Activation::Logistic) {
      return logistic(x);
    } else if constexpr (kind == Activation::Tanh) {
      return std::tanh(x);
    } else if constexpr (kind == Activation::Swish) {
      return x * logistic(x);
    } else if constexpr (kind == Activation::Mish) {
      return x * std::tanh(softplus(x));
    } else if constexpr (kind == Activation::HardMish) {
      return x > 0 ? x : (x <= -2 ? T(0) : x * x / 2 + x);  // NaN stays NaN
    } else if constexpr (kind == Activation::HardSigmoid) {
      return hard_sigmoid(x);
    } else if constexpr (kind == Activation::HardSwish) {
      return x * hard_sigmoid(x);
    } else if constexpr (kind == Activation::Gelu) {
      return x * logistic(2 * gelu_argument(x));
    } else {
      return x;
    }
  }

  template <class T>
  [[nodiscard]] static T slope(T x, T y) {
    if constexpr (kind == Activation::Relu) {
      return y > 0 ? T(1) : T(0);
    } else if constexpr (kind == Activation::Leaky) {
      return y > 0 ? T(1) : T(0.1);
    } else if constexpr (kind == Activation::Ramp) {
      return y > 0 ? T(1.1) : T(0.1);
    } else if constexpr (kind == Activation::Relu6) {
      return y > 0 && y < 6 ? T(1) : T(0);
    } else if constexpr (kind == Activation::Elu) {
      return y >= 0 ? T(1) : y + T(1);
    } else if constexpr (kind == Activation::Logistic) {
      return y * (T(1) - y);
    } else if constexpr (kind == Activation::Tanh) {
      return T(1) - y * y;
    } else if constexpr (kind == Activation::Swish) {
      return y + logistic(x) * (T(1) - y);
    } else if constexpr (kind == Activation::Mish) {
      const T t = std::tanh(softplus(x));
      return t + x * logistic(x) * (T(1) - t * t);
    } else if constexpr (kind == Activation::HardMish) {
      return x > 0 ? T(1) : (x <= -2 ? T(0) : x + T(1));
    } else if constexpr (kind == Activation::HardSigmoid) {
      return y > 0 && y < 1 ? T(1) / 6 : T(0);
    } else if constexpr (kind == Activation::HardSwish) {
      return x >= 3 ? T(1) : (x <= -3 ? T(0) : x / 3 + T(0.5));
    } else if constexpr (kind == Activation::Gelu) {
      const T share = logistic(2 * gelu_argument(x));
      const T argument_slope = T(kGeluLinear) + 3 * T(kGeluCubic) * x * x;
      return share + x * share * (T(1) - share) * 2 * argument_slope;
    } else {
      return T(1);
    }
  }

 private:
  template <class T>
  [[nodiscard]] static T softplus(T x) {
    return x > T(20) ? x : std::log1p(std::exp(x));
  }

  template <class T>
  [[nodiscard]] static T hard_sigmoid(T x) {
    return x >= 3 ? T(1) : (x <= -3 ? T(0) : x / 6 + T(0.5));  // NaN stays NaN
  }

  static constexpr double kGeluLinear = 0.797885;
  static constexpr double kGeluCubic = 0.035677;
  template <class T>
  [[nodiscard]] static T gelu_argument(T x) {
    return T(kGeluLinear) * x + T(kGeluCubic) * x * x * x;
  }
};

// Calls run(ActivationFunction<activation>{}).
template <class Run>
void with_activation(Activation activation, Run run) {
  switch (activation) {
    case Activation::Linear:
      return run(ActivationFunction<Activation::Linear>{});
    case Activation::Relu:
      return run(ActivationFunction<Activation::Relu>{});
    case Activation::Leaky:
      return run(ActivationFunction<Activation::Leaky>{});
    case Activation::Relu6:
      return run(ActivationFunction<Activation::Relu6>{});
    case Activation::Elu:
      return run(ActivationFunction<Activation::Elu>{});
    case Activation::Logistic:
      return run(ActivationFunction<Activation::Logistic>{});
    case Activation::Tanh:
      return run(ActivationFunction<Activation::Tanh>{});
    case Activation::Swish:
      return run(ActivationFunction<Activation::Swish>{});
    case Activation::Ramp:
      return run(ActivationFunction<Activation::Ramp>{});
    case Activation::Mish:
      return run(ActivationFunction<Activation::Mish>{});
    case Activation::HardMish:
      return run(ActivationFunction<Activation::HardMish>{});
    case Activation::Gelu:
      return run(ActivationFunction<Activation::Gelu>{});
    case Activation::HardSigmoid:
      return run(ActivationFunction<Activation::HardSigmoid>{});
    case Activation::HardSwish:
      return run(ActivationFunction<Activation::HardSwish>{});
  }
}

}  // namespace tessera::engine
