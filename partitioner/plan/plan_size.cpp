#include "partitioner/plan/plan_size.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

// In double: a product of them may be beyond an Index.
constexpr double kMostValues = 0x1p50;
constexpr double kMostOperations = 0x1p60;

// Each is some seconds of a desktop's time, or about a GiB.
struct Limits {
  double layers;
  double tiles;      // layers times ranks, some hundred bytes each
  double messages;   // lists of them between all pairs of ranks, 80 bytes a message
  double lifetimes;  // layers that a layer's maps may live through, on each rank
};
constexpr Limits kPlan{.layers = 5000, .tiles = 1e6, .messages = 16e6, .lifetimes = 1.5e8};
constexpr Limits kSearch{.layers = 1500, .tiles = 2e5, .messages = 1e12, .lifetimes = 1.5e8};

struct Size {
  double lists = 0;   // of messages: one for each parameter, and for statistics of each layer
  double values = 0;  // of all maps, and of parameters
  double operations = 0;
};

Size size_of(const Network& network, Index batch) {
  Size size;
  for (int layer = 0; layer < network.size(); ++layer) {
    const LayerParameters parameters = layer_parameters(network, layer);
    double weights = 0;
    for (const ParameterShape& shape : {parameters.weight,
                                        parameters.bias,
                                        parameters.scale,
                                        parameters.mean,
                                        parameters.variance}) {
      size.lists += shape.channels > 0 ? 1 : 0;
      weights += static_cast<double>(shape.channels) * static_cast<double>(shape.row);
    }
    size.lists += parameters.scale.channels > 0 ? 1 : 0;
    const double cells =
        static_cast<double>(network.shape(layer).volume()) * static_cast<double>(batch);
    size.values += weights + cells;
    size.operations += cells * static_cast<double>(std::max<Index>(parameters.weight.row, 1));
  }
  return size;
}

// How many ranks the limits allow; 0 where there are too many layers for one.
Index most_ranks(const Network& network, double lists, const Limits& limits) {
  const double layers = network.size() + 1;
  if (network.size() > limits.layers) {
    return 0;
  }
  return static_cast<Index>(std::min({limits.tiles / layers,
                                      limits.lifetimes / (layers * layers),
                                      std::sqrt(limits.messages / std::max(lists, layers))}));
}

void expect_within(
    const Limits& limits, const char* what, const Network& network, Index ranks, Index batch) {
  const Size size = size_of(network, batch);
  if (size.values > kMostValues || size.operations > kMostOperations) {
    throw InputError(fmt::format(
        "a pass of {} images has {:.0e} values and {:.0e} multiply-adds, more than any machine can "
        "compute: use fewer images (--batch, --subdivisions) or a smaller network",
        batch,
        size.values,
        size.operations));
  }
  const Index most = most_ranks(network, size.lists, limits);
  if (most < 1) {
    throw InputError(
        fmt::format("{} a network of {} layers would take minutes: expected at most "
                    "{} layers",
                    what,
                    network.size(),
                    limits.layers));
  }
  if (ranks > most) {
    throw InputError(fmt::format(
        "{} a network of {} layers for {} ranks would take minutes and many GiB: expected at most "
        "{} ranks",
        what,
        network.size(),
        ranks,
        most));
  }
}

}  // namespace

void expect_plannable(const Network& network, Index ranks, Index batch) {
  expect_within(kPlan, "a plan of", network, ranks, batch);
}

bool is_plannable(const Network& network, Index ranks, Index batch) {
  const Size size = size_of(network, batch);
  return size.values <= kMostValues && size.operations <= kMostOperations &&
         ranks <= most_ranks(network, size.lists, kPlan);
}

void expect_searchable(const Network& network, Index ranks, Index batch) {
  expect_within(kSearch, "--partition auto: a search of", network, ranks, batch);
}

}  // namespace tessera::partitioner
