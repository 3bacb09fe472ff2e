// Measures the optimizer, for the profile of a device.

#pragma once

namespace tessera::engine {

// Weights that stochastic gradient descent with momentum updates in a second on this rank, their
// gradients set to zero again included; takes about `allowed_s`.
[[nodiscard]] double measure_updated_weights_per_s(double allowed_s);

}  // namespace tessera::engine
