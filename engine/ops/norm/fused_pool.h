// A max-pool right behind a normalisation or an activation, in one pass over memory: the map
// between the two never stands there. Forward its cells are made a few lines at a time, backward
// their gradients likewise, from the pool's argmax. The pool's windows must not overlap.

#pragma once

#include "engine/ops/norm/batch_norm.h"
#include "engine/ops/pool/pool.h"

namespace tessera::engine {

// Assigns `out` on site.region.
template <class T>
void normalize_pool_forward(View<const T> in,
                            const Normalization<T>& by,
                            const PoolSite& site,
                            const Pooled<T>& out);
template <class T>
void activate_pool_forward(Activation activation,
                           View<const T> in,
                           const PoolSite& site,
                           const Pooled<T>& out);

}  // namespace tessera::engine
