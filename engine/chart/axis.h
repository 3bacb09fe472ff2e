// From values to places in a picture.

#pragma once

namespace tessera::engine {

// `low` lies at `begin`, `high` at `end`, in units of the picture; y axes run from the bottom up.
struct Axis {
  double low = 0;
  double high = 1;
  double begin = 0;
  double end = 1;
  bool logarithmic = false;  // low is positive then

  [[nodiscard]] double at(double value) const;
};

// Bounds of values.
struct Extent {
  double low = 0;
  double high = 0;
  bool empty = true;

  void include(double value);  // does nothing for what is not finite
};

}  // namespace tessera::engine
