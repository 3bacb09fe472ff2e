// A map multiplied by factors: by another map, value by value, or by one factor for many of its
// values. Regions are of the map, and of the product; they may be any part of it.

#pragma once

#include "engine/base/tensor.h"

namespace tessera::engine {

enum class Factors {
  ByValue,    // (N, C, H, W)
  ByChannel,  // (N, C, 1, 1)
  ByPlace     // (N, 1, H, W)
};

// Assigns out = map * factors on the region.
template <class T>
void multiply_forward(
    Factors kind, View<const T> map, View<const T> factors, const Region& region, View<T> out);

// Adds out_gradient * factors to the gradient of the map, or assigns it.
template <class T>
void multiply_backward_map(Factors kind,
                           View<const T> out_gradient,
                           View<const T> factors,
                           const Region& region,
                           View<T> map_gradient,
                           bool assign = false);

// Adds to the gradient of each factor the sum of out_gradient * map over what it multiplies in the
// region.
template <class T>
void multiply_backward_factors(Factors kind,
                               View<const T> out_gradient,
                               View<const T> map,
                               const Region& region,
                               View<T> factor_gradient);

}  // namespace tessera::engine
