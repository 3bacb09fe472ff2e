// Gradients of inputs that a layer begins: it assigns them, or has them begin with 0.

#pragma once

#include <algorithm>
#include <vector>

#include "engine/layers/layer.h"

namespace tessera::engine {

// Whether no map is an input twice: what has been assigned would be assigned again.
[[nodiscard]] inline bool inputs_differ(const Site& site) {
  std::vector<int> inputs = site.spec().inputs;
  std::sort(inputs.begin(), inputs.end());
  return std::adjacent_find(inputs.begin(), inputs.end()) == inputs.end();
}

// Of a layer that assigns_input_gradients(): sets the cells of an input's gradient to 0 if nothing
// is in it yet.
template <class T>
void begin_gradient(const Site& site, const LayerViews<T>& views, std::size_t input) {
  if (views.first_gradients[input]) {
    const View<T>& gradient = views.input_gradients[input];
    set_zero(gradient, intersect(site.input_map(input), gradient.region));
  }
}

// Of such a layer, whether it may assign what it says of `cells` of an input: nothing is in their
// gradient yet, and they are all of their channels; other channels are set to 0. Where they are
// not, all cells are, and the layer adds.
template <class T>
[[nodiscard]] bool assigns_gradient(const Site& site,
                                    const LayerViews<T>& views,
                                    std::size_t input,
                                    const Region& cells) {
  if (!views.first_gradients[input]) {
    return false;
  }
  const View<T>& gradient = views.input_gradients[input];
  const Region wanted = intersect(site.input_map(input), gradient.region);
  Region covered = wanted;
  covered.channels = intersect(wanted.channels, cells.channels);
  if (covered.empty() || !contains(cells, covered)) {
    begin_gradient(site, views, input);
    return false;
  }
  const auto clear = [&](const Range& channels) {
    Region others = wanted;
    others.channels = channels;
    set_zero(gradient, others);
  };
  clear({wanted.channels.begin, covered.channels.begin});
  clear({covered.channels.end, wanted.channels.end});
  return true;
}

}  // namespace tessera::engine
