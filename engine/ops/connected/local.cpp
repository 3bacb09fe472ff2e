#include "engine/ops/connected/local.h"

#include "engine/ops/loops/threads.h"

namespace tessera::engine {

namespace {

// The number of a parameter's cell among those of all filters.
Index cell_of(const LocalSite& site, Index k, Index row, Index col) {
  return ((k - site.first_filter) * site.out.rows + row) * site.out.cols + col;
}

// Calls visit(row, col, tap) for the cells of one channel of the map that the window of an output
// cell meets.
template <class Visit>
void for_each_tap(const LocalSite& site, Index out_row, Index out_col, Visit visit) {
  const partitioner::WindowAxis axis = site.layer.axis();
  const Index first_row = out_row * axis.stride - axis.padding;
  const Index first_col = out_col * axis.stride - axis.padding;
  const Range rows = intersect(site.in_map.rows, {first_row, first_row + axis.size});
  const Range cols = intersect(site.in_map.cols, {first_col, first_col + axis.size});
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (Index col = cols.begin; col < cols.end; ++col) {
      visit(row, col, (row - first_row) * axis.size + col - first_col);
    }
  }
}

Index taps_of(const LocalSite& site) {
  return site.layer.size * site.layer.size;
}

// Weights of one cell of a filter.
Index weights_of_cell(const LocalSite& site) {
  return site.in_map.channels.size() * taps_of(site);
}

}  // namespace

template <class T>
void local_forward(const LocalSite& site,
                   View<const T> in,
                   const T* weight,
                   const T* bias,
                   const Region& region,
                   View<T> out) {
  if (region.empty()) {
    return;
  }
  parallel_for(region.channels, region.rows, [&](Index k, Index row) {
    for (Index col = region.cols.begin; col < region.cols.end; ++col) {
      const Index cell = cell_of(site, k, row, col);
      const T* weights = weight + cell * weights_of_cell(site);
      for (Index n = region.images.begin; n < region.images.end; ++n) {
        T sum = bias[cell];
        for (Index c = 0; c < site.in_map.channels.size(); ++c) {
          for_each_tap(site, row, col, [&](Index r, Index x, Index tap) {
            sum += weights[c * taps_of(site) + tap] * in.at(n, c, r, x);
          });
        }
        out.at(n, k, row, col) = sum;
      }
    }
  });
}

template <class T>
void local_backward_data(const LocalSite& site,
                         View<const T> out_gradient,
                         const T* weight,
                         const Region& region,
                         View<T> in_gradient) {
  if (region.empty()) {
    return;
  }
  // Windows share cells, so a thread takes whole channels of the input.
  parallel_for(region.images, site.in_map.channels, [&](Index n, Index c) {
    for (Index k = region.channels.begin; k < region.channels.end; ++k) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          const T gradient = out_gradient.at(n, k, row, col);
          const T* weights =
              weight + cell_of(site, k, row, col) * weights_of_cell(site) + c * taps_of(site);
          for_each_tap(site, row, col, [&](Index r, Index x, Index tap) {
            in_gradient.at(n, c, r, x) += weights[tap] * gradient;
          });
        }
      }
    }
  });
}

template <class T>
void local_backward_weights(const LocalSite& site,
                            View<const T> in,
                            View<const T> out_gradient,
                            const Region& region,
                            T* weight_gradient) {
  if (region.empty()) {
    return;
  }
  parallel_for(region.channels, region.rows, [&](Index k, Index row) {
    for (Index col = region.cols.begin; col < region.cols.end; ++col) {
      T* weights = weight_gradient + cell_of(site, k, row, col) * weights_of_cell(site);
      for (Index n = region.images.begin; n < region.images.end; ++n) {
        const T gradient = out_gradient.at(n, k, row, col);
        for (Index c = 0; c < site.in_map.channels.size(); ++c) {
          for_each_tap(site, row, col, [&](Index r, Index x, Index tap) {
            weights[c * taps_of(site) + tap] += gradient * in.at(n, c, r, x);
          });
        }
      }
    }
  });
}

template <class T>
void local_backward_biases(const LocalSite& site,
                           View<const T> out_gradient,
                           const Region& region,
                           T* bias_gradient) {
  if (region.empty()) {
    return;
  }
  parallel_for(region.channels, region.rows, [&](Index k, Index row) {
    for (Index col = region.cols.begin; col < region.cols.end; ++col) {
      T& sum = bias_gradient[cell_of(site, k, row, col)];
      for (Index n = region.images.begin; n < region.images.end; ++n) {
        sum += out_gradient.at(n, k, row, col);
      }
    }
  });
}

template void local_forward<float>(
    const LocalSite&, View<const float>, const float*, const float*, const Region&, View<float>);
template void local_forward<double>(const LocalSite&,
                                    View<const double>,
                                    const double*,
                                    const double*,
                                    const Region&,
                                    View<double>);
template void local_backward_data<float>(
    const LocalSite&, View<const float>, const float*, const Region&, View<float>);
template void local_backward_data<double>(
    const LocalSite&, View<const double>, const double*, const Region&, View<double>);
template void local_backward_weights<float>(
    const LocalSite&, View<const float>, View<const float>, const Region&, float*);
template void local_backward_weights<double>(
    const LocalSite&, View<const double>, View<const double>, const Region&, double*);
template void local_backward_biases<float>(const LocalSite&,
                                           View<const float>,
                                           const Region&,
                                           float*);
template void local_backward_biases<double>(const LocalSite&,
                                            View<const double>,
                                            const Region&,
                                            double*);

}  // namespace tessera::engine
